"""Topic classes: a group's topics with the same subscribers, who may take all of them or none.

Merging them is exact for balance and for stickiness, and keeps the tables of the general pass tiny
beside the partitions: a group with equal subscriptions is one class, real groups have a handful.
"""

from typing import NamedTuple

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from kassign_spark.groups.eligible import Eligible
from kassign_spark.groups.large_claims import subscribed_topics, topic_number
from kassign_spark.schemas import CLUSTER_ID, GROUP_KEY
from kassign_spark.spark.iteration import materialize, settle

CLASS_KEY = (*GROUP_KEY, "class")
EDGE_KEY = (*CLASS_KEY, "member")


class Classes(NamedTuple):
    """Groups in numbers, which count from 0 within each group.

    Attributes:
        topics: cluster_id string, group_id string, class int, topic string, and num_partitions
            int, or where a topic has partitions of several classes partitions `array<int>`;
            topics that the cluster has and somebody subscribes to.
        members: cluster_id string, group_id string, member int, member_id string; all members,
            in MemberInfo order.
        edges: cluster_id string, group_id string, class int, member int (a subscriber),
            supply bigint (partitions of the class).
        edge_count: how many ``edges`` there are.
    """

    topics: DataFrame
    members: DataFrame
    edges: DataFrame
    edge_count: int


def topic_classes(eligible: Eligible) -> Classes:
    """Fold subscriptions into classes; runs a job, and holds one row per class.

    Members of one subscription are merged before topics are looked at, so a group costs as much as
    its different subscriptions do, not its members times its topics.
    """
    subscriptions = _subscriptions(eligible)
    classes, totals = settle(
        _classes(subscriptions, eligible.topics), {"edges": F.sum("subscriber_count")}
    )
    members = eligible.groups.select(
        *GROUP_KEY, F.posexplode("members").alias("member", "member_id")
    )
    subscribers = subscriptions.select(
        *GROUP_KEY, "subscription", F.explode("member_ids").alias("member_id")
    ).join(members, on=[*GROUP_KEY, "member_id"], how="inner")
    edges = (
        classes.select(*CLASS_KEY, "supply", F.explode("subscriptions").alias("subscription"))
        .join(subscribers, on=[*GROUP_KEY, "subscription"], how="inner")
        .select(*EDGE_KEY, "supply")
    )
    topics = classes.select(*CLASS_KEY, F.inline("topics"))
    return Classes(topics, members, edges, totals["edges"] or 0)


def _subscriptions(eligible: Eligible) -> DataFrame:
    """Return a row per different subscription, named by its least member."""
    topics = F.sort_array(F.array_distinct("topics"))
    return (
        eligible.members.where(F.size("topics") > 0)
        .groupBy(*GROUP_KEY, topics.alias("topics"))
        .agg(
            F.min("member_id").alias("subscription"),
            F.collect_list("member_id").alias("member_ids"),
        )
    )


def _classes(subscriptions: DataFrame, topics: DataFrame) -> DataFrame:
    """Return one row per class, numbered by its first topic, with its topics and subscriptions."""
    in_group = Window.partitionBy(*GROUP_KEY)
    by_topic = (
        subscriptions.select(
            *GROUP_KEY,
            F.struct("subscription", F.size("member_ids").alias("size")).alias("subscription"),
            F.explode("topics").alias("topic"),
        )
        .join(topics, on=["cluster_id", "topic"], how="inner")
        .groupBy(*GROUP_KEY, "topic", "num_partitions")
        .agg(F.sort_array(F.collect_list("subscription")).alias("subscriptions"))
    )
    subscriber_count = F.expr("aggregate(subscriptions, 0L, (total, s) -> total + s.size)")
    return (
        by_topic.groupBy(*GROUP_KEY, "subscriptions")
        .agg(
            F.sort_array(F.collect_list(F.struct("topic", "num_partitions"))).alias("topics"),
            F.sum("num_partitions").alias("supply"),
        )
        .select(
            *GROUP_KEY,
            (F.row_number().over(in_group.orderBy(F.col("topics")[0]["topic"])) - 1).alias("class"),
            "topics",
            "supply",
            F.col("subscriptions.subscription").alias("subscriptions"),
            subscriber_count.alias("subscriber_count"),
        )
    )


def split_by_racks(classes: Classes, eligible: Eligible) -> Classes:
    """Split the classes; runs jobs, and holds one row for a class and topic.

    Returns:
        As ``topic_classes`` gives it, ``topics`` with partitions `array<int>`, and ``edges`` with
        is_cross boolean: the member has a rack, and the partitions no replica in it.
    """
    racks = eligible.members.where(F.length("rack_id") > 0)
    racks = racks.select(*GROUP_KEY, "member_id", "rack_id")
    subscribers = classes.edges.join(classes.members, on=[*GROUP_KEY, "member"], how="inner").join(
        racks, on=[*GROUP_KEY, "member_id"], how="left"
    )
    class_racks = subscribers.groupBy(*CLASS_KEY).agg(
        F.sort_array(F.collect_set("rack_id")).alias("class_racks"),
        F.count("*").alias("subscriber_count"),
    )
    numbered = subscribed_topics(eligible).withColumn("topic_number", topic_number())
    replicas = eligible.topics.select(CLUSTER_ID, "topic", "replica_racks")
    partitions = (
        classes.topics.join(class_racks, on=list(CLASS_KEY), how="inner")
        .join(numbered.drop("num_partitions"), on=[*GROUP_KEY, "topic"], how="inner")
        .join(replicas, on=[CLUSTER_ID, "topic"], how="inner")
        .withColumn("partition", F.explode(F.expr("sequence(0, num_partitions - 1)")))
        .withColumn("matched", _matching_racks())
    )
    pieces = partitions.groupBy(
        *CLASS_KEY, "matched", "subscriber_count", "topic_number", "topic"
    ).agg(F.sort_array(F.collect_list("partition")).alias("partitions"))
    in_group = Window.partitionBy(*GROUP_KEY).orderBy("first")
    split, totals = materialize(
        pieces.groupBy(*CLASS_KEY, "matched", "subscriber_count")
        .agg(
            F.min(F.struct("topic_number", F.col("partitions")[0])).alias("first"),
            F.sum(F.size("partitions")).alias("supply"),
            F.collect_list(F.struct("topic", "partitions")).alias("topics"),
        )
        .withColumn("number", F.row_number().over(in_group) - 1),
        {"edges": F.sum("subscriber_count")},
    )
    is_cross = F.coalesce(~F.array_contains("matched", F.col("rack_id")), F.lit(False))
    edges = (
        split.select(*CLASS_KEY, "number", "matched", "supply")
        .join(subscribers.select(*CLASS_KEY, "member", "rack_id"), on=list(CLASS_KEY), how="inner")
        .select(
            *GROUP_KEY,
            F.col("number").alias("class"),
            "member",
            "supply",
            is_cross.alias("is_cross"),
        )
    )
    topics = split.select(*GROUP_KEY, F.col("number").alias("class"), F.inline("topics"))
    return Classes(topics, classes.members, edges, totals["edges"] or 0)


def _matching_racks() -> Column:
    """Return the class's racks in which a partition has a replica; all of them if none is known."""
    racks = "array_compact(coalesce(get(replica_racks, partition), cast(array() as array<string>)))"
    return F.expr(
        f"if(size({racks}) = 0, class_racks, array_sort(array_intersect(class_racks, {racks})))"
    )
