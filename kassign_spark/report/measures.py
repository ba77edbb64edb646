"""One row per group: how it is loaded before and after, what moves, what it goes through."""

from itertools import pairwise
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from kassign_spark.brokers.coordinator import coordinator_partition, coordinators
from kassign_spark.conforming import fill_cluster_id, has_cluster_id, restore_cluster_id
from kassign_spark.measures.balance import balance
from kassign_spark.report.followed import FollowedPlan
from kassign_spark.report.plan import OF_PLAN, Plan
from kassign_spark.schemas import GROUP_KEY
from kassign_spark.spark.sessions import cores
from kassign_spark.spark.spark_versions import union_by_name

GROUP_COLUMNS = (
    *GROUP_KEY,
    *(*OF_PLAN, "member_count", "partition_count"),
    *("min_before", "max_before", "idle_before"),
    *("min_assigned", "max_assigned", "mean_assigned", "stddev_assigned", "is_balance_optimal"),
    *("idle_after", "moved", "least_moves", "cross_rack_count"),
    *("protocol", "planned_rounds", "planned_paused", "planned_settles", "withheld_count"),
    *("eager_rounds", "eager_moved", "eager_paused"),
    *("cooperative_rounds", "cooperative_moved", "cooperative_paused", "cooperative_settles"),
    *("coordinator_partition", "coordinator", "problem_count", "violation_count"),
)


def worst_first() -> list[Column | str]:
    """Return the order of groups: broken plans, then uneven loads, then long pauses, then names."""
    return [
        F.col("violation_count").desc(),
        F.col("planned_settles").asc_nulls_last(),
        (F.col("max_assigned") - F.col("min_assigned")).desc(),
        F.col("stddev_assigned").desc(),
        F.col("planned_paused").desc_nulls_last(),
        F.col("problem_count").desc(),
        *GROUP_KEY,
    ]


def measure_groups(plan: Plan, followed: FollowedPlan, problems: DataFrame) -> DataFrame:
    """Measure every group of a plan, whose problems are as ``validate`` gives them.

    Returns:
        One row per group, ``GROUP_COLUMNS``. A group that withholds partitions is measured as it is
        after its last round.
    """
    frames = {"problem_count": fill_cluster_id(problems)}
    if plan.violations is not None:
        frames["violation_count"] = plan.violations
    sides = [
        _balance_in_the_end(plan, followed).withColumn("is_planned", F.lit(True)),
        followed.groups,
        _coordinators(plan),
        *(frame.select(*GROUP_KEY, F.lit(1).alias(name)) for name, frame in frames.items()),
    ]
    columns = {
        name: F.max(name) for side in sides for name in side.columns if name not in GROUP_KEY
    }
    counts = ("withheld_count", "problem_count", "violation_count")
    columns |= {name: F.coalesce(F.sum(name), F.lit(0)) for name in counts if name in columns}
    measures = (
        union_by_name(sides, allow_missing=True)
        # A few rows from each of many parts: no task for every part.
        .coalesce(cores(plan.balance.sparkSession))
        .groupBy(*GROUP_KEY)
        .agg(*(frame.alias(name) for name, frame in columns.items()))
        .where("is_planned")
    )
    if plan.violations is None:
        measures = measures.withColumn("violation_count", F.lit(0).cast("bigint"))
    if plan.snapshot.owned is None:
        measures = measures.withColumn("least_moves", F.lit(None).cast("bigint"))
    return measures.withColumnRenamed("moved_count", "moved").select(*GROUP_COLUMNS)


def _balance_in_the_end(plan: Plan, followed: FollowedPlan) -> DataFrame:
    """Return the plan's balance, measured anew for groups that it leaves amid their rounds."""
    keys, withholding = list(GROUP_KEY), followed.withholding
    if withholding is None:
        return plan.balance

    def of_withholding(frame: DataFrame) -> DataFrame:
        incomplete = fill_cluster_id(frame).join(withholding, on=keys, how="left_semi")
        return restore_cluster_id(incomplete, has_cluster_id(frame))

    members, topics, owned = plan.snapshot
    again = balance(
        of_withholding(followed.final),
        of_withholding(members),
        None if owned is None else of_withholding(owned),
        topics,
    )
    of_plan = plan.balance.select(*GROUP_KEY, *OF_PLAN)
    later = fill_cluster_id(again).join(of_plan, on=keys, how="inner")
    at_once = plan.balance.join(withholding, on=keys, how="left_anti")
    return at_once.unionByName(later.select(*plan.balance.columns))


