"""Predict where records without a key go: random in every client, so a distribution."""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.window import WindowSpec

from kassign_spark.conforming import conform, has_cluster_id
from kassign_spark.results import to_result
from kassign_spark.schemas import CLUSTER_ID, table_of
from kassign_spark.settings.client_versions import version_of

PARTITIONS = table_of(
    "partitions",
    "cluster_id string?, topic string, partition int, leader int, queue_size int?, "
    "is_slow boolean?",
)
"""Partitions as one producer sees them."""

STICKY_SINCE = version_of("2.4.0")
BUILT_IN_SINCE = version_of("3.3.0")


def null_key_shares(
    partitions: DataFrame, client_version: str, *, adaptive: bool = True
) -> DataFrame:
    """Return the share of a producer's records without a key for each partition.

    - Up to 2.3 (``DefaultPartitioner``): in turn over the available partitions, from a random one.
    - 2.4 to 3.2 (KIP-480): a random available partition, kept until a batch is complete; an even
      share of the batches. Slow partitions get fuller batches, so more records, by an amount that
      depends on the run (KAFKA-10888) and is not in these shares.
    - 3.3 and later (KIP-794): a random available partition, changed after ``batch.size`` bytes.
      With the adaptive rule (``partitioner.adaptive.partitioning.enable``, the default) a
      partition's chance is in proportion to (longest queue + 1 - its own queue), once the queues
      are known and differ.

    Available is a partition with a leader; without any, all are. A producer that chooses partitions
    by rack (4.x, off by default) is not modelled.

    Args:
        partitions: ``PARTITIONS``, one row per partition: cluster_id string?, topic string,
            partition int, leader int (null or negative: none), queue_size int? (batches waiting in
            the producer, null: not known), is_slow boolean? (left out by
            ``partitioner.availability.timeout.ms``).
        client_version: of the producer, such as ``3.9.1``.
        adaptive: whether the adaptive rule is on, where the version has it.

    Returns:
        cluster_id string (where the input has it), topic string, partition int, share double (a
        topic's shares add up to 1), rule string: `round_robin`, `sticky`, `uniform`, `adaptive`.

    Raises:
        InputError: ``client_version`` is no version.
        SchemaError: columns are missing or of the wrong type.
    """
    version = version_of(client_version)
    partition_rows = conform(partitions, PARTITIONS)
    in_topic = Window.partitionBy(CLUSTER_ID, "topic")
    has_leader = F.coalesce(F.col("leader") >= 0, F.lit(False))
    is_available = has_leader | ~F.max(has_leader).over(in_topic)
    even = F.when(is_available, 1).otherwise(0)
    if version < BUILT_IN_SINCE:
        weight, rule = even, F.lit("round_robin" if version < STICKY_SINCE else "sticky")
    else:
        is_adaptive, adapted = _adaptive(has_leader, in_topic) if adaptive else (F.lit(False), even)
        weight = F.when(is_adaptive, adapted).otherwise(even)
        rule = F.when(is_adaptive, "adaptive").otherwise("uniform")
    weighed = partition_rows.withColumns({"weight": weight, "rule": rule})
    shares = weighed.withColumn("share", F.col("weight") / F.sum("weight").over(in_topic))
    return to_result(shares, "null_key_shares", has_cluster_id=has_cluster_id(partitions))


def _adaptive(has_leader: Column, in_topic: WindowSpec) -> tuple[Column, Column]:
    """Return whether the adaptive rule holds for a partition's topic, and the partition's weight.

    As ``BuiltInPartitioner.updatePartitionLoadStats``: not with fewer than two partitions, not
    when all queues are equal and no partition is left out as slow, nor when all are left out.
    """
    is_slow = F.coalesce("is_slow", F.lit(False))
    counts = has_leader & ~is_slow
    queue = F.when(counts, F.col("queue_size"))
    longest = F.max(queue).over(in_topic)
    differ = (F.min(queue).over(in_topic) != longest) | F.max(has_leader & is_slow).over(in_topic)
    all_known = F.count(F.when(has_leader & F.col("queue_size").isNull(), 1)).over(in_topic) == 0
    enough = F.count(F.when(has_leader, 1)).over(in_topic) >= 2
    holds = F.coalesce(all_known & enough & differ & longest.isNotNull(), F.lit(False))
    return holds, F.when(counts, longest + 1 - queue).otherwise(0)
