"""Resolve claims over DataFrames, as ``claims`` does over arrays, for groups beyond one task."""

from typing import NamedTuple

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from kassign_spark.expressions import (
    hash_bucket,
    hash_map_capacity,
    java_hash_code,
    java_string_order,
)
from kassign_spark.groups.eligible import Eligible
from kassign_spark.schemas import GROUP_KEY
from kassign_spark.spark.iteration import materialize


class ClaimFrames(NamedTuple):
    """Claims on partitions that exist, of topics that somebody in the group subscribes to.

    A claim is a bigint, ``code(partition, topic_number)``: codes sort as (partition, topic) do.

    Attributes:
        subscribed: cluster_id string, group_id string, topic string, num_partitions int,
            topic_number int: 0-based, in Java's string order of the group's topics.
        members: cluster_id string, group_id string, member_id string, member_seq bigint?,
            claims array<bigint>: what it owns, ascending; one row per member that claims anything.
        topics: cluster_id string, group_id string, topic_number int, claimed array<int>: the
            partitions in ``members.claims``.
        disputed: cluster_id string, group_id string, topic_number int, partition int: claimed by
            several members of one generation; None where there are none.
    """

    subscribed: DataFrame
    members: DataFrame
    topics: DataFrame
    disputed: DataFrame | None


def code(partition: Column, topic_number: Column) -> Column:
    """Encode a claim in one number: small, and quick to sort."""
    return F.shiftleft(partition.cast("bigint"), 32) + topic_number


def partition_of(claim: Column) -> Column:
    """Return the partition of a code, int."""
    return F.shiftright(claim, 32).cast("int")


def topic_number_of(claim: Column) -> Column:
    """Return the topic number of a code, int."""
    return claim.bitwiseAND(F.lit(2**32 - 1)).cast("int")


def read_claims(eligible: Eligible, topics: DataFrame) -> ClaimFrames:
    """Resolve ``eligible.owned``, which must be there, to one owner a partition; runs jobs.

    Claims of members that left, and on partitions that do not exist, are dropped (``validate``
    reports them). The groups' topics are held, and as ``subscribed_topics`` and ``topic_number``
    give them.
    """
    assert eligible.owned is not None
    subscribed = topics.select(*GROUP_KEY, "topic", "num_partitions", "topic_number")
    existing = eligible.owned.join(subscribed, on=[*GROUP_KEY, "topic"], how="inner").where(
        F.col("partition") < F.col("num_partitions")
    )
    claim = code(F.col("partition"), F.col("topic_number"))
    generations = eligible.members.select(
        *GROUP_KEY, "member_id", "member_seq", F.coalesce("generation", F.lit(-1))
    ).toDF(*GROUP_KEY, "member_id", "member_seq", "generation")
    by_member = (
        existing.groupBy(*GROUP_KEY, "member_id")
        .agg(F.sort_array(F.collect_list(claim)).alias("claims"))
        .join(generations, on=[*GROUP_KEY, "member_id"], how="inner")
    )
    members = materialize(by_member).frame
    topics, counts = materialize(
        _group_by_topic(members), {"contested": F.count_if(_has_duplicates())}
    )
    claims = ClaimFrames(subscribed, members, topics, None)
    return _resolve(eligible, claims) if counts["contested"] else claims


def claimed_partitions(claims: ClaimFrames) -> DataFrame:
    """List the claims one by one.

    Returns:
        cluster_id string, group_id string, member_id string, topic string, partition int.
    """
    return (
        claims.members.select(*GROUP_KEY, "member_id", F.explode("claims").alias("claim"))
        .select(*GROUP_KEY, "member_id", *_place())
        .join(claims.subscribed, on=[*GROUP_KEY, "topic_number"], how="inner")
        .select(*GROUP_KEY, "member_id", "topic", "partition")
    )


