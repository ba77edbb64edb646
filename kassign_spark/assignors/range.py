"""Kafka's RangeAssignor: consecutive blocks of each topic, the first ones longer."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from kassign_spark.assignors.dealing import deal
from kassign_spark.assignors.in_tasks import RANGE
from kassign_spark.assignors.one_task import assign_in_tasks
from kassign_spark.assignors.sizes import split_by_racks
from kassign_spark.eligibility.groups import Eligible
from kassign_spark.eligibility.subscribers import heterogeneous_topics, homogeneous_topics
from kassign_spark.expressions import div
from kassign_spark.settings import Settings


def assign_range(eligible: Eligible, settings: Settings) -> DataFrame:
    """Assign as ``org.apache.kafka.clients.consumer.RangeAssignor`` does.

    Of a topic with n partitions and k subscribers in MemberInfo order, the first n mod k get
    n div k + 1 consecutive partitions each, the others n div k. Where racks count, members get as
    many, but first of what has a replica in their own rack: that is sequential inside a group, and
    such groups are answered inside tasks.

    Returns:
        The columns of ``schemas.ASSIGNMENT``.
    """
    by_racks, others = split_by_racks(eligible, settings)
    parts = [] if others is None else [_in_blocks(others, settings)]
    if by_racks is not None:
        parts.append(assign_in_tasks(by_racks, settings, RANGE).drop("is_moving"))
    return parts[0] if len(parts) == 1 else parts[0].unionByName(parts[1])


def _in_blocks(eligible: Eligible, settings: Settings) -> DataFrame:
    topics = homogeneous_topics(eligible, settings)
    if eligible.heterogeneous:
        topics = topics.unionByName(heterogeneous_topics(eligible).drop("subscriber_ranks"))
    return deal(topics, _block_of_partition())


def _block_of_partition() -> Column:
    """Number the block that a partition lies in, from partition, num_partitions, subscribers."""
    partition, subscriber_count = F.col("partition"), F.size("subscribers")
    length = div(F.col("num_partitions"), subscriber_count)
    longer_blocks = F.col("num_partitions") % subscriber_count
    in_longer_blocks = longer_blocks * (length + 1)
    return (
        F.when(partition < in_longer_blocks, div(partition, length + 1))
        # Reached only where length >= 1; greatest() keeps the plan free of a division by zero.
        .otherwise(
            longer_blocks
            + div(partition - in_longer_blocks, F.greatest(length, F.lit(1).cast("bigint")))
        )
        .cast("int")
    )