def _coordinators(plan: Plan) -> DataFrame:
    if plan.leaders is None:
        partition = coordinator_partition(F.col("group_id"))
        return plan.balance.select(*GROUP_KEY, partition.alias("coordinator_partition")).withColumn(
            "coordinator", F.lit(None).cast("int")
        )
    by_group = coordinators(plan.balance.select(*GROUP_KEY), fill_cluster_id(plan.leaders))
    return fill_cluster_id(by_group)


def totals() -> dict[str, Column]:
    """Return aggregates over ``GROUP_COLUMNS``: the numbers of the whole fleet."""

    def total(column: str) -> Column:
        return F.coalesce(F.sum(column), F.lit(0))

    columns = {
        "group_count": F.count(F.lit(1)),
        "member_count": total("member_count"),
        "partition_count": total("partition_count"),
        "idle_before": F.sum("idle_before"),
        "idle_after": total("idle_after"),
        "idle_group_count": F.count_if(F.col("idle_after") > 0),
        "uneven_count": F.count_if(~F.col("is_balance_optimal")),
        "least_moves": F.sum("least_moves"),
        "cross_rack_count": F.sum("cross_rack_count"),
        "cross_rack_group_count": F.count_if(F.col("cross_rack_count") > 0),
        "moving_group_count": F.count_if(F.col("moved") > 0),
        "moved": F.sum("moved"),
        "withheld_count": total("withheld_count"),
        "unsettled_count": F.count_if(~F.col("planned_settles")),
        "violation_count": total("violation_count"),
        "problem_group_count": F.count_if(F.col("problem_count") > 0),
        "eager_group_count": F.count_if(F.col("protocol") == "eager"),
    }
    for protocol in ("planned", "eager", "cooperative"):
        columns[f"{protocol}_moved"] = F.sum(
            "moved" if protocol == "planned" else f"{protocol}_moved"
        )
        columns[f"{protocol}_paused"] = total(f"{protocol}_paused")
        columns[f"{protocol}_rounds"] = F.coalesce(F.max(f"{protocol}_rounds"), F.lit(0))
        columns[f"{protocol}_paused_groups"] = F.count_if(F.col(f"{protocol}_paused") > 0)
    return columns


_SPREADS = (0, 1, 2, 5, 10, 20, 50, 100, 1000)
"""Upper ends of the classes in which groups are counted by spread; beyond the last is one more."""
_CLASSES = list(pairwise((-1, *_SPREADS, 2**63 - 1)))
_LOADS = {"before": "max_before - min_before", "after": "max_assigned - min_assigned"}


def spread_counts() -> dict[str, Column]:
    """Return aggregates over ``GROUP_COLUMNS``: groups by the spread of loads; see ``spreads``."""
    return {
        f"spread_{moment}_{place}": F.expr(f"count_if({spread} > {above} and {spread} <= {most})")
        for moment, spread in _LOADS.items()
        for place, (above, most) in enumerate(_CLASSES)
    }


def spreads(measures: dict[str, Any]) -> list[dict[str, Any]]:
    """Return ``spread_counts`` as dicts of label, before, after, up to the last with any."""
    labels = [
        f"{most}" if most == above + 1 else f"{above + 1:,} to {most:,}" for above, most in _CLASSES
    ]
    labels[-1] = f"over {_SPREADS[-1]:,}"
    rows = [
        {"label": label, **{moment: measures[f"spread_{moment}_{place}"] for moment in _LOADS}}
        for place, label in enumerate(labels)
    ]
    last = max((i for i, row in enumerate(rows) if row["before"] or row["after"]), default=0)
    return rows[: last + 1]
