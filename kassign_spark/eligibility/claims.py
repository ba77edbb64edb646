"""What members say they own, resolved to one owner a partition, as Kafka's sticky assignors do.

A claim is what a member sent when it joined, in its subscription (CooperativeSticky) or in user
data (Sticky), with the generation in which it owned the partitions. Source:
``AbstractStickyAssignor`` of clients 3.7.1 and later (KAFKA-12984, KAFKA-15106), whose members are
visited in the order of a Java hash map.
"""

from typing import NamedTuple

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from kassign_spark.eligibility.groups import Eligible
from kassign_spark.expressions import (
    hash_bucket,
    hash_map_capacity,
    java_hash_code,
    java_string_order,
)
from kassign_spark.rounds import hold
from kassign_spark.schemas import GROUP_KEY

_PARTITION_KEY = (*GROUP_KEY, "topic", "partition")


class Claims(NamedTuple):
    """Claims on partitions that exist, of topics that somebody in the group subscribes to.

    Attributes:
        members: cluster_id string, group_id string, member_id string, member_seq bigint?,
            claims array<struct<partition int, topic string>>: what it owns, ascending; one row a
            member that claims anything.
        topics: cluster_id string, group_id string, topic string, claimed array<int>: the
            partitions in ``members.claims``.
        disputed: cluster_id string, group_id string, topic string, partition int: claimed by
            several members of one generation; None where there are none.
    """

    members: DataFrame
    topics: DataFrame
    disputed: DataFrame | None


def read_claims(eligible: Eligible, owned: DataFrame) -> Claims:
    """Resolve ``owned`` to one owner a partition; runs jobs, and reads ``owned`` once.

    Claims of members that left, and on partitions that do not exist, are dropped (``validate``
    reports them).
    """
    existing = owned.join(subscribed_topics(eligible), on=[*GROUP_KEY, "topic"], how="inner").where(
        F.col("partition") < F.col("num_partitions")
    )
    claim = F.struct(F.col("partition").cast("int").alias("partition"), "topic")
    by_member = (
        existing.groupBy(*GROUP_KEY, "member_id")
        .agg(F.sort_array(F.collect_list(claim)).alias("claims"))
        .join(
            eligible.members.select(
                *GROUP_KEY, "member_id", "member_seq", F.coalesce("generation", F.lit(-1))
            ).toDF(*GROUP_KEY, "member_id", "member_seq", "generation"),
            on=[*GROUP_KEY, "member_id"],
            how="inner",
        )
    )
    members, _ = hold(by_member, {"members": F.count("*")})
    topics, found = hold(_by_topic(members), {"contested": F.count_if(_has_duplicates())})
    if not found["contested"]:
        return Claims(members, topics, None)
    return _resolve(eligible, members, topics)


def subscribed_topics(eligible: Eligible) -> DataFrame:
    """List the topics that somebody in a group subscribes to, as far as they exist.

    Returns:
        cluster_id string, group_id string, topic string, num_partitions int; one row each.
    """
    alike = eligible.groups.where("is_homogeneous").select(
        *GROUP_KEY, F.explode("topics").alias("topic")
    )
    if eligible.heterogeneous:
        differing = eligible.groups.where(~F.col("is_homogeneous")).select(*GROUP_KEY)
        subscribed = eligible.members.join(differing, on=list(GROUP_KEY), how="left_semi").select(
            *GROUP_KEY, F.explode("topics").alias("topic")
        )
        alike = alike.unionByName(subscribed.distinct())
    return alike.join(eligible.topics, on=["cluster_id", "topic"], how="inner").select(
        *GROUP_KEY, "topic", "num_partitions"
    )


def hash_order(member_count: Column) -> tuple[Column, ...]:
    """Order the members of a group as Java's hash map of their ids iterates.

    The leader puts the members into a fresh map in the order of the JoinGroup response, which
    ``member_seq`` is the best that is known of; where it is absent, ties break by ``member_id``.

    Args:
        member_count: how many members the group has.

    Returns:
        sort keys over member_id string and member_seq bigint.
    """
    bucket = hash_bucket(java_hash_code(F.col("member_id")), hash_map_capacity(member_count))
    return bucket, F.col("member_seq"), java_string_order(F.col("member_id"))


def _by_topic(members: DataFrame) -> DataFrame:
    return (
        members.select(*GROUP_KEY, F.explode("claims").alias("claim"))
        .groupBy(*GROUP_KEY, F.col("claim.topic").alias("topic"))
        .agg(F.collect_list("claim.partition").alias("claimed"))
    )


def _has_duplicates() -> Column:
    return F.size(F.array_distinct("claimed")) < F.size("claimed")


def _resolve(eligible: Eligible, members: DataFrame, topics: DataFrame) -> Claims:
    """Let the highest generation win; equal ones dispute, and nobody has what is disputed.

    A dispute is remembered, even where a newer generation claims the partition afterwards: then the
    newer claimant does not keep it either. Afterwards means: in the order of visits.
    """
    contested = (
        topics.where(_has_duplicates())
        .select(*GROUP_KEY, "topic", F.explode("claimed").alias("partition"))
        .groupBy(*_PARTITION_KEY)
        .count()
        .where("count > 1")
        .drop("count")
    )
    counts = eligible.groups.select(*GROUP_KEY, F.size("members").alias("member_count"))
    claims = (
        members.select("*", F.explode("claims").alias("claim"))
        .select(
            *GROUP_KEY, "member_id", "member_seq", "generation", "claim.topic", "claim.partition"
        )
        .join(contested, on=list(_PARTITION_KEY), how="left_semi")
        .join(counts, on=list(GROUP_KEY), how="inner")
    )
    visits = Window.partitionBy(*_PARTITION_KEY).orderBy(*hash_order(F.col("member_count")))
    earlier = visits.rowsBetween(Window.unboundedPreceding, -1)
    everyone = Window.partitionBy(*_PARTITION_KEY)
    highest_before = F.max("generation").over(earlier)
    judged = claims.withColumns(
        {
            "disputes": F.coalesce(F.col("generation") == highest_before, F.lit(False)),
            "highest": F.max("generation").over(everyone),
        }
    ).withColumn("disputed", F.max("disputes").over(everyone))
    judged, _ = hold(judged, {"claims": F.count("*")})
    loses = F.col("disputed") | (F.col("generation") < F.col("highest"))
    lost = (
        judged.where(loses)
        .groupBy(*GROUP_KEY, "member_id")
        .agg(F.collect_list(F.struct("partition", "topic")).alias("lost"))
    )
    surviving = members.join(lost, on=[*GROUP_KEY, "member_id"], how="left").withColumn(
        "claims",
        F.when(F.col("lost").isNull(), F.col("claims")).otherwise(F.array_except("claims", "lost")),
    )
    members, _ = hold(surviving.drop("lost"), {"members": F.count("*")})
    disputed = judged.where("disputed").select(*_PARTITION_KEY).distinct()
    return Claims(members, _by_topic(members), disputed)
