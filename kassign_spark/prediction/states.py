"""Everything about a group in one row, as the model takes it."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kassign_spark.eligibility.groups import Eligible
from kassign_spark.schemas import CLUSTER_ID, GROUP_KEY, TOPICS

_CLAIMS = "array<struct<member_id: string, topic: string, partition: bigint>>"


def collect_states(
    groups: DataFrame, members: DataFrame, topics: DataFrame, owned: DataFrame | None
) -> DataFrame:
    """Collect members, topics and claims of each group.

    Args:
        groups: cluster_id string, group_id string, assignor string, has_racks boolean.
        members: ``schemas.MEMBERS``, of these groups and others.
        topics: cluster_id string, topic string, num_partitions int,
            replica_racks array<array<string>>.
        owned: ``schemas.OWNED`` or None.

    Returns:
        cluster_id string, group_id string, assignor string,
        members array<struct<member_seq bigint, member_id string, group_instance_id string,
        rack_id string, topics array<string>, generation bigint>>: in JoinGroup order, null
        member_seq first; then by member_id,
        topics array<struct<topic string, num_partitions int, replica_racks
        array<array<string>>>>: those with metadata; racks only where a member has one,
        claims array<struct<member_id string, topic string, partition bigint>>: in any order.
    """
    key = list(GROUP_KEY)
    # The expensive part comes after: all tasks must have their share of the few rows.
    chosen = members.drop("assignor").join(groups, on=key, how="inner")
    columns = (
        "member_seq",
        "member_id",
        "group_instance_id",
        "rack_id",
        F.coalesce("topics", F.array()).alias("topics"),
        "generation",
    )
    of_members = (
        chosen
        .groupBy(*key, "assignor", "has_racks")
        .agg(
            F.sort_array(F.collect_list(F.struct(*columns))).alias("members"),
            F.array_distinct(F.flatten(F.collect_set("topics"))).alias("names"),
        )
    )
    named = of_members.select(*key, "has_racks", F.explode("names").alias("topic"))
    racks = F.when(F.col("has_racks"), F.col("replica_racks")).alias("replica_racks")
    of_topics = (
        named.join(topics, on=[CLUSTER_ID, "topic"], how="inner")
        .groupBy(*key)
        .agg(F.collect_list(F.struct("topic", "num_partitions", racks)).alias("topics"))
    )
    states = of_members.drop("names", "has_racks").join(of_topics, on=key, how="left")
    if owned is None:
        return states.withColumn("claims", F.lit(None).cast(_CLAIMS))
    of_owned = (
        owned.join(groups.select(*key), on=key, how="left_semi")
        .groupBy(*key)
        .agg(F.collect_list(F.struct("member_id", "topic", "partition")).alias("claims"))
    )
    return states.join(of_owned, on=key, how="left")


def topics_with_racks(eligible: Eligible) -> DataFrame:
    """Give the topics with their replicas' racks, null where none is known.

    Returns:
        cluster_id string, topic string, num_partitions int, replica_racks array<array<string>>.
    """
    if not eligible.has_racks:
        racks_type = TOPICS.columns["replica_racks"].dataType
        return eligible.topics.withColumn("replica_racks", F.lit(None).cast(racks_type))
    return eligible.topics
