"""A large fleet made by Spark itself: groups of ten members, ten topics of ten partitions."""

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

MEMBERS, TOPICS, PARTITIONS = 10, 10, 10
_ASSIGNORS = ("range", "roundrobin", "sticky", "cooperative-sticky")


def fleet(spark: SparkSession, groups: int) -> tuple[DataFrame, DataFrame, DataFrame]:
    """Members, topics and owned. In a fifth of the groups every member lacks some topics, and one
    topic has a single reader; in all, the first of the owners has left.
    """
    ids = spark.range(groups).select(
        F.format_string("g%06d", "id").alias("group_id"),
        "id",
        (F.col("id") % 5 == 0).alias("mixed"),
    )
    member = F.explode(F.sequence(F.lit(0), F.lit(MEMBERS - 1))).alias("member")
    number = F.sequence(F.lit(0), F.lit(TOPICS - 1))
    name = F.format_string("t%02d", F.col("x"))
    assignor = F.element_at(F.array(*map(F.lit, _ASSIGNORS)), (F.col("id") % 4 + 1).cast("int"))
    members = ids.select("*", member).select(
        "*",
        F.format_string("%s-%d-%d", "group_id", "member", F.xxhash64("id", "member")).alias("m"),
    )
    reads = F.expr(
        "NOT mixed OR (topic = 0 AND member = 1) "
        "OR (topic > 0 AND (id + member * 7 + topic) % 3 > 0)"
    )
    pairs = members.select("*", F.explode(number).alias("topic")).where(reads)
    named = pairs.withColumn("x", F.col("topic")).withColumn("name", name)
    subscribed = (
        named.where("member > 0")
        .groupBy("group_id", F.col("m").alias("member_id"))
        .agg(F.sort_array(F.collect_list("name")).alias("topics"), F.first("id").alias("id"))
        .select("group_id", "member_id", "topics", assignor.alias("assignor"))
    )
    readers = named.groupBy("group_id", F.col("name").alias("topic")).agg(
        F.sort_array(F.collect_list("m")).alias("readers")
    )
    partition = F.explode(F.sequence(F.lit(0), F.lit(PARTITIONS - 1))).alias("partition")
    owned = readers.select("*", partition).select(
        "group_id",
        F.element_at("readers", F.col("partition") % F.size("readers") + 1).alias("member_id"),
        "topic",
        "partition",
    )
    topics = spark.range(TOPICS).select(
        F.format_string("t%02d", "id").alias("topic"), F.lit(PARTITIONS).alias("num_partitions")
    )
    return subscribed, topics, owned
