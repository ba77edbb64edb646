"""Rows of a table that have no meaning, as problems, and the error that lists every problem."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kassign_spark.conforming import conform
from kassign_spark.errors import InputError
from kassign_spark.inputs.rules import Rule, owned_rules, sql_quoted, sql_sentence
from kassign_spark.schemas import Table
from kassign_spark.spark.spark_versions import union_by_name

MAX_LISTED = 20
"""Problems that an error spells out; it counts the others."""

PROBLEM = ["cluster_id", "group_id", "member_id", "topic", "partition", "problem", "detail"]


class Problem(NamedTuple):
    """One problem that rows can have, in SQL over the columns of its ``Check``.

    It is there where ``is_there`` is true and ``detail`` is not null.
    """

    name: str
    is_there: str
    detail: str


class Check(NamedTuple):
    """Rows and the problems to look for: of each row, or of all rows that are equal in ``keys``.

    Attributes:
        rows: what is looked at, with ``keys``.
        keys: the columns of the rows that a problem names.
        problems: what is looked for.
        values: aggregates by their name, in SQL; None: each row is looked at by itself.
    """

    rows: DataFrame
    keys: Sequence[str]
    problems: Sequence[Problem]
    values: Mapping[str, str] | None = None


class TableCheck(NamedTuple):
    """The rows of a conforming table, each of which is held to the table's rules."""

    table: Table
    rows: DataFrame
    rules: Sequence[Rule]


def refuse_problems(checks: Iterable[Check | TableCheck]) -> None:
    """Raise the error that lists the problems that the checks find, if any; runs a job.

    Raises:
        InputError: every problem with its table, column and value, the first ``MAX_LISTED`` spelled
            out.
    """
    problems = list_problems(checks)
    rows = problems.orderBy("problem", *PROBLEM[:5], "detail").limit(MAX_LISTED + 1).collect()
    if rows:
        sentences = [row.detail for row in rows[:MAX_LISTED]]
        if len(rows) > MAX_LISTED:
            sentences.append(f"and {problems.count() - MAX_LISTED} more problems")
        raise InputError("; ".join(sentences))


def refuse_broken_rows(frame: DataFrame, table: Table) -> None:
    """Refuse an assignment, or what is owned, for rows that have no meaning; runs a job.

    Raises:
        SchemaError: columns are missing or of the wrong type.
        InputError: rows break rules; the first ones are spelled out.
    """
    refuse_problems([TableCheck(table, conform(frame, table), owned_rules())])


def list_problems(checks: Iterable[Check | TableCheck]) -> DataFrame:
    """List the problems that the checks find: the columns of a problem; runs no job."""
    return union_by_name([_problems_of(check) for check in checks])


def _problems_of(check: Check | TableCheck) -> DataFrame:
    if isinstance(check, TableCheck):
        names = check.table.columns.names
        check = Check(check.rows, names, [_broken(check.table, rule) for rule in check.rules])
    rows = check.rows
    if check.values is not None:
        aggregates = (F.expr(f"{value} as {name}") for name, value in check.values.items())
        rows = rows.groupBy(*check.keys).agg(*aggregates)
    cases = ", ".join(
        f"if({problem.is_there}, named_struct('problem', '{problem.name}', 'detail', "
        f"{problem.detail}), null)"
        for problem in check.problems
    )
    problems = rows.selectExpr(*check.keys, f"inline(array_compact(array({cases})))")
    types = {"partition": "bigint"}
    # The frame is not asked for its columns: that takes a server as long as a small query.
    columns = (
        f"cast({name if name in check.keys else 'null'} as {types.get(name, 'string')}) as {name}"
        for name in PROBLEM[:5]
    )
    return problems.where("detail is not null").selectExpr(*columns, "problem", "detail")


def _broken(table: Table, rule: Rule) -> Problem:
    shown = {name: sql_quoted(name) for name in ("group_id", "member_id", "topic")}
    if rule.column != "partition":
        shown["partition"] = "partition"
    columns = ", ".join(
        f"if({column} is null, '', concat(' {column}=', {value}))"
        for column, value in shown.items()
        if column in table.columns.names
    )
    place = f"if(concat({columns}) = '', '', concat(' (at', {columns}, ')'))"
    about = f"table {table.name}, column {rule.column}: {{}}{{}}: {{}}"
    return Problem(rule.problem, rule.broken, sql_sentence(about, rule.value, place, rule.advice))
