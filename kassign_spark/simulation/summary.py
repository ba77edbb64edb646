"""One row an event and group: what moves, who pauses, in how many rounds."""

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from kassign_spark.conforming import has_cluster_id
from kassign_spark.results import answer
from kassign_spark.schemas import CLUSTER_ID, GROUP_KEY

_EVENT = ["event", "stage", "kind", "rebalance", "reason", "assignor", "protocol"]
_TIMES = ["noticed_within_ms", "joined_within_ms", "computed_within_ms", "settled_within_ms"]
_OF_CONSUMERS = ["group_epoch", "verdict", "detail"]


def summarize_events(simulated: DataFrame) -> DataFrame:
    """Sum up what ``simulate`` tells.

    Args:
        simulated: as ``simulate`` gives it.

    Returns:
        One row an event, stage and group: cluster_id string (where the input has it), group_id
        string, event int, stage int, kind string, rebalance boolean, reason string, assignor
        string, protocol string, noticed_within_ms bigint, joined_within_ms bigint,
        computed_within_ms bigint, settled_within_ms bigint, group_epoch int, verdict string, detail
        string (all as of ``simulate``), rounds int,
        partition_count bigint: assigned in the end, moved_count bigint: of these, with another
        member than before, paused_count bigint: partitions that their member, still there, stops
        reading for a while, paused_member_count bigint: members that do, stopped_count bigint:
        partitions that nobody reads since their member went, settles boolean: false where the
        rounds would repeat for ever. All counts are 0 where there is no rebalance.
    """
    given = has_cluster_id(simulated)
    cluster = F.coalesce(CLUSTER_ID, F.lit("")) if given else F.lit("")
    key = [*GROUP_KEY, "event", "stage"]
    told_once = [*_EVENT[2:], *_TIMES, *_OF_CONSUMERS, "rounds"]
    last = F.coalesce(F.max("round").over(Window.partitionBy(*key)), F.lit(0))
    told = simulated.withColumn(CLUSTER_ID, cluster).withColumn("rounds", last)
    number, action = F.col("round"), F.col("action")
    is_last = number == F.col("rounds")
    had = (number == 0) | ((number == 1) & action.isin("retained", "revoked"))
    holds = is_last & action.isin("retained", "assigned")
    paused = (number > 0) & (action == "revoked")
    by_partition = told.groupBy(*key, *told_once, "topic", "partition").agg(
        F.collect_set(F.when(had, F.col("member_id"))).alias("had"),
        F.max(F.when(holds, F.col("member_id"))).alias("has"),
        F.collect_set(F.when(paused, F.col("member_id"))).alias("paused"),
        F.bool_or(number == 0).alias("stopped"),
        F.bool_or(is_last & (action == "withheld")).alias("withheld"),
    )
    is_moved = (
        F.col("has").isNotNull() & (F.size("had") > 0) & ~F.array_contains("had", F.col("has"))
    )
    is_endless = F.coalesce(F.col("verdict") == "never_settles", F.lit(False))
    summed = by_partition.groupBy(*key, *told_once).agg(
        F.count("has").alias("partition_count"),
        F.count_if(is_moved).alias("moved_count"),
        F.count_if(F.size("paused") > 0).alias("paused_count"),
        F.size(F.array_distinct(F.flatten(F.collect_list("paused"))))
        .cast("bigint")
        .alias("paused_member_count"),
        F.count_if("stopped").alias("stopped_count"),
        (~F.coalesce(F.bool_or("withheld"), F.lit(False))).alias("settles"),
    )
    summed = summed.withColumn("settles", F.col("settles") & ~is_endless)
    return answer(summed, "summarize_events", has_cluster_id=given)
