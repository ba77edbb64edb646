"""From what each topic deals to one row a partition: the only place that expands partitions.

Range and RoundRobin both give partition ``p`` of a topic to a subscriber whose place among the
topic's subscribers is arithmetic on ``p``. So everything before this step works on groups and
topics, and this step explodes a sequence, without a join or a shuffle of partitions.
"""

from collections.abc import Callable

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from kassign_spark.schemas import GROUP_KEY
from kassign_spark.settings import Settings

Dealer = Callable[[Column, Column, Column], Column]
"""Says whose a partition is: (partition int, its topic struct, number of subscribers int) -> int.

The answer is an index into the topic's subscribers in MemberInfo order.
"""


def deal(groups: DataFrame, dealer: Dealer, settings: Settings) -> DataFrame:
    """Give every partition of every group to the subscriber that ``dealer`` names.

    Args:
        groups: as ``eligibility.groups.fold_groups`` gives it; the structs in ``topics`` may carry
            further fields for ``dealer``.
        dealer: arithmetic on columns.
        settings: ``partitions_per_task`` cuts a large group, so that several tasks write it.

    Returns:
        The columns of ``schemas.ASSIGNMENT``.
    """
    slices = groups.withColumn("topics", F.explode(_slices(settings.partitions_per_task)))
    # A few rows become millions right behind this exchange: adaptive execution, which sees only
    # the few, would put them into one task, but leaves a number given by name alone.
    tasks = int(groups.sparkSession.conf.get("spark.sql.shuffle.partitions") or 0)
    topics = slices.repartition(tasks).select(
        *GROUP_KEY, "members", "subscriber_ranks", F.explode("topics").alias("dealt")
    )
    partitions = topics.select(
        *GROUP_KEY,
        "members",
        "dealt",
        F.col("subscriber_ranks")[F.col("dealt")["subscribers"]].alias("subscribers"),
        F.explode(F.sequence(F.lit(0), F.col("dealt")["num_partitions"] - 1)).alias("partition"),
    )
    place = dealer(F.col("partition"), F.col("dealt"), F.size("subscribers"))
    return partitions.select(
        *GROUP_KEY,
        F.col("members")[F.col("subscribers")[place]].alias("member_id"),
        F.col("dealt")["topic"].alias("topic"),
        "partition",
    )


def _slices(partitions_per_task: int) -> Column:
    """Cut a group's topics into arrays of about so many partitions each."""
    partition_count = F.aggregate(
        "topics", F.lit(0).cast("bigint"), lambda total, t: total + t["num_partitions"]
    )
    topic_count = F.size("topics")
    topics_per_slice = F.ceil(topic_count * partitions_per_task / partition_count).cast("int")
    starts = F.sequence(F.lit(1), topic_count, topics_per_slice)
    return F.transform(starts, lambda start: F.slice("topics", start, topics_per_slice))
