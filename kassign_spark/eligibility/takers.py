"""Who can take which partition, and which groups fall into independent parts: the public view."""

from typing import NamedTuple

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from kassign_spark.eligibility.classes import CLASS_KEY, Classes, topic_classes
from kassign_spark.eligibility.graph import connected_components, eligibility_graph
from kassign_spark.eligibility.groups import Eligible
from kassign_spark.rounds import Budget, settle
from kassign_spark.schemas import GROUP_KEY
from kassign_spark.settings import Settings


class Eligibility(NamedTuple):
    """What ``describe_eligibility`` gives; ``component`` counts from 0 within each group.

    Attributes:
        topics: who can take which partition: cluster_id string, group_id string, topic string,
            num_partitions int, component int, taker_count int, takers array<string> (member ids,
            sorted), has_single_taker boolean (its partitions have one possible owner).
        members: cluster_id string, group_id string, member_id string, component int (null: it
            can take nothing), eligible_count bigint (partitions that it can take), sole_count
            bigint (partitions that only it can take), has_alternative boolean (another member can
            take some of what it can take; false: it gets the same from any assignor).
        components: cluster_id string, group_id string, component int, member_count bigint,
            topic_count bigint, partition_count bigint.
    """

    topics: DataFrame
    members: DataFrame
    components: DataFrame


def describe_eligibility(eligible: Eligible, settings: Settings | None = None) -> Eligibility:
    """Say who can take what in every group; runs the jobs that find the components.

    Args:
        eligible: prepared tables.
        settings: ``use_graphframes``, ``max_rounds``.

    Raises:
        NotConvergedError: finding the components took more rounds than ``max_rounds``.
    """
    settings = settings or Settings()
    classes = topic_classes(eligible)
    graph = eligibility_graph(classes)
    found = connected_components(settle(graph.edges).frame, settings, Budget(settings.max_rounds))
    in_group = Window.partitionBy(*GROUP_KEY).orderBy("component")
    numbered = graph.vertices.join(found, on="id", how="inner").select(
        *GROUP_KEY, "is_member", "number", (F.dense_rank().over(in_group) - 1).alias("component")
    )
    vertices = settle(numbered).frame
    topics = _topics(classes, vertices)
    members = _members(classes, vertices)
    member_counts = members.groupBy(*GROUP_KEY, "component").agg(F.count("*").alias("member_count"))
    components = (
        topics.groupBy(*GROUP_KEY, "component")
        .agg(F.count("*").alias("topic_count"), F.sum("num_partitions").alias("partition_count"))
        .join(member_counts, on=[*GROUP_KEY, "component"], how="inner")
        .select(*GROUP_KEY, "component", "member_count", "topic_count", "partition_count")
    )
    return Eligibility(topics, members, components)


def _topics(classes: Classes, vertices: DataFrame) -> DataFrame:
    takers = (
        classes.edges.join(classes.members, on=[*GROUP_KEY, "member"], how="inner")
        .groupBy(*CLASS_KEY)
        .agg(F.sort_array(F.collect_list("member_id")).alias("takers"))
    )
    components = vertices.where("not is_member").select(
        *GROUP_KEY, F.col("number").alias("class"), "component"
    )
    return (
        classes.topics.join(takers, on=list(CLASS_KEY), how="inner")
        .join(components, on=list(CLASS_KEY), how="inner")
        .select(
            *GROUP_KEY,
            "topic",
            "num_partitions",
            "component",
            F.size("takers").alias("taker_count"),
            "takers",
            (F.size("takers") == 1).alias("has_single_taker"),
        )
    )


def _members(classes: Classes, vertices: DataFrame) -> DataFrame:
    is_sole = F.count("*").over(Window.partitionBy(*CLASS_KEY)) == 1
    none = F.lit(0).cast("bigint")
    counts = (
        classes.edges.withColumn("sole_supply", F.when(is_sole, F.col("supply")).otherwise(none))
        .groupBy(*GROUP_KEY, "member")
        .agg(
            F.sum("supply").alias("eligible_count"),
            F.sum("sole_supply").alias("sole_count"),
        )
    )
    components = vertices.where("is_member").select(
        *GROUP_KEY, F.col("number").alias("member"), "component"
    )
    return (
        classes.members.join(components, on=[*GROUP_KEY, "member"], how="left")
        .join(counts, on=[*GROUP_KEY, "member"], how="left")
        .select(
            *GROUP_KEY,
            "member_id",
            "component",
            F.coalesce("eligible_count", none).alias("eligible_count"),
            F.coalesce("sole_count", none).alias("sole_count"),
            F.coalesce(F.col("eligible_count") > F.col("sole_count"), F.lit(False)).alias(
                "has_alternative"
            ),
        )
    )
