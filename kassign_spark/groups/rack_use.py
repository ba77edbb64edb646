"""Find where racks can change an assignment, without looking at single partitions again.

A partition *matches* a member where the member has no rack, or a replica is in the member's rack
(``client.rack`` and ``broker.rack``, KIP-881). Most fleets that have racks have a replica of
everything in each of them: then nothing depends on racks, and the strategies need not know them.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kassign_spark.groups.eligible import Eligible
from kassign_spark.groups.large_claims import subscribed_topics
from kassign_spark.schemas import CLUSTER_ID, GROUP_KEY


def fold_racks(topics: DataFrame) -> DataFrame:
    """Fold conforming ``schemas.TOPICS`` into the racks of each topic's replicas.

    Returns:
        cluster_id string, topic string, replica_racks array<array<string>>; one row per topic of
        which they are known. Of a topic that is given twice, the greater.
    """
    return (
        topics.where(F.col("replica_racks").isNotNull())
        .groupBy(CLUSTER_ID, "topic")
        .agg(F.max("replica_racks").alias("replica_racks"))
    )


def rack_use(eligible: Eligible) -> DataFrame:
    """Find what racks can change, for the groups in which some member has one.

    Returns:
        cluster_id string, group_id string, is_homogeneous boolean,
        by_topic boolean: `range` looks at racks, topic by topic; perhaps true where only members
        that do not subscribe to the topic have a rack,
        by_group boolean: the sticky assignors do, of which the rule is for the group as a whole
        (``AbstractPartitionAssignor.useRackAwareAssignment``): some member's rack is among the
        replicas' racks, and not every partition has a replica in each of those racks,
        can_mismatch boolean: some partition does not match some member.
    """
    racked = eligible.members.where(F.length("rack_id") > 0)
    members = eligible.members.join(racked, on=list(GROUP_KEY), how="left_semi")
    of_racked = eligible._replace(members=members)
    member_racks = racked.groupBy(*GROUP_KEY).agg(F.collect_set("rack_id").alias("member_racks"))
    topics = subscribed_topics(of_racked).join(
        _fold_topic_racks(eligible.topics), on=[CLUSTER_ID, "topic"], how="inner"
    )
    can_mismatch = "size(all_racks) > 0 and size(array_except(member_racks, common_racks)) > 0"
    judged = (
        topics.join(member_racks, on=list(GROUP_KEY), how="inner")
        .groupBy(*GROUP_KEY, "member_racks")
        .agg(
            F.expr("array_distinct(flatten(collect_set(all_racks))) as all_racks"),
            F.expr("bool_and(is_uniform) and min(all_racks) = max(all_racks) as is_uniform"),
            F.expr(
                "bool_or(not is_uniform and arrays_overlap(member_racks, all_racks)) as by_topic"
            ),
            F.expr(f"bool_or({can_mismatch}) as can_mismatch"),
        )
    )
    return judged.join(of_racked.groups, on=list(GROUP_KEY), how="inner").selectExpr(
        *GROUP_KEY,
        "is_homogeneous",
        "by_topic",
        "not is_uniform and arrays_overlap(member_racks, all_racks) as by_group",
        "can_mismatch",
    )


def _fold_topic_racks(topics: DataFrame) -> DataFrame:
    """Fold the racks of a topic's partitions.

    Returns:
        cluster_id string, topic string, all_racks array<string>: sorted, is_uniform boolean: each
        partition has a replica in each of them, common_racks array<string>: which each partition
        has of which any rack is known.
    """
    racks = "coalesce(replica_racks, cast(array() as array<array<string>>))"
    racks = f"slice({racks}, 1, num_partitions)"
    racks_of_one = "array_compact(coalesce(racks, cast(array() as array<string>)))"
    set_of_each = f"racks -> array_sort(array_distinct({racks_of_one}))"
    nonempty = "filter(sets, racks -> size(racks) > 0)"
    is_same = "size(array_distinct(sets)) <= 1 and size(sets) = num_partitions"
    return (
        topics.withColumn("sets", F.expr(f"transform({racks}, {set_of_each})"))
        .withColumn("all_racks", F.expr("array_sort(array_distinct(flatten(sets)))"))
        .selectExpr(
            CLUSTER_ID,
            "topic",
            "all_racks",
            f"({is_same}) or size(all_racks) = 0 as is_uniform",
            f"aggregate({nonempty}, all_racks, (a, b) -> array_intersect(a, b)) as common_racks",
        )
    )
