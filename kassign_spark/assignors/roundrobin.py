"""Kafka's RoundRobinAssignor: one ring of members, one pointer, never reset between topics."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from kassign_spark.assignors.dealing import deal
from kassign_spark.eligibility.groups import Eligible
from kassign_spark.settings import Settings


def assign_roundrobin(eligible: Eligible, settings: Settings) -> DataFrame:
    """Assign as ``org.apache.kafka.clients.consumer.RoundRobinAssignor`` does.

    The ring holds all members in MemberInfo order; members not subscribed to the topic at hand are
    passed over and lose their turn. Within one topic its subscribers simply take turns, so only
    the pointer between topics is a state, and the scan goes over topics, not over partitions.

    Returns:
        The columns of ``schemas.ASSIGNMENT``.
    """
    groups = eligible.groups.withColumn("topics", _with_first_taker())
    return deal(groups, _turn_of, settings)


def _turn_of(partition: Column, topic: Column, subscriber_count: Column) -> Column:
    return (topic["first_taker"] + partition) % subscriber_count


def _with_first_taker() -> Column:
    """Add to each topic who takes its partition 0, as an index into the topic's subscribers."""
    start = F.struct(F.lit(0).alias("pointer"), F.array().cast("array<int>").alias("first_takers"))
    scanned = F.aggregate("topics", start, _scan_topic)
    return F.zip_with(
        "topics",
        scanned["first_takers"],
        lambda topic, first_taker: topic.withField("first_taker", first_taker),
    )


def _scan_topic(state: Column, topic: Column) -> Column:
    """Move the pointer just past the member that takes the topic's last partition."""
    ranks = F.col("subscriber_ranks")[topic["subscribers"]]
    member_count = F.size("members")
    subscriber_count = F.size(ranks)
    pointer = state["pointer"]
    passed = F.when(subscriber_count == member_count, pointer).otherwise(
        F.size(F.filter(ranks, lambda rank: rank < pointer))
    )
    first_taker = passed % subscriber_count
    last_taker = (first_taker + topic["num_partitions"] - 1) % subscriber_count
    return F.struct(
        ((ranks[last_taker] + 1) % member_count).alias("pointer"),
        F.concat(state["first_takers"], F.array(first_taker)).alias("first_takers"),
    )
