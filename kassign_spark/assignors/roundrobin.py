"""Kafka's RoundRobinAssignor: one ring of members, one pointer, never reset between topics."""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from kassign_spark.assignors.in_tasks import ROUNDROBIN
from kassign_spark.assignors.task_groups import assign_in_tasks, goes_by_clients
from kassign_spark.expressions import java_string_order
from kassign_spark.groups.eligible import Eligible
from kassign_spark.groups.paths import WINDOWS
from kassign_spark.groups.subscribers import (
    deal,
    explode_topics,
    heterogeneous_topics,
    homogeneous_groups,
    spread,
)
from kassign_spark.schemas import GROUP_KEY
from kassign_spark.settings.computing import Settings


def assign_roundrobin(eligible: Eligible, settings: Settings) -> DataFrame:
    """Assign as ``org.apache.kafka.clients.consumer.RoundRobinAssignor`` does.

    The ring holds all members in MemberInfo order; members not subscribed to the topic at hand are
    passed over and lose their turn. Within one topic its subscribers simply take turns, so only
    the pointer between topics is a state, and the scan goes over topics, not over partitions.

    Returns:
        The columns of ``schemas.ASSIGNMENT``.
    """
    if goes_by_clients(eligible, settings):
        return assign_in_tasks(eligible, settings, ROUNDROBIN)
    eligible.note_path(WINDOWS)
    topics = _homogeneous_topics(eligible, settings)
    if eligible.heterogeneous:
        topics = topics.unionByName(_heterogeneous_topics(eligible))
    turn = (F.col("first_taker") + F.col("partition")) % F.size("subscribers")
    return deal(topics, turn)


def _homogeneous_topics(eligible: Eligible, settings: Settings) -> DataFrame:
    """Find each topic's first taker where all take turns: by how many partitions come before."""
    groups = homogeneous_groups(eligible)
    in_order = Window.partitionBy(*GROUP_KEY).orderBy(java_string_order(F.col("topic")))
    before = F.sum("num_partitions").over(in_order.rowsBetween(Window.unboundedPreceding, -1))
    first_taker = F.coalesce(before, F.lit(0)) % F.col("member_count")
    subscribed = groups.select(
        *GROUP_KEY, F.size("members").alias("member_count"), F.explode("topics").alias("topic")
    ).join(eligible.topics, on=["cluster_id", "topic"], how="inner")
    ranked = (
        spread(subscribed, eligible.tasks, *GROUP_KEY)
        .withColumn("first_taker", first_taker.cast("int"))
        .select(*GROUP_KEY, "topic", "num_partitions", "first_taker")
    )
    members = groups.select(*GROUP_KEY, F.col("members").alias("subscribers"))
    if eligible.most_topics <= settings.topics_per_task:
        return members.join(ranked, on=list(GROUP_KEY), how="inner")
    # The window has put all topics of a group into one task: fold them, to spread them again.
    topic = F.struct("topic", "num_partitions", "first_taker")
    folded = ranked.groupBy(*GROUP_KEY).agg(F.sort_array(F.collect_list(topic)).alias("topics"))
    ring = members.join(folded, on=list(GROUP_KEY), how="inner")
    return explode_topics(ring, settings, eligible.tasks).select(
        *GROUP_KEY, "subscribers", "topic.*"
    )


def _heterogeneous_topics(eligible: Eligible) -> DataFrame:
    """Find each topic's first taker by a scan over the group's topics in string order."""
    topics = heterogeneous_topics(eligible)
    member_counts = eligible.groups.select(*GROUP_KEY, F.size("members").alias("member_count"))
    in_order = F.sort_array(
        F.collect_list(
            F.struct(
                java_string_order(F.col("topic")).alias("topic_order"),
                "topic",
                "num_partitions",
                "subscriber_ranks",
            )
        )
    )
    scanned = (
        topics.groupBy(*GROUP_KEY)
        .agg(in_order.alias("topics"))
        .join(member_counts, on=list(GROUP_KEY), how="inner")
        .select(*GROUP_KEY, F.inline(_first_takers()))
    )
    return topics.drop("subscriber_ranks").join(scanned, on=[*GROUP_KEY, "topic"], how="inner")


def _first_takers() -> Column:
    """Scan ``topics`` with the pointer: array<struct<topic string, first_taker int>>.

    ``first_taker``, who takes the topic's partition 0, is an index into its subscribers.
    """
    start = F.struct(
        F.lit(0).alias("pointer"),
        F.array().cast("array<struct<topic: string, first_taker: int>>").alias("turns"),
    )
    return F.aggregate("topics", start, _scan_topic, lambda state: state["turns"])


def _scan_topic(state: Column, topic: Column) -> Column:
    """Move the pointer just past the member that takes the topic's last partition."""
    ranks, pointer = topic["subscriber_ranks"], state["pointer"]
    subscriber_count = F.size(ranks)
    passed_over = F.size(F.filter(ranks, lambda rank: rank < pointer))
    first_taker = passed_over % subscriber_count
    last_taker = (first_taker + topic["num_partitions"] - 1) % subscriber_count
    turn = F.struct(topic["topic"].alias("topic"), first_taker.alias("first_taker"))
    return F.struct(
        ((ranks[last_taker] + 1) % F.col("member_count")).alias("pointer"),
        F.concat(state["turns"], F.array(turn)).alias("turns"),
    )
