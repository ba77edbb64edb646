"""Rows of a table that have no meaning, as problems, and the error that lists every problem."""

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kassign_spark.conforming import conform
from kassign_spark.errors import InputError
from kassign_spark.inputs.rules import Rule, owned_rules, sql_quoted, sql_sentence
from kassign_spark.schemas import GROUP_KEY, Table

MAX_LISTED = 20
"""Problems that an error spells out; it counts the others."""

PROBLEM = ["cluster_id", "group_id", "member_id", "topic", "partition", "problem", "detail"]


def refuse_problems(problems: DataFrame, order: Sequence[str] = ("problem", *PROBLEM[:5])) -> None:
    """Raise the error that lists problems, if there are any; runs a job.

    ``problems`` has detail string, a line each, and the columns of ``order``.

    Raises:
        InputError: every problem with its table, column and value, the first ``MAX_LISTED`` spelled
            out.
    """
    listed = problems.orderBy(*order).limit(MAX_LISTED + 1).collect()
    if listed:
        sentences = [row.detail for row in listed[:MAX_LISTED]]
        if len(listed) > MAX_LISTED:
            sentences.append(f"and {problems.count() - MAX_LISTED} more problems")
        raise InputError("; ".join(sentences))


def refuse_broken_rows(frame: DataFrame, table: Table) -> None:
    """Refuse an assignment, or what is owned, for rows that have no meaning; runs a job.

    Raises:
        SchemaError: columns are missing or of the wrong type.
        InputError: rows break rules; the first ones are spelled out.
    """
    refuse_problems(broken_rows(table, conform(frame, table), owned_rules()))


def to_problems(
    frame: DataFrame, problem: str, detail: str, about: Sequence[str] = GROUP_KEY
) -> DataFrame:
    """Return ``frame`` with the columns of a problem.

    Args:
        frame: a row for each problem.
        problem: its name; empty where a column has it.
        detail: SQL.
        about: the columns of a problem that the frame has; to ask it for them would take a server
            of Spark Connect as long as a small query.
    """
    types = {"partition": "bigint"}
    columns = (
        f"cast({name if name in about else 'null'} as {types.get(name, 'string')}) as {name}"
        for name in PROBLEM[:5]
    )
    named = f"'{problem}' as problem" if problem else "problem"
    return frame.selectExpr(*columns, named, f"{detail} as detail")


def broken_rows(table: Table, frame: DataFrame, rules: list[Rule]) -> DataFrame:
    """List the rows of a conforming table that break rules: the columns of a problem."""
    names = table.columns.names
    keys = [column for column in ("group_id", "member_id", "topic") if column in names]
    named = ", ".join(
        f"if({column} is null, '', concat(' {column}=', {sql_quoted(column)}))" for column in keys
    )
    place = f"if(concat({named}) = '', '', concat(' (at', {named}, ')'))"
    cases = []
    for rule in rules:
        about = f"table {table.name}, column {rule.column}: {{}}{{}}: {{}}"
        detail = sql_sentence(about, rule.value, place, rule.advice)
        problem = f"named_struct('problem', '{rule.problem}', 'detail', {detail})"
        cases.append(f"if({rule.broken}, {problem}, null)")
    found_in_row = f"inline(array_compact(array({', '.join(cases)})))"
    return to_problems(frame.selectExpr("*", found_in_row), "", "detail", names)


def given_differently(
    topics: DataFrame, column: str, problem: str, values: Sequence[str], unit: str = ""
) -> DataFrame:
    """List topics that are given with two values of a column: the columns of a problem.

    ``values`` is SQL over the ``least`` and the ``most``.
    """
    ranges = topics.groupBy("cluster_id", "topic").agg(
        F.min(column).alias("least"), F.max(column).alias("most")
    )
    detail = sql_sentence(
        f"table topics, column {column}: topic {{}} is given with {{}} and with {{}}{unit}: "
        "give each topic once",
        sql_quoted("topic"),
        *values,
    )
    return to_problems(ranges.where("least < most"), problem, detail, ("cluster_id", "topic"))
