"""Results of the public functions: the columns of every result, in order, and their types.

The one way out: as inputs are made to conform, a result is made to be what is declared here, and
has ``cluster_id`` where the caller's tables have it. `docs/columns.md` shows the same.
"""

from collections.abc import Mapping

from pyspark.sql import DataFrame

from kassign_spark.conforming import declare, restore_cluster_id
from kassign_spark.schemas import BALANCE, CLUSTER_ID, VERDICTS, Table

AS_IN_THE_INPUT = "*"
"""The type of a column that the caller's table decides."""


def _columns(text: str) -> dict[str, str]:
    """Read "name type, name type"; a type has no blank in it."""
    return dict(column.split(" ") for column in text.split(", "))


def _of(table: Table) -> dict[str, str]:
    columns = {field.name: field.dataType.simpleString() for field in table.columns}
    return {name: type_ for name, type_ in columns.items() if name != CLUSTER_ID}


_COMPARED = _columns(
    "group_id string, assignor string, protocol string, verdict string, detail string, "
    "member_count int, partition_count bigint, kept bigint, moved bigint, least_moves bigint, "
    "spread bigint, topic_spread bigint, sum_of_squares bigint, least_sum_of_squares bigint, "
    "rounds int, paused bigint, cross_rack bigint, cross_rack_more bigint"
)
_STEPS = _columns(
    "group_id string, round int, member_id string, topic string, partition int, action string"
)

