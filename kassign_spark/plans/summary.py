"""One row per group: how many rounds a rebalance takes, what moves and who has to pause."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kassign_spark.conforming import conform, fill_cluster_id, has_cluster_id
from kassign_spark.plans.diff import changes
from kassign_spark.results import to_result
from kassign_spark.schemas import CLUSTER_ID, GROUP_KEY, OWNED

_AT_LAST = "round = rounds AND action IN ('retained', 'assigned')"
"""Rows that show what members have after the last round; they know its number."""


def summarize(steps: DataFrame, owned: DataFrame | None = None) -> DataFrame:
    """Sum up the rounds of every group.

    Args:
        steps: as ``rebalance`` gives them.
        owned: the same ``schemas.OWNED`` as was given to ``rebalance``.

    Returns:
        One row per group that has steps: cluster_id string (where the inputs have it),
        group_id string, rounds int, partition_count bigint: assigned in the end,
        moved_count bigint: of these, with another member than before, also one that left,
        paused_count bigint: partitions that their member stops reading for a while, though it is
        still there: all that members own under the eager protocol, those that change hands under
        the cooperative one, settles boolean: false where the rounds would repeat for ever.

    Raises:
        SchemaError: columns of ``owned`` are missing or of the wrong type.
    """
    has_clusters = has_cluster_id(steps)
    revoked = F.when(F.col("action") == "revoked", F.struct("topic", "partition"))
    summed = (
        _with_rounds(steps)
        .groupBy(*GROUP_KEY)
        .agg(
            F.max("rounds").alias("rounds"),
            F.count_if(F.expr(_AT_LAST)).alias("partition_count"),
            F.count_distinct(revoked).alias("paused_count"),
            (~F.bool_or(F.expr("round = rounds AND action = 'withheld'"))).alias("settles"),
        )
    )
    if owned is None:
        whole = summed.withColumn("moved_count", F.lit(0))
    else:
        before = conform(owned if has_clusters else owned.drop(CLUSTER_ID), OWNED)
        changed = changes(before, _owned_at_last(steps)).where("change = 'moved'")
        moved = changed.groupBy(*GROUP_KEY).agg(F.count("*").alias("moved_count"))
        whole = summed.join(moved, list(GROUP_KEY), "left").fillna(0, "moved_count")
    return to_result(whole, "summarize", has_cluster_id=has_clusters)


def _owned_at_last(steps: DataFrame) -> DataFrame:
    last = _with_rounds(steps).where(_AT_LAST)
    return last.select(*GROUP_KEY, "member_id", "topic", "partition")


def _with_rounds(steps: DataFrame) -> DataFrame:
    keyed = fill_cluster_id(steps)
    last = keyed.groupBy(*GROUP_KEY).agg(F.max("round").alias("rounds"))
    return keyed.join(last, on=list(GROUP_KEY), how="inner")
