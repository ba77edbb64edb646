"""One row a group: how it is loaded before and after, what moves, what it goes through."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from kassign_spark.around.coordinators import (
    DEFAULT_OFFSETS_PARTITIONS,
    coordinators,
)
from kassign_spark.measures.balance import balance
from kassign_spark.report.followed import Followed
from kassign_spark.report.plan import Plan
from kassign_spark.schemas import (
    ASSIGNMENT,
    GROUP_KEY,
    MEMBERS,
    OWNED,
    conform,
    fill_cluster_id,
    has_cluster_id,
    restore_cluster_id,
)

GROUP_COLUMNS = (
    *GROUP_KEY,
    *("assignor", "member_count", "partition_count"),
    *("min_before", "max_before", "idle_before"),
    *("min_assigned", "max_assigned", "mean_assigned", "stddev_assigned", "idle_after"),
    *("is_balance_optimal", "moved", "least_moves", "cross_rack_count"),
    *("protocol", "planned_rounds", "planned_paused", "planned_settles", "withheld_count"),
    *("eager_rounds", "eager_moved", "eager_paused"),
    *("cooperative_rounds", "cooperative_moved", "cooperative_paused", "cooperative_settles"),
    *("coordinator_partition", "coordinator", "problem_count", "violation_count"),
)


def worst_first() -> list[Column | str]:
    """The order of groups: broken plans, then uneven loads, then long pauses, then names."""
    return [
        F.col("violation_count").desc(),
        F.col("planned_settles").asc_nulls_last(),
        (F.col("max_assigned") - F.col("min_assigned")).desc(),
        F.col("stddev_assigned").desc(),
        F.col("planned_paused").desc_nulls_last(),
        F.col("problem_count").desc(),
        *GROUP_KEY,
    ]


def member_loads(final: DataFrame, members: DataFrame, owned: DataFrame | None) -> DataFrame:
    """Count what each member holds before and after.

    Args:
        final: ``schemas.ASSIGNMENT``.
        members: ``schemas.MEMBERS``.
        owned: ``schemas.OWNED``: each claim counts, also one that another member disputes.

    Returns:
        cluster_id string, group_id string, member_id string, before bigint (null without
        ``owned``), after bigint, has_left boolean: it owns partitions and is not in the group.
    """
    key = [*GROUP_KEY, "member_id"]
    present = conform(members, MEMBERS).select(*key, F.lit(False).alias("has_left")).distinct()
    after = conform(final, ASSIGNMENT).groupBy(*key).agg(F.count("*").alias("after"))
    none = F.lit(0).cast("bigint")
    if owned is None:
        before = after.select(*key, F.lit(None).cast("bigint").alias("before"))
        known = F.lit(None).cast("bigint")
    else:
        claims = conform(owned, OWNED).select(*key, "topic", "partition").distinct()
        before = claims.groupBy(*key).agg(F.count("*").alias("before"))
        known = F.coalesce("before", none)
    counted = present.join(before, on=key, how="full").join(after, on=key, how="left")
    return counted.select(
        *key,
        known.alias("before"),
        F.coalesce("after", none).alias("after"),
        F.coalesce("has_left", F.lit(True)).alias("has_left"),
    ).join(present.select(*GROUP_KEY).distinct(), on=list(GROUP_KEY), how="left_semi")


def measure_groups(
    plan: Plan, followed: Followed, loads: DataFrame, problems: DataFrame
) -> DataFrame:
    """Measure every group of a plan.

    Args:
        plan: what is reported.
        followed: its rebalances.
        loads: as ``member_loads`` gives them.
        problems: as ``validate`` gives them.

    Returns:
        One row a group, ``GROUP_COLUMNS``. A group that withholds partitions is measured as it is
        after its last round.
    """
    of_members = (
        loads.where(~F.col("has_left"))
        .groupBy(*GROUP_KEY)
        .agg(
            F.min("before").alias("min_before"),
            F.max("before").alias("max_before"),
            F.count_if(F.col("before") == 0).alias("idle_before"),
            F.count_if(F.col("after") == 0).alias("idle_after"),
        )
    )
    measured = _balance_in_the_end(plan, followed)
    for each in (
        of_members,
        followed.rounds,
        followed.withheld,
        _coordinators(plan),
        _counted(fill_cluster_id(problems), "problem_count"),
        _counted(plan.violations, "violation_count"),
    ):
        measured = measured.join(each, on=list(GROUP_KEY), how="left")
    if plan.snapshot.owned is None:
        unknown = F.lit(None).cast("bigint")
        measured = measured.withColumns({"idle_before": unknown, "least_moves": unknown})
    counts = ("withheld_count", "problem_count", "violation_count")
    return (
        measured.withColumns({name: F.coalesce(name, F.lit(0)) for name in counts})
        .withColumnRenamed("moved_count", "moved")
        .select(*GROUP_COLUMNS)
    )


def _balance_in_the_end(plan: Plan, followed: Followed) -> DataFrame:
    """Take the plan's balance, and measure anew the groups that it leaves amid their rounds."""
    if followed.withheld.isEmpty():
        return plan.balance
    keys = list(GROUP_KEY)
    columns = [name for name in plan.balance.columns if name not in (*GROUP_KEY, "assignor")]

    def of_withholding(frame: DataFrame) -> DataFrame:
        kept = fill_cluster_id(frame).join(followed.withheld, on=keys, how="left_semi")
        return restore_cluster_id(kept, has_cluster_id(frame))

    members, topics, owned = plan.snapshot
    again = balance(
        of_withholding(followed.final),
        of_withholding(members),
        None if owned is None else of_withholding(owned),
        topics,
    )
    later = fill_cluster_id(again).join(
        plan.balance.select(*GROUP_KEY, "assignor"), on=keys, how="inner"
    )
    at_once = plan.balance.join(followed.withheld, on=keys, how="left_anti")
    wanted = [*GROUP_KEY, "assignor", *columns]
    return at_once.select(*wanted).unionByName(later.select(*wanted))