def subscribed_topics(eligible: Eligible) -> DataFrame:
    """List the topics that somebody in a group subscribes to, as far as they exist.

    Returns:
        cluster_id string, group_id string, topic string, num_partitions int;
        one row per group and topic.
    """
    groups = eligible.groups
    subscribed = groups.where("is_homogeneous").select(
        *GROUP_KEY, F.explode("topics").alias("topic")
    )
    if eligible.heterogeneous:
        differing = groups.where(~F.col("is_homogeneous")).select(*GROUP_KEY)
        of_members = eligible.members.join(differing, on=list(GROUP_KEY), how="left_semi").select(
            *GROUP_KEY, F.explode("topics").alias("topic")
        )
        subscribed = subscribed.unionByName(of_members.distinct())
    return subscribed.join(eligible.topics, on=["cluster_id", "topic"], how="inner").select(
        *GROUP_KEY, "topic", "num_partitions"
    )


def topic_number() -> Column:
    """Number the topics of a group from 0 in Java's string order: int."""
    in_order = Window.partitionBy(*GROUP_KEY).orderBy(java_string_order(F.col("topic")))
    return F.row_number().over(in_order) - 1


def hash_order(member_count: Column) -> tuple[Column, ...]:
    """Order the members of a group as Java's hash map of their ids iterates.

    The leader puts the members into a fresh map in the order of the JoinGroup response, which
    ``member_seq`` is the best that is known of; where it is absent, ties break by ``member_id``.
    """
    bucket = hash_bucket(java_hash_code(F.col("member_id")), hash_map_capacity(member_count))
    return bucket, F.col("member_seq"), java_string_order(F.col("member_id"))


def _place() -> tuple[Column, Column]:
    claim = F.col("claim")
    return topic_number_of(claim).alias("topic_number"), partition_of(claim).alias("partition")


def _group_by_topic(members: DataFrame) -> DataFrame:
    return (
        members.select(*GROUP_KEY, F.explode("claims").alias("claim"))
        .select(*GROUP_KEY, *_place())
        .groupBy(*GROUP_KEY, "topic_number")
        .agg(F.collect_list("partition").alias("claimed"))
    )


def _has_duplicates() -> Column:
    return F.size(F.array_distinct("claimed")) < F.size("claimed")


def _resolve(eligible: Eligible, claims: ClaimFrames) -> ClaimFrames:
    """Resolve claims: the highest generation wins; what equal ones dispute has no owner.

    A dispute is remembered, even where a newer generation claims the partition afterwards: then the
    newer claimant does not keep it either. Afterwards means: in the order of visits.
    """
    contested = (
        claims.topics.where(_has_duplicates())
        .select(*GROUP_KEY, "topic_number", F.explode("claimed").alias("partition"))
        .groupBy(*GROUP_KEY, code(F.col("partition"), F.col("topic_number")).alias("claim"))
        .count()
        .where("count > 1")
        .drop("count")
    )
    counts = eligible.groups.select(*GROUP_KEY, F.size("members").alias("member_count"))
    claimants = (
        claims.members.select(
            *GROUP_KEY, "member_id", "member_seq", "generation", F.explode("claims").alias("claim")
        )
        .join(contested, on=[*GROUP_KEY, "claim"], how="left_semi")
        .join(counts, on=list(GROUP_KEY), how="inner")
    )
    everyone = Window.partitionBy(*GROUP_KEY, "claim")
    visits = everyone.orderBy(*hash_order(F.col("member_count")))
    highest_before = F.max("generation").over(visits.rowsBetween(Window.unboundedPreceding, -1))
    judged = claimants.withColumns(
        {
            "disputes": F.coalesce(F.col("generation") == highest_before, F.lit(False)),
            "highest": F.max("generation").over(everyone),
        }
    ).withColumn("disputed", F.max("disputes").over(everyone))
    judged = materialize(judged).frame
    lost = (
        judged.where(F.col("disputed") | (F.col("generation") < F.col("highest")))
        .groupBy(*GROUP_KEY, "member_id")
        .agg(F.collect_list("claim").alias("lost"))
    )
    remaining = F.expr("if(lost is null, claims, array_except(claims, lost))")
    surviving = (
        claims.members.join(lost, on=[*GROUP_KEY, "member_id"], how="left")
        .withColumn("claims", remaining)
        .drop("lost")
    )
    members = materialize(surviving).frame
    disputed = judged.where("disputed").select(*GROUP_KEY, *_place()).distinct()
    return ClaimFrames(claims.subscribed, members, _group_by_topic(members), disputed)
