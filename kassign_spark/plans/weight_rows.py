"""Weights and capacities as rows beside a group's others, checked before they are used."""

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kassign_spark.errors import InputError, SettingsError
from kassign_spark.groups.eligible import Eligible
from kassign_spark.groups.rows import Kernel, fold, rows, run_in_tasks
from kassign_spark.inputs.problem_rows import (
    MAX_LISTED,
    Check,
    Problem,
    TableCheck,
    refuse_problems,
)
from kassign_spark.inputs.rules import (
    number_rule,
    partition_rules,
    sql_quoted,
    sql_sentence,
)
from kassign_spark.limits import LEAST_CAPACITY, MOST_WEIGHT
from kassign_spark.schemas import CLUSTER_ID, GROUP_KEY, MEMBERS, WEIGHTS
from kassign_spark.spark.iteration import materialize

CAPACITY, WEIGHT = 10, 11
"""Kinds of rows beside those of ``groups.read``."""


def check_weight_options(**options: float | None) -> None:
    """Refuse missing_weight and base_weight that are no weights.

    Raises:
        SettingsError: one is negative, more than ``limits.MOST_WEIGHT`` or NaN.
    """
    for name, value in options.items():
        if value is not None and not 0 <= value <= MOST_WEIGHT:
            raise SettingsError(f"{name}: {value!r} is not a number from 0 to {MOST_WEIGHT:g}")


def refuse_weights(weights: DataFrame, members: DataFrame) -> None:
    """Refuse weights and capacities that have no meaning; runs one query.

    Args:
        weights: conforming.
        members: conforming.

    Raises:
        InputError: weights, move costs or capacities that are null, NaN or out of range, or a
            partition that appears twice; lists every one.
    """
    must = f"must be a number from 0 to {MOST_WEIGHT:g}"
    capacity = f"must be a number from {LEAST_CAPACITY:g} to {MOST_WEIGHT:g}, or null: 1"
    of_weights = [
        number_rule("weight", 0.0, MOST_WEIGHT, must, null_is="false"),
        number_rule("move_cost", 0.0, MOST_WEIGHT, f"{must}, or null", null_is="true"),
        *partition_rules(),
    ]
    of_members = [number_rule("capacity", LEAST_CAPACITY, MOST_WEIGHT, capacity, null_is="true")]
    checks: list[Check | TableCheck] = [
        TableCheck(WEIGHTS, weights, of_weights),
        TableCheck(MEMBERS, members, of_members),
        Check(weights, (*GROUP_KEY, "topic", "partition"), [_WEIGHT_TWICE], {"rows": "count(*)"}),
    ]
    refuse_problems(checks)


_WEIGHT_TWICE = Problem(
    "weight_twice",
    "rows > 1",
    sql_sentence(
        "table weights, column partition: partition {} of topic {} appears {} times for {}: give "
        "each partition once",
        "partition",
        sql_quoted("topic"),
        "rows",
        f"coalesce(concat('group ', {sql_quoted('group_id')}), 'all groups')",
    ),
)


def shared_and_own(weights: DataFrame, reading: DataFrame) -> tuple[DataFrame, DataFrame]:
    """Copy weights for all groups to each group that reads the topic; keep those of one group.

    Args:
        weights: ``schemas.WEIGHTS``, conforming.
        reading: cluster_id string, group_id string, topic string, and further columns.
    """
    shared = weights.where("group_id IS NULL").drop("group_id")
    return (
        shared.join(reading, on=[CLUSTER_ID, "topic"], how="inner"),
        weights.where("group_id IS NOT NULL"),
    )


def fold_weights(eligible: Eligible, weights: DataFrame) -> DataFrame:
    """Fold weights and capacities into rows as ``groups.rows.fold`` makes them; runs no job.

    Returns:
        the columns of ``fold``, and value double (capacity, weight), cost double: null: none given.
        Rows of kind WEIGHT: topic, number (partition), place (1: of this group alone, else 0).
    """
    reading = eligible.members.select(*GROUP_KEY, F.explode("topics").alias("topic")).distinct()
    capacity = _value_rows(eligible.members.where("capacity IS NOT NULL"), CAPACITY, "capacity")
    table = fold(eligible).unionByName(capacity, allowMissingColumns=True)
    for place, frame in enumerate(shared_and_own(weights, reading)):
        weight_rows = _value_rows(
            frame, WEIGHT, "weight", "move_cost", number="partition", place=str(place)
        )
        table = table.unionByName(weight_rows)
    return table


def run_or_refuse(table: DataFrame, kernel: Kernel, schema: str, tasks: int) -> DataFrame:
    """Run the kernel over all groups once, hold its results, and refuse groups with a problem.

    ``table`` is of ``fold_weights``; ``schema``, of the answers, has a column problem string.

    Raises:
        InputError: some row has a problem; lists groups.
    """
    problems = F.count_if(F.col("problem").isNotNull())
    answers, totals = materialize(
        run_in_tasks(table, kernel, schema, tasks), {"problems": problems}
    )
    if totals["problems"]:
        wrong = answers.where("problem IS NOT NULL").select(*GROUP_KEY, "problem").distinct()
        rows = wrong.orderBy(*GROUP_KEY).limit(MAX_LISTED + 1).collect()
        raise refused_groups([(row.group_id, row.problem) for row in rows])
    return answers


def refused_groups(problems: Sequence[tuple[str, str]]) -> InputError:
    """Return the error of groups that cannot be planned: their names, and why; lists some."""
    sentences = [f'group "{group}": {problem}' for group, problem in problems[:MAX_LISTED]]
    more = "; and more groups" if len(problems) > MAX_LISTED else ""
    return InputError("; ".join(sentences) + more)


def _value_rows(
    frame: DataFrame, kind: int, value: str, cost: str = "null", **columns: str
) -> DataFrame:
    """Return rows of a kind with a value, maybe a cost, in SQL; ``columns`` as for ``rows``."""
    doubles = [
        f"cast({expression} as double) as {name}"
        for name, expression in (("value", value), ("cost", cost))
    ]
    return rows(frame, kind, (*GROUP_KEY, *doubles), **columns)
