"""Groups whose next assignment hangs on an order of members that the inputs do not tell."""

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from kassign_spark.expressions import hash_bucket, hash_map_capacity, java_hash_code
from kassign_spark.inputs.checks import as_problems
from kassign_spark.schemas import GROUP_KEY
from kassign_spark.validation.hash_order import ordered_by_hash
from kassign_spark.validation.problem_texts import order_says


def unknown_orders(members: DataFrame, sizes: DataFrame, owned: DataFrame) -> DataFrame:
    """Find the sticky groups in which a missing ``member_seq`` decides who keeps a partition more.

    Where partitions do not divide evenly, of the members that own more than their share the first
    ones in the order of Java's hash map keep one partition more. Two ids in one bucket of the map
    are in the order of the JoinGroup response there, ``member_seq``. So the order is missed where
    all subscribe alike, more members own so much than may keep it, and the last that may and the
    first that may not share a bucket (``ConstrainedAssignmentBuilder``; kafka-clients 3.8 and
    later). Racks are not looked at: they can take a member out of that competition.

    Args:
        members: ``schemas.MEMBERS``, conforming, patterns resolved; groups that name no assignor
            count as sticky.
        sizes: cluster_id string, topic string, count bigint: one row a topic.
        owned: ``schemas.OWNED``, conforming.

    Returns:
        The columns of a problem, `member_order_unknown`; one row a group.
    """
    subscription = F.sort_array(F.array_distinct("topics"))
    groups = (
        members.where(ordered_by_hash())
        .groupBy(*GROUP_KEY)
        .agg(
            F.count("*").alias("member_count"),
            F.min(subscription).alias("topics"),
            (F.min(subscription) == F.max(subscription)).alias("subscribe_alike"),
            (F.count_distinct("member_seq") < F.count("*")).alias("lacks_order"),
        )
        .where("subscribe_alike AND lacks_order AND member_count > 1")
    )
    topics = groups.select(*GROUP_KEY, "member_count", F.explode("topics").alias("topic")).join(
        sizes, on=["cluster_id", "topic"], how="inner"
    )
    share, wanted = (F.expr(f"sum(count) {of} member_count") for of in ("div", "%"))
    shares = (
        topics.groupBy(*GROUP_KEY, "member_count")
        .agg(share.alias("share"), wanted.alias("wanted"))
        .where("wanted > 0")
    )
    of_members = members.selectExpr(
        *GROUP_KEY, "member_id", "member_seq", "coalesce(generation, -1) as generation"
    )
    holding = (
        _surviving(owned.join(of_members, on=[*GROUP_KEY, "member_id"], how="inner"), topics)
        .groupBy(*GROUP_KEY, "member_id", "member_seq")
        .agg(F.count("*").alias("held"))
        .join(shares, on=list(GROUP_KEY), how="inner")
        .where("held > share")
    )
    bucket = hash_bucket(
        java_hash_code(F.col("member_id")), hash_map_capacity(F.col("member_count"))
    )
    before = (
        Window.partitionBy(*GROUP_KEY).orderBy("bucket").rowsBetween(Window.unboundedPreceding, -1)
    )
    disputed = (
        holding.groupBy(*GROUP_KEY, "wanted", bucket.alias("bucket"))
        .agg(
            F.array_sort(F.collect_list("member_id")).alias("ids"),
            (F.count_distinct("member_seq") < F.count("*")).alias("lacks_order"),
        )
        .withColumn("before", F.coalesce(F.sum(F.size("ids")).over(before), F.lit(0)))
        .where("lacks_order AND before < wanted AND wanted < before + size(ids)")
    )
    return as_problems(disputed, "member_order_unknown", order_says("ids", "wanted - before"))


def _surviving(claims: DataFrame, topics: DataFrame) -> DataFrame:
    """Keep claims on partitions that exist, each of the one member that claims it the latest."""
    claimants = "sort_array(collect_list(struct(generation, member_id, member_seq)), false)"
    existing = claims.join(topics, on=[*GROUP_KEY, "topic"], how="inner")
    judged = (
        existing.where("partition between 0 and count - 1")
        .groupBy(*GROUP_KEY, "topic", "partition")
        .agg(F.expr(f"{claimants} as claimants"))
        .selectExpr(*GROUP_KEY, "claimants[0] as newest", "get(claimants, 1) as next")
    )
    is_latest = "next is null or newest.generation > next.generation"
    return judged.where(is_latest).select(*GROUP_KEY, "newest.member_id", "newest.member_seq")
