"""Weights and capacities as rows beside a group's others, checked before they are used."""

from collections.abc import Sequence
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from kassign_spark.errors import InputError, SettingsError
from kassign_spark.groups.eligible import Eligible
from kassign_spark.groups.rows import Kernel, fold, in_tasks, rows
from kassign_spark.inputs.checks import MAX_LISTED, refuse_problems
from kassign_spark.inputs.rules import INT_MAX, quoted
from kassign_spark.rounds import hold
from kassign_spark.schemas import CLUSTER_ID, GROUP_KEY

CAPACITY, WEIGHT = 10, 11
"""Kinds of rows beside those of ``groups.read``."""


def check_weight_options(**options: float | None) -> None:
    """Refuse missing_weight and base_weight that are no weights.

    Raises:
        SettingsError: one is negative, infinite or NaN.
    """
    for name, value in options.items():
        if value is not None and not 0 <= value < float("inf"):
            raise SettingsError(f"{name}: {value!r} is not a finite number >= 0")


def refuse_weights(weights: DataFrame, members: DataFrame) -> None:
    """Refuse weights and capacities that have no meaning; runs one query.

    Args:
        weights: conforming.
        members: conforming.

    Raises:
        InputError: weights, move costs or capacities that are null, NaN, infinite or out of range,
            or a partition that is there twice; lists every one.
    """
    where = _at(weights, "group_id", "topic", "partition")
    found = [
        _broken(weights, "weights", "weight", _is_no_number("weight", may_be_null=False), where,
                "must be a finite number >= 0"),
        _broken(weights, "weights", "move_cost", _is_no_number("move_cost", may_be_null=True),
                where, "must be a finite number >= 0, or null"),
        _broken(weights, "weights", "topic", F.coalesce(F.col("topic") == "", F.lit(True)), where,
                "every row needs a topic, not null or empty"),
        _broken(weights, "weights", "partition",
                ~F.coalesce(F.col("partition").between(0, INT_MAX), F.lit(False)), where,
                f"must be a whole number from 0 to {INT_MAX}"),
        _broken(members, "members", "capacity",
                _is_no_number("capacity", may_be_null=True)
                | F.coalesce(F.col("capacity") == 0, F.lit(False)),
                _at(members, "group_id", "member_id"), "must be a finite number > 0, or null: 1"),
        _twice(weights),
    ]  # fmt: skip
    refuse_problems(reduce(DataFrame.unionByName, found), order=["detail"])


def fold_weights(eligible: Eligible, weights: DataFrame) -> DataFrame:
    """Put weights and capacities into the rows of ``groups.rows.fold``; runs no job.

    Returns:
        the columns of ``fold``, and value double (capacity, weight), cost double: null: none given.
        Rows of kind WEIGHT: topic, number (partition), place (1: of this group alone, else 0).
    """
    own = weights.where(F.col("group_id").isNotNull())
    reading = eligible.members.select(*GROUP_KEY, F.explode("topics").alias("topic")).distinct()
    shared = weights.where(F.col("group_id").isNull()).drop("group_id")
    shared = shared.join(reading, on=[CLUSTER_ID, "topic"], how="inner")
    return fold_capacities(eligible).unionByName(_weights(own, 1)).unionByName(_weights(shared, 0))


def fold_capacities(eligible: Eligible, *, claims: bool = True) -> DataFrame:
    """As ``fold_weights``, without weights, and with ``claims`` False without what is owned."""
    none = F.lit(None).cast("double")
    base = fold(eligible, claims=claims).withColumns({"value": none, "cost": none})
    capacity = eligible.members.where(F.col("capacity").isNotNull())
    return base.unionByName(valued(capacity, CAPACITY, "capacity"))


def in_tasks_or_refused(table: DataFrame, kernel: Kernel, schema: str, tasks: int) -> DataFrame:
    """Let tasks answer all groups once, hold the answers, and refuse groups with a problem.

    Args:
        table: of ``fold_weights``.
        kernel: what answers it.
        schema: of the answers, with a column problem string.
        tasks: how many.

    Raises:
        InputError: some row has a problem; lists groups.
    """
    problems = F.count_if(F.col("problem").isNotNull())
    found, counted = hold(in_tasks(table, kernel, schema, tasks), {"problems": problems})
    if counted["problems"]:
        wrong = found.where("problem IS NOT NULL").select(*GROUP_KEY, "problem").distinct()
        rows = wrong.orderBy(*GROUP_KEY).limit(MAX_LISTED + 1).collect()
        raise refused_groups([(row.group_id, row.problem) for row in rows])
    return found


def refused_groups(problems: Sequence[tuple[str, str]]) -> InputError:
    """The error of groups that cannot be planned: their names, and why; lists some."""
    listed = [f'group "{group}": {problem}' for group, problem in problems[:MAX_LISTED]]
    more = "; and more groups" if len(problems) > MAX_LISTED else ""
    return InputError("; ".join(listed) + more)


def _weights(frame: DataFrame, place: int) -> DataFrame:
    return valued(frame, WEIGHT, "weight", "move_cost", number="partition", place=str(place))


def valued(frame: DataFrame, kind: int, value: str, cost: str = "null", **given: str) -> DataFrame:
    """Rows of a kind with a value, and perhaps a cost, in SQL; ``given`` as of ``rows.rows``."""
    doubles = [f"cast({of} as double) as {name}" for name, of in (("value", value), ("cost", cost))]
    return rows(frame, kind, (*GROUP_KEY, *doubles), **given)


def _is_no_number(column: str, *, may_be_null: bool) -> Column:
    given = F.col(column)
    wrong = F.isnan(given) | (given < 0) | (given == float("inf"))
    return F.coalesce(wrong, F.lit(not may_be_null))


def _at(frame: DataFrame, *columns: str) -> Column:
    shown = [
        F.when(F.col(c).isNotNull(), F.concat(F.lit(f"{c}="), F.col(c).cast("string")))
        for c in columns
    ]
    return F.concat_ws(" ", *shown)


def _broken(
    frame: DataFrame, table: str, column: str, broken: Column, where: Column, advice: str
) -> DataFrame:
    value = F.coalesce(F.col(column).cast("string"), F.lit("null"))
    says = F.concat(
        F.lit(f"table {table}, column {column}: "), value, F.lit(" (at "), where,
        F.lit(f"): {advice}"),
    )  # fmt: skip
    return frame.where(broken).select(says.alias("detail"))


def _twice(weights: DataFrame) -> DataFrame:
    keys = [CLUSTER_ID, "group_id", "topic", "partition"]
    counted = weights.groupBy(*keys).agg(F.count(F.lit(1)).alias("rows")).where("rows > 1")
    says = F.concat(
        F.lit("table weights, column partition: partition "),
        F.col("partition").cast("string"),
        F.lit(" of topic "),
        quoted("topic"),
        F.lit(" is there "),
        F.col("rows").cast("string"),
        F.lit(" times for "),
        F.coalesce(F.concat(F.lit("group "), quoted("group_id")), F.lit("all groups")),
        F.lit(": give each partition once"),
    )
    return counted.select(says.alias("detail"))