def _coordinators(plan: Plan) -> DataFrame:
    count = DEFAULT_OFFSETS_PARTITIONS if plan.leaders.isEmpty() else None
    found = coordinators(plan.snapshot.members, plan.leaders, num_partitions=count)
    return fill_cluster_id(found)


def _counted(frame: DataFrame, name: str) -> DataFrame:
    return frame.groupBy(*GROUP_KEY).agg(F.count("*").alias(name))


def totals() -> dict[str, Column]:
    """Aggregates over ``GROUP_COLUMNS``: the numbers of the whole fleet."""

    def total(column: str) -> Column:
        return F.coalesce(F.sum(column), F.lit(0))

    def count_if(condition: Column) -> Column:
        return F.count_if(F.coalesce(condition, F.lit(False)))

    found = {
        "group_count": F.count(F.lit(1)),
        "member_count": total("member_count"),
        "partition_count": total("partition_count"),
        "idle_before": F.sum("idle_before"),
        "idle_after": total("idle_after"),
        "idle_group_count": count_if(F.col("idle_after") > 0),
        "uneven_count": count_if(~F.col("is_balance_optimal")),
        "least_moves": F.sum("least_moves"),
        "cross_rack_count": F.sum("cross_rack_count"),
        "cross_rack_group_count": count_if(F.col("cross_rack_count") > 0),
        "moving_group_count": count_if(F.col("moved") > 0),
        "moved": F.sum("moved"),
        "withheld_count": total("withheld_count"),
        "unsettled_count": count_if(~F.col("planned_settles")),
        "violation_count": total("violation_count"),
        "problem_group_count": count_if(F.col("problem_count") > 0),
        "eager_group_count": count_if(F.col("protocol") == "eager"),
        "planned_moved": F.sum("moved"),
    }
    for protocol in ("planned", "eager", "cooperative"):
        if protocol != "planned":
            found[f"{protocol}_moved"] = F.sum(f"{protocol}_moved")
        found[f"{protocol}_paused"] = total(f"{protocol}_paused")
        found[f"{protocol}_rounds"] = F.coalesce(F.max(f"{protocol}_rounds"), F.lit(0))
        found[f"{protocol}_paused_groups"] = count_if(F.col(f"{protocol}_paused") > 0)
    return found


SPREADS = (0, 1, 2, 5, 10, 20, 50, 100, 1000)
"""Upper ends of the classes in which groups are counted by spread; beyond the last is one more."""


def spread_classes(groups: DataFrame) -> DataFrame:
    """Count groups by the spread of their loads.

    Returns:
        class int: place in ``SPREADS``, or its length, before bigint, after bigint.
    """

    def place(most: str, least: str) -> Column:
        spread = F.col(most) - F.col(least)
        found = F.when(spread.isNull(), None)
        for i, limit in enumerate(SPREADS):
            found = found.when(spread <= limit, i)
        return found.otherwise(len(SPREADS))

    each = groups.select(
        F.explode(
            F.array(
                *(
                    F.struct(F.lit(when).alias("when"), place(most, least).alias("class"))
                    for when, most, least in (
                        ("before", "max_before", "min_before"),
                        ("after", "max_assigned", "min_assigned"),
                    )
                )
            )
        ).alias("each")
    ).select("each.*")
    return (
        each.where(F.col("class").isNotNull())
        .groupBy("class")
        .agg(
            F.count_if(F.col("when") == "before").alias("before"),
            F.count_if(F.col("when") == "after").alias("after"),
        )
        .orderBy("class")
    )
