"""Find the broker that coordinates each group, and the load of groups on each coordinator."""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from kassign_spark.conforming import check_same_clusters, conform, has_cluster_id
from kassign_spark.errors import InputError
from kassign_spark.expressions import java_hash_code
from kassign_spark.results import to_result
from kassign_spark.schemas import CLUSTER_ID, GROUP_KEY, LEADERS, MEMBERS, OWNED, table_of

OFFSETS_TOPIC = "__consumer_offsets"
DEFAULT_OFFSETS_PARTITIONS = 50
"""Kafka's default of ``offsets.topic.num.partitions``."""

_GROUPS = table_of("groups", "cluster_id string?, group_id string")


def coordinator_partition(
    group_id: Column, num_partitions: Column | int = DEFAULT_OFFSETS_PARTITIONS
) -> Column:
    """Return the partition of ``__consumer_offsets`` whose leader coordinates a group.

    ``Utils.abs(groupId.hashCode()) % num_partitions`` (``GroupMetadataManager.partitionFor``); the
    ``abs`` of the least int is 0 there. Transactional ids map to ``__transaction_state`` alike.

    Args:
        group_id: string; null gives null.
        num_partitions: ``offsets.topic.num.partitions``. As a column: null where it is null or
            less than 1.

    Returns:
        int in 0..num_partitions-1.

    Raises:
        InputError: ``num_partitions`` is a number less than 1.

    Example:
        >>> rows = [("polygenelubricants",), ("my-group",), ("组",), ("connect-cluster",)]
        >>> groups = spark.createDataFrame(rows, "group_id STRING")
        >>> groups.select("*", coordinator_partition(F.col("group_id")).alias("at")).show()
        +------------------+---+
        |          group_id| at|
        +------------------+---+
        |polygenelubricants|  0|
        |          my-group| 12|
        |                组|  2|
        |   connect-cluster| 13|
        +------------------+---+
        <BLANKLINE>
    """
    # Only the least int has the 32nd bit set in its absolute value; without that bit it is 0.
    absolute = F.abs(java_hash_code(group_id).cast("bigint")).bitwiseAND(F.lit(0x7FFF_FFFF))
    return modulo(absolute, num_partitions).cast("int")


def modulo(number: Column, num_partitions: Column | int) -> Column:
    """Bring a number >= 0 into 0..num_partitions-1; null where a column has no such count.

    Raises:
        InputError: ``num_partitions`` is a number less than 1.
    """
    if isinstance(num_partitions, Column):
        return number % F.when(num_partitions >= 1, num_partitions)
    if isinstance(num_partitions, bool) or num_partitions < 1:
        raise InputError(f"num_partitions is {num_partitions!r}; give a whole number of 1 or more")
    return number % num_partitions


def coordinators(
    groups: DataFrame, leaders: DataFrame, *, num_partitions: int | None = None
) -> DataFrame:
    """Find the coordinator of each group.

    Args:
        groups: any frame with cluster_id string? and group_id string; rows of one group count once.
        leaders: ``LEADERS``: cluster_id string?, topic string, partition int, leader int?; topics
            other than ``__consumer_offsets`` are not looked at. Of a partition given twice, the
            higher leader counts.
        num_partitions: partitions of ``__consumer_offsets``; None: as many as ``leaders`` shows
            of it in the group's cluster.

    Returns:
        cluster_id string (where the inputs have it), group_id string, coordinator_partition int,
        coordinator int: a broker's id, null where the partition has no known leader.

    Raises:
        InputError: ``num_partitions`` is less than 1.
        SchemaError: columns are missing or of the wrong type, or only one table has cluster_id.
    """
    check_same_clusters([(_GROUPS, groups), (LEADERS, leaders)])
    by_group = _coordinators(conform(groups, _GROUPS), conform(leaders, LEADERS), num_partitions)
    return to_result(by_group, "coordinators", has_cluster_id=has_cluster_id(groups))


