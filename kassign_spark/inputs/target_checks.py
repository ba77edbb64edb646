"""Checks of the last target of groups of the new protocol."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kassign_spark.inputs.problem_rows import Check, Problem, TableCheck
from kassign_spark.inputs.rules import (
    CONSUMER,
    is_consumer_group,
    sql_quoted,
    sql_sentence,
    target_rules,
)
from kassign_spark.schemas import GROUP_KEY, TARGET


def target_checks(members: DataFrame, target: DataFrame) -> list[Check | TableCheck]:
    """Return the checks of a target beside the members of its groups, both conforming."""
    types = members.groupBy(*GROUP_KEY).agg(F.bool_or(is_consumer_group()).alias("is_consumer"))
    of_classic = target.join(types, on=list(GROUP_KEY)).where("not is_consumer")
    rows = {"rows": "count(*)"}
    return [
        TableCheck(TARGET, target, target_rules()),
        Check(of_classic, GROUP_KEY, [_TARGET_OF_CLASSIC_GROUP], rows),
        Check(target, [*GROUP_KEY, "member_id", "position"], [_POSITION_TWICE], rows),
        Check(target, [*GROUP_KEY, "topic", "partition"], [_TARGET_TWICE], rows),
    ]


_TARGET_OF_CLASSIC_GROUP = Problem(
    "target_of_classic_group",
    "true",
    sql_sentence(
        f"table target, column group_id: {{}} is not of group_type {CONSUMER} in members: "
        "only such groups have one",
        sql_quoted("group_id"),
    ),
)
_POSITION_TWICE = Problem(
    "position_twice",
    "rows > 1 and position is not null",
    sql_sentence(
        "table target, column position: {} appears {} times for member {} of group {}: "
        "give each place in a member's list once",
        "position",
        "rows",
        sql_quoted("member_id"),
        sql_quoted("group_id"),
    ),
)
_TARGET_TWICE = Problem(
    "target_twice",
    "rows > 1",
    sql_sentence(
        "table target, column partition: {}-{} appears {} times of group {}: "
        "the coordinator gives a partition to one member",
        "topic",
        "partition",
        "rows",
        sql_quoted("group_id"),
    ),
)
