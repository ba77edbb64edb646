"""One row an event and group: what moves, who pauses, in how many rounds."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kassign_spark.conforming import has_cluster_id
from kassign_spark.results import answer
from kassign_spark.schemas import CLUSTER_ID, GROUP_KEY

_TOLD_ONCE = ["kind", "rebalance", "reason", "assignor", "protocol"]
_TOLD_ONCE += ["noticed_within_ms", "joined_within_ms", "computed_within_ms", "settled_within_ms"]
_TOLD_ONCE += ["group_epoch", "verdict", "detail"]


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
    told_once = [*key, *_TOLD_ONCE, "rounds"]
    last = f"coalesce(max(round) over (partition by {', '.join(key)}), 0) as rounds"
    had = "round = 0 or (round = 1 and action in ('retained', 'revoked'))"
    holds = "round = rounds and action in ('retained', 'assigned')"
    by_partition = (
        f"collect_set(if({had}, member_id, null)) as had",
        f"max(if({holds}, member_id, null)) as has",
        "collect_set(if(round > 0 and action = 'revoked', member_id, null)) as paused",
        "bool_or(round = 0) as stopped",
        "bool_or(round = rounds and action = 'withheld') as withheld",
    )
    is_moved = "has is not null and size(had) > 0 and not array_contains(had, has)"
    by_event = (
        "count(has) as partition_count",
        f"count_if({is_moved}) as moved_count",
        "count_if(size(paused) > 0) as paused_count",
        "size(array_distinct(flatten(collect_list(paused)))) as paused_member_count",
        "count_if(stopped) as stopped_count",
        "not (coalesce(bool_or(withheld), false) or verdict <=> 'never_settles') as settles",
    )
    told = simulated.withColumn(CLUSTER_ID, cluster).selectExpr("*", last)
    summed = (
        told.groupBy(*told_once, "topic", "partition")
        .agg(*map(F.expr, by_partition))
        .groupBy(*told_once)
        .agg(*map(F.expr, by_event))
    )
    return answer(summed, "summarize_events", has_cluster_id=given)