def coordinator_load(
    members: DataFrame,
    leaders: DataFrame,
    owned: DataFrame | None = None,
    *,
    num_partitions: int | None = None,
    hot_ratio: float = 2.0,
) -> DataFrame:
    """Measure what the groups of a fleet ask of each coordinator.

    Members send heartbeats and joins; owned partitions stand for offset commits.

    Args:
        members: ``schemas.MEMBERS``.
        leaders: ``LEADERS``, as ``coordinators`` takes it.
        owned: ``schemas.OWNED`` or an assignment.
        num_partitions: partitions of ``__consumer_offsets``; None: as many as ``leaders`` shows.
        hot_ratio: from how many times the mean of its cluster on a coordinator is a hot spot.

    Returns:
        One row per broker that leads a partition of ``__consumer_offsets``, idle ones included, and
        one with a null coordinator for groups that have none: cluster_id string (where the inputs
        have it), coordinator int, coordinator_partition_count bigint: partitions of
        ``__consumer_offsets`` it leads, group_count bigint, member_count bigint, partition_count
        bigint (null without ``owned``), load_ratio double: members, or owned partitions if that
        is more, over the mean of the cluster's coordinators (null where there is none to
        compare), is_hot boolean.

    Raises:
        InputError: ``num_partitions`` is less than 1 or ``hot_ratio`` not above 0.
        SchemaError: columns are missing or of the wrong type, or only some have cluster_id.
    """
    if not hot_ratio > 0:
        raise InputError(f"hot_ratio is {hot_ratio!r}; give a number above 0")
    check_same_clusters([(MEMBERS, members), (LEADERS, leaders), (OWNED, owned)])
    known_leaders = conform(leaders, LEADERS)
    groups = conform(members, MEMBERS).groupBy(*GROUP_KEY).agg(F.count("*").alias("members"))
    if owned is not None:
        of_group = conform(owned, OWNED).groupBy(*GROUP_KEY).agg(F.count("*").alias("partitions"))
        groups = groups.join(of_group, on=list(GROUP_KEY), how="left").fillna(0, "partitions")
    else:
        groups = groups.withColumn("partitions", F.lit(None).cast("bigint"))
    by_group = _coordinators(groups.select(*GROUP_KEY), known_leaders, num_partitions)
    by_coordinator = (
        groups.join(by_group, on=list(GROUP_KEY), how="inner")
        .groupBy(CLUSTER_ID, "coordinator")
        .agg(
            F.count("*").alias("group_count"),
            F.sum("members").alias("member_count"),
            F.sum("partitions").alias("partition_count"),
        )
    )
    return to_result(
        _with_ratios(_on_every_broker(by_coordinator, known_leaders, owned is not None), hot_ratio),
        "coordinator_load",
        has_cluster_id=has_cluster_id(members),
    )


def _coordinators(groups: DataFrame, leaders: DataFrame, num_partitions: int | None) -> DataFrame:
    led = leaders.where(F.col("topic") == OFFSETS_TOPIC)
    group_keys = groups.distinct()
    if num_partitions is None:
        counts = led.groupBy(CLUSTER_ID).agg((F.max("partition") + 1).alias("num_partitions"))
        group_keys = group_keys.join(F.broadcast(counts), on=CLUSTER_ID, how="left")
        partition = coordinator_partition(F.col("group_id"), F.col("num_partitions"))
    else:
        partition = coordinator_partition(F.col("group_id"), num_partitions)
    placed = group_keys.select(*GROUP_KEY, partition.alias("coordinator_partition"))
    leader = F.when(F.col("leader") >= 0, F.col("leader").cast("int"))
    brokers = led.groupBy(
        CLUSTER_ID, F.col("partition").cast("int").alias("coordinator_partition")
    ).agg(F.max(leader).alias("coordinator"))
    return placed.join(F.broadcast(brokers), [CLUSTER_ID, "coordinator_partition"], "left")


def _on_every_broker(
    by_coordinator: DataFrame, leaders: DataFrame, knows_partitions: bool
) -> DataFrame:
    """Add the brokers that could coordinate but have no group, with zeros."""
    brokers = (
        leaders.where((F.col("topic") == OFFSETS_TOPIC) & (F.col("leader") >= 0))
        .groupBy(CLUSTER_ID, F.col("leader").cast("int").alias("coordinator"))
        .agg(F.count_distinct("partition").alias("coordinator_partition_count"))
    )
    counts = ["coordinator_partition_count", "group_count", "member_count"]
    every = brokers.join(by_coordinator, on=[CLUSTER_ID, "coordinator"], how="full")
    return every.fillna(0, [*counts, "partition_count"] if knows_partitions else counts)


def _with_ratios(loads: DataFrame, hot_ratio: float) -> DataFrame:
    is_broker = F.col("coordinator").isNotNull()
    in_cluster = Window.partitionBy(CLUSTER_ID)

    def over_mean(count: str) -> Column:
        mean = F.avg(F.when(is_broker, F.col(count))).over(in_cluster)
        return F.when(is_broker, F.try_divide(F.col(count).cast("double"), mean))

    ratio = F.greatest(over_mean("member_count"), over_mean("partition_count"))
    is_hot = F.coalesce(ratio >= F.lit(hot_ratio), F.lit(False))
    return loads.withColumns({"load_ratio": ratio, "is_hot": is_hot})
