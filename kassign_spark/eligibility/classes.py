"""Topic classes: a group's topics with the same subscribers, who may take all of them or none.

Merging them is exact for balance and for stickiness, and keeps the tables of the general pass tiny
beside the partitions: a group with equal subscriptions is one class, real groups have a handful.
"""

from typing import NamedTuple

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from kassign_spark.eligibility.groups import Eligible
from kassign_spark.rounds import settle
from kassign_spark.schemas import GROUP_KEY

CLASS_KEY = (*GROUP_KEY, "class")
EDGE_KEY = (*CLASS_KEY, "member")


class Classes(NamedTuple):
    """Groups in numbers; numbers count from 0 within each group, in the order of names.

    Attributes:
        topics: cluster_id string, group_id string, class int, topic string, num_partitions int;
            topics that the cluster has and somebody subscribes to.
        members: cluster_id string, group_id string, member int, member_id string; all members.
        edges: cluster_id string, group_id string, class int, member int (a subscriber),
            supply bigint (partitions of the class), group_edges bigint (rows of the group).
    """

    topics: DataFrame
    members: DataFrame
    edges: DataFrame


def topic_classes(eligible: Eligible) -> Classes:
    """Fold subscriptions into classes; runs jobs, and holds frames of one row a class and member.

    Members of one subscription are merged before topics are looked at, so a group costs as much as
    its different subscriptions do, not its members times its topics.
    """
    subscriptions = settle(_subscriptions(eligible)).frame
    classes = settle(_classes(subscriptions, eligible.topics)).frame
    members = _members(subscriptions)
    topics = classes.select(*CLASS_KEY, F.inline("topics"))
    in_group = Window.partitionBy(*GROUP_KEY)
    edges = (
        classes.select(*CLASS_KEY, "supply", F.explode("subscriptions").alias("subscription"))
        .join(members, on=[*GROUP_KEY, "subscription"], how="inner")
        .select(*EDGE_KEY, "supply", F.count("*").over(in_group).alias("group_edges"))
    )
    return Classes(topics, members.drop("subscription"), edges)


def _subscriptions(eligible: Eligible) -> DataFrame:
    """One row a different subscription: its least member names it."""
    topics = F.sort_array(F.array_distinct(F.coalesce("topics", F.array().cast("array<string>"))))
    return eligible.members.groupBy(*GROUP_KEY, topics.alias("topics")).agg(
        F.min("member_id").alias("subscription"),
        F.collect_list("member_id").alias("member_ids"),
    )


def _classes(subscriptions: DataFrame, topics: DataFrame) -> DataFrame:
    """One row a class, numbered by its first topic, with its topics and subscriptions."""
    by_topic = (
        subscriptions.select(*GROUP_KEY, "subscription", F.explode("topics").alias("topic"))
        .join(topics, on=["cluster_id", "topic"], how="inner")
        .groupBy(*GROUP_KEY, "topic", "num_partitions")
        .agg(F.sort_array(F.collect_list("subscription")).alias("subscriptions"))
    )
    by_subscribers = by_topic.groupBy(*GROUP_KEY, "subscriptions").agg(
        F.sort_array(F.collect_list(F.struct("topic", "num_partitions"))).alias("topics"),
        F.sum("num_partitions").alias("supply"),
    )
    by_first_topic = Window.partitionBy(*GROUP_KEY).orderBy("first_topic")
    return by_subscribers.withColumn("first_topic", F.col("topics")[0]["topic"]).select(
        *GROUP_KEY,
        (F.row_number().over(by_first_topic) - 1).alias("class"),
        "topics",
        "supply",
        "subscriptions",
    )


def _members(subscriptions: DataFrame) -> DataFrame:
    by_name = Window.partitionBy(*GROUP_KEY).orderBy("member_id")
    return subscriptions.select(
        *GROUP_KEY, "subscription", F.explode("member_ids").alias("member_id")
    ).select(
        *GROUP_KEY,
        (F.row_number().over(by_name) - 1).alias("member"),
        "member_id",
        "subscription",
    )
