"""Groups whose members' order in Java's hash map is not reproduced here: told, never guessed."""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from kassign_spark.expressions import (
    hash_bucket,
    hash_map_tables,
    is_order_lost,
    java_hash_code,
    java_string_order,
)
from kassign_spark.inputs.checks import as_problems
from kassign_spark.schemas import GROUP_KEY
from kassign_spark.validation.problem_texts import lost_order_says

ORDERED_BY_HASH = ("sticky", "cooperative-sticky")
_FEWEST_MEMBERS = 9
"""With fewer, no bucket can hold more than a bucket may: nothing is hashed."""


def ordered_by_hash() -> Column:
    """Whether a member's assignor visits the members by hash; one that is not named may."""
    return F.coalesce(F.col("assignor").isin(*ORDERED_BY_HASH), F.lit(True))


def lost_orders(members: DataFrame) -> DataFrame:
    """Find the groups of the sticky assignors in whose map of members a bucket is crowded.

    Such a bucket becomes a tree, or makes its table double early; the order in which the client
    then visits members is another than here, and with it which members keep one partition more.
    Ordinary member ids do not meet like that.

    Args:
        members: ``schemas.MEMBERS``, conforming; groups that name no assignor count as sticky.

    Returns:
        The columns of a problem, `hash_order_not_reproduced`; one row a group.
    """
    group = Window.partitionBy(*GROUP_KEY)
    put = group.orderBy("member_seq", java_string_order(F.col("member_id")))
    large = (
        members.where(ordered_by_hash() & F.col("member_id").isNotNull())
        .select(*GROUP_KEY, "member_id", "member_seq")
        .withColumn("member_count", F.count("*").over(group))
        .where(F.col("member_count") >= _FEWEST_MEMBERS)
    )
    tables = hash_map_tables(F.col("position"), F.col("member_count"))
    buckets = (
        large.withColumn("position", F.row_number().over(put) - 1)
        .select(*GROUP_KEY, java_hash_code(F.col("member_id")).alias("hash"), F.explode(tables))
        .toDF(*GROUP_KEY, "hash", "capacity")
        .groupBy(*GROUP_KEY, "capacity", hash_bucket(F.col("hash"), F.col("capacity")))
        .agg(F.count("*").alias("bucket_size"))
        .where(is_order_lost(F.col("bucket_size"), F.col("capacity")))
        .groupBy(*GROUP_KEY)
        .agg(F.max("bucket_size").alias("bucket_size"))
    )
    return as_problems(buckets, "hash_order_not_reproduced", lost_order_says("bucket_size"))
