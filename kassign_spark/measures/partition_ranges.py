"""Holdings in a form short enough for people: ranges of partitions by member and topic."""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from kassign_spark.conforming import conform
from kassign_spark.schemas import ASSIGNMENT, GROUP_KEY, MEMBERS


def holdings(assignment: DataFrame, members: DataFrame, *, limit: int) -> DataFrame:
    """Return what each member is assigned, its partitions as ranges.

    Args:
        assignment: ``schemas.ASSIGNMENT``.
        members: ``schemas.MEMBERS``.
        limit: the most members of a group, topics of a member and ranges of a topic.

    Returns:
        One row per member, the first of each group by member_id: cluster_id string (empty where not
        given), group_id string, member_id string, partition_count bigint, topic_count int,
        topics array<struct<topic string, partition_count int, ranges
        array<struct<first int, last int>>>> sorted by topic.
    """
    of_topics = with_ranges(
        conform(assignment, ASSIGNMENT), [*GROUP_KEY, "member_id", "topic"], limit=limit
    )
    ranges = of_topics.groupBy(*GROUP_KEY, "member_id").agg(
        F.sum("partition_count").alias("partition_count"),
        F.sort_array(F.collect_list(F.struct("topic", "partition_count", "ranges"))).alias(
            "topics"
        ),
    )
    by_id = Window.partitionBy(*GROUP_KEY).orderBy("member_id")
    first = (
        conform(members, MEMBERS)
        .select(*GROUP_KEY, "member_id", F.row_number().over(by_id).alias("place"))
        .where(F.col("place") <= limit)
        .drop("place")
    )
    return first.join(ranges, on=[*GROUP_KEY, "member_id"], how="left").select(
        *GROUP_KEY,
        "member_id",
        F.coalesce("partition_count", F.lit(0)).alias("partition_count"),
        F.coalesce(F.array_size("topics"), F.lit(0)).alias("topic_count"),
        F.slice("topics", 1, limit).alias("topics"),
    )


def with_ranges(partitions: DataFrame, keys: list[str], *, limit: int) -> DataFrame:
    """Gather the column ``partition`` by ``keys``.

    Returns:
        keys, partition_count int, ranges array<struct<first int, last int>>: at most ``limit``.
    """
    gathered = partitions.groupBy(*keys).agg(
        F.sort_array(F.collect_set(F.col("partition").cast("int"))).alias("partitions")
    )
    return gathered.select(
        *keys,
        F.size("partitions").alias("partition_count"),
        F.slice(_ranges(F.col("partitions")), 1, limit).alias("ranges"),
    )


def _ranges(partitions: Column) -> Column:
    """Return ranges of a sorted array without duplicates: a range begins and ends beside a gap."""

    def has_neighbour(index: Column, value: Column) -> Column:
        return F.coalesce(F.get(partitions, index) == value, F.lit(False))

    firsts = F.filter(partitions, lambda p, i: ~has_neighbour(i - 1, p - 1))
    lasts = F.filter(partitions, lambda p, i: ~has_neighbour(i + 1, p + 1))
    return F.zip_with(
        firsts, lasts, lambda first, last: F.struct(first.alias("first"), last.alias("last"))
    )
