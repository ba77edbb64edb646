"""Classes of partitions where racks count, over DataFrames: for groups that no task takes whole.

As ``assignors.differing.rack_classes`` does over arrays: partitions of a topic class are told apart
by which of its subscribers' racks have a replica.
"""

from pyspark.sql import Column, Window
from pyspark.sql import functions as F

from kassign_spark.groups.eligible import Eligible
from kassign_spark.groups.large_claims import subscribed_topics, topic_number
from kassign_spark.groups.large_classes import CLASS_KEY, Classes
from kassign_spark.schemas import CLUSTER_ID, GROUP_KEY
from kassign_spark.spark.iteration import materialize


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