RESULTS: Mapping[str, Mapping[str, str]] = {
    "advise": _columns(
        "group_id string, rank int, change string, detail string, assignor string, "
        "member_ids array<string>, topics array<string>, member_count int, num_partitions int, "
        "max_before bigint, max_after bigint, spread_before bigint, spread_after bigint, "
        "idle_before int, idle_after int, moved bigint, paused bigint, rounds int, gain bigint, "
        "restart_moved bigint, reason string"
    ),
    "balance": _of(BALANCE),
    "balance.weighted": _of(BALANCE)
    | _columns(
        "total_weight double, max_load double, mean_load double, load_skew double, "
        "moved_weight double"
    ),
    "bottlenecks": _columns(
        "group_id string, kind string, part int, level int, member_ids array<string>, "
        "topics array<string>, member_count int, topic_count int, partition_count bigint, "
        "least_max bigint, most_min bigint, even_max bigint, detail string"
    ),
    "check_migration": _columns(
        "group_id string, step string, assignor string, mixes_protocols boolean, "
        "safe_steps array<string>, blocking array<struct<member_id:string,reason:string>>"
    ),
    "check_settings": _columns(
        "client string, setting string, value string, severity string, detail string"
    ),
    "choose_assignors.groups": _columns(
        "group_id string, assignor string, votes array<struct<assignor:string,votes:bigint>>, "
        "protocol string, problem string"
    ),
    "choose_assignors.members": _columns(
        "group_id string, member_id string, assignors array<string>, vote string, protocol string, "
        "detail string"
    ),
    "compare": _COMPARED,
    "compare.weighted": _COMPARED
    | _columns("max_load double, load_skew double, load_bound double, moved_weight double"),
    "coordinator_load": _columns(
        "coordinator int, coordinator_partition_count bigint, group_count bigint, "
        "member_count bigint, partition_count bigint, load_ratio double, is_hot boolean"
    ),
    "coordinators": _columns("group_id string, coordinator_partition int, coordinator int"),
    "deliver": _columns(
        "group_id string, member_id string, partition_count int, "
        "partitions array<struct<topic:string,partition:int>>, topic_partitions string, "
        "spark_assign string"
    ),
    "diff": _columns(
        "group_id string, topic string, partition int, from_member string, to_member string, "
        "change string"
    ),
    "eligibility.vertices": _columns(
        "id bigint, cluster_id string, group_id string, kind string, name string, "
        "topics array<string>, weight bigint, part int"
    ),
    "eligibility.edges": _columns("src bigint, dst bigint, weight bigint"),
    "explain": _columns(
        "group_id string, assignor string, differing_count bigint, detail string, "
        "own_assignor string"
    ),
    "fleet_graph.vertices": _columns("id bigint, cluster_id string, kind string, name string"),
    "fleet_graph.edges": _columns("src bigint, dst bigint, member_count bigint"),
    "group_clusters": _columns(
        "kind string, name string, cluster bigint, group_count bigint, topic_count bigint"
    ),
    "listener_calls": _columns(
        "group_id string, round int, member_id string, call int, moment string, callback string, "
        "partitions array<struct<topic:string,partition:int>>"
    ),
    "member_traffic": _columns(
        "group_id string, member_id string, partition_count bigint, record_count double, "
        "byte_count double, record_share double, load_ratio double, is_hot boolean"
    ),
    "migrate.steps": _columns(
        "group_id string, step int, member_id string, event string, group_type string, "
        "is_rebalance boolean, moved bigint, paused bigint, unread bigint, "
        "pausing_members array<string>, may_lose_members array<string>, "
        "moves array<struct<topic:string,partition:int,from_member_id:string,to_member_id:string>>"
    ),
    "migrate.verdicts": _columns(
        "group_id string, verdict string, way string, detail string, member_count int, "
        "static_count int, step_count int, moved bigint, paused bigint, end_moved bigint, "
        "next_moved bigint, cross_rack_before bigint, cross_rack_after bigint"
    ),
    "moved_keys": _columns(
        "topic string, num_partitions int, new_num_partitions int, key_count bigint, "
        "moved_key_count bigint, moved_share double, record_count bigint, "
        "moved_record_count bigint, moved_record_share double, expected_share double"
    ),
    "null_key_shares": _columns("topic string, partition int, share double, rule string"),
    "partition_traffic": _columns(
        "topic string, partition int, record_count double, byte_count double"
    ),
    "place_records": _columns(
        "topic string, key *, partition bigint, record_count bigint, byte_count bigint, "
        "placed_partition int, placement string"
    ),
    "predict_rebalance.steps": _STEPS,
    "predict_rebalance.verdicts": _of(VERDICTS),
    "rebalance": _STEPS,
    "simulate": _columns(
        "group_id string, event int, stage int, kind string, rebalance boolean, reason string, "
        "assignor string, protocol string, noticed_within_ms bigint, joined_within_ms bigint, "
        "group_epoch int, computed_within_ms bigint, settled_within_ms bigint, verdict string, "
        "detail string, round int, member_id string, topic string, partition int, action string"
    ),
    "summarize": _columns(
        "group_id string, rounds int, partition_count bigint, moved_count bigint, "
        "paused_count bigint, settles boolean"
    ),
    "summarize_events": _columns(
        "group_id string, event int, stage int, kind string, rebalance boolean, reason string, "
        "assignor string, protocol string, noticed_within_ms bigint, joined_within_ms bigint, "
        "computed_within_ms bigint, settled_within_ms bigint, group_epoch int, verdict string, "
        "detail string, rounds int, partition_count bigint, moved_count bigint, "
        "paused_count bigint, paused_member_count bigint, stopped_count bigint, settles boolean"
    ),
    "sweep": _columns(
        "group_id string, sweep int, variant string, member_change int, partition_times int, "
        "partition_more int, member_count bigint, partition_count bigint, min_assigned bigint, "
        "max_assigned bigint, idle_count bigint, moved_count bigint, paused_count bigint, "
        "rounds int, settles boolean, detail string"
    ),
    "touched_by": _columns(
        "topic string, group_id string, member_count bigint, group_member_count bigint, "
        "partition_count bigint, reassigned_count bigint, other_topics array<string>"
    ),
    "touched_groups": _columns(
        "group_id string, topic string, member_count bigint, pattern_count bigint"
    ),
    "validate": _columns(
        "group_id string, member_id string, topic string, partition int, problem string, "
        "detail string"
    ),
    "violations": _columns(
        "group_id string, rule string, member_id string, topic string, partition int, detail string"
    ),
}
"""By function, and by the part of a result that has several; ``cluster_id`` comes first, unless it
is named here."""


def to_result(frame: DataFrame, result: str | Table, *, has_cluster_id: bool) -> DataFrame:
    """Return a result with exactly its columns and types, in order; runs no job.

    Args:
        frame: it has them all, and ``cluster_id`` where the caller's tables have it.
        result: a key of ``RESULTS``, or the table that the result is.
        has_cluster_id: whether the caller's tables name their cluster: an empty string stands for
            a null one.
    """
    if isinstance(result, Table):
        return restore_cluster_id(declare(frame, result), has_cluster_id)
    declared = RESULTS[result]
    columns = {
        name: f"`{name}`" if type_ == AS_IN_THE_INPUT else f"cast(`{name}` as {type_}) as `{name}`"
        for name, type_ in declared.items()
    }
    if CLUSTER_ID not in declared:
        columns = {CLUSTER_ID: ""} | columns
    columns[CLUSTER_ID] = f"nullif({CLUSTER_ID}, '') as {CLUSTER_ID}"
    if not has_cluster_id:
        del columns[CLUSTER_ID]
    return frame.selectExpr(*columns.values())


def columns_of(result: str) -> str:
    """Return a result's columns (``RESULTS``) as Spark reads a schema, ``cluster_id`` first."""
    columns = {CLUSTER_ID: "string", **RESULTS[result]}
    return ", ".join(f"{name} {type_}" for name, type_ in columns.items())
