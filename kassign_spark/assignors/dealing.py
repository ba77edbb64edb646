"""From subscribed topics to one row a partition, for the assignors that deal by arithmetic."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from kassign_spark.schemas import GROUP_KEY


def deal(topics: DataFrame, place: Column) -> DataFrame:
    """Give every partition of every topic to one of the topic's subscribers.

    The only place where partitions are expanded: no join and no shuffle comes after it.

    Args:
        topics: cluster_id string, group_id string, topic string, num_partitions int,
            subscribers array<string>, and further columns that ``place`` needs.
        place: int, an index into ``subscribers``, from these columns and ``partition`` int.

    Returns:
        The columns of ``schemas.ASSIGNMENT``.
    """
    partitions = F.sequence(F.lit(0), F.col("num_partitions") - 1)
    return topics.select("*", F.explode(partitions).alias("partition")).select(
        *GROUP_KEY, F.col("subscribers")[place].alias("member_id"), "topic", "partition"
    )
