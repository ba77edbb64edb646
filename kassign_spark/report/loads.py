"""What members hold before and after a plan."""

from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kassign_spark.conforming import conform
from kassign_spark.schemas import ASSIGNMENT, GROUP_KEY, MEMBERS, OWNED


def member_loads(final: DataFrame, members: DataFrame, owned: DataFrame | None) -> DataFrame:
    """Count what each member holds before and after.

    Args:
        final: ``schemas.ASSIGNMENT``.
        members: ``schemas.MEMBERS``.
        owned: ``schemas.OWNED``: each claim counts, also one that another member disputes.

    Returns:
        One row for each of ``members``, and for each that owns something and is not among them:
        cluster_id string, group_id string, member_id string, before bigint (null without
        ``owned``), after bigint, has_left boolean: it owns partitions and is not in the group.
    """
    key = [*GROUP_KEY, "member_id"]
    sides = [
        conform(members, MEMBERS).select(*key, F.lit(True).alias("is_present")),
        conform(final, ASSIGNMENT).select(*key, F.lit(1).alias("after")),
    ]
    if owned is not None:
        claims = conform(owned, OWNED).select(*key, "topic", "partition").distinct()
        sides.append(claims.select(*key, F.lit(1).alias("before")))

    def union(one: DataFrame, other: DataFrame) -> DataFrame:
        return one.unionByName(other, allowMissingColumns=True)

    before = F.lit(None).cast("bigint") if owned is None else F.count("before")
    counted = (
        reduce(union, sides)
        .groupBy(*key)
        .agg(
            before.alias("before"),
            F.count("after").alias("after"),
            (F.count("is_present") == 0).alias("has_left"),
        )
    )
    return counted.where(~F.col("has_left") | (F.col("before") > 0))


def group_loads(loads: DataFrame, *, knows_owned: bool) -> DataFrame:
    """Sum up the loads of the members that each group has.

    Returns:
        One row a group: cluster_id string, group_id string, min_before, max_before, idle_before
        bigint (null where it is not known what was owned), idle_after bigint.
    """
    idle = F.count_if(F.col("before") == 0) if knows_owned else F.lit(None).cast("bigint")
    return (
        loads.where(~F.col("has_left"))
        .groupBy(*GROUP_KEY)
        .agg(
            F.min("before").alias("min_before"),
            F.max("before").alias("max_before"),
            idle.alias("idle_before"),
            F.count_if(F.col("after") == 0).alias("idle_after"),
        )
    )
