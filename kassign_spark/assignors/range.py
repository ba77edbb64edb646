"""Kafka's RangeAssignor without racks: consecutive blocks of each topic, the first ones longer."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from kassign_spark.assignors.dealing import deal
from kassign_spark.eligibility.groups import Eligible
from kassign_spark.settings import Settings


def assign_range(eligible: Eligible, settings: Settings) -> DataFrame:
    """Assign as ``org.apache.kafka.clients.consumer.RangeAssignor`` does.

    Of a topic with n partitions and k subscribers in MemberInfo order, the first n mod k get
    n div k + 1 consecutive partitions each, the others n div k.

    Returns:
        The columns of ``schemas.ASSIGNMENT``.
    """
    return deal(eligible.groups, _block_of, settings)


def _block_of(partition: Column, topic: Column, subscriber_count: Column) -> Column:
    num_partitions = topic["num_partitions"]
    length = F.call_function("div", num_partitions, subscriber_count)
    longer_blocks = num_partitions % subscriber_count
    in_longer_blocks = longer_blocks * (length + 1)
    return (
        F.when(partition < in_longer_blocks, F.call_function("div", partition, length + 1))
        # Reached only where length >= 1; greatest() keeps the plan free of a division by zero.
        .otherwise(
            longer_blocks
            + F.call_function(
                "div", partition - in_longer_blocks, F.greatest(length, F.lit(1).cast("bigint"))
            )
        )
        .cast("int")
    )
