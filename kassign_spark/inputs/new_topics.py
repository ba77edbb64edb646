"""Which groups a topic concerns that is not there yet."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kassign_spark.conforming import check_same_clusters, conform, has_cluster_id
from kassign_spark.inputs.patterns import match_topics
from kassign_spark.results import answer
from kassign_spark.schemas import CLUSTER_ID, GROUP_KEY, MEMBERS, table_of

NEW_TOPICS = table_of("new_topics", "cluster_id string?, topic string")
"""Names of topics; further columns, such as those of ``schemas.TOPICS``, do not matter."""


def touched_groups(members: DataFrame, new_topics: DataFrame) -> DataFrame:
    """List the groups in which a new topic starts a rebalance; runs no job.

    These have a member whose pattern matches the whole name, or that lists a topic which was not
    there. The group's leader notices at its next refresh of metadata (``metadata.max.age.ms``).

    Args:
        members: ``schemas.MEMBERS``.
        new_topics: ``NEW_TOPICS``: cluster_id string?, topic string.

    Returns:
        One row a group and topic: cluster_id string (where the inputs have it), group_id string,
        topic string, member_count bigint: members that will subscribe to it, pattern_count bigint:
        of these, by pattern. A pattern that cannot be resolved touches nothing.

    Raises:
        SchemaError: columns are missing or of the wrong type, or only one table has cluster_id.
    """
    check_same_clusters([(MEMBERS, members), (NEW_TOPICS, new_topics)])
    known = conform(members, MEMBERS)
    topics = conform(new_topics, NEW_TOPICS).distinct()
    by_pattern = known.where("topics_pattern IS NOT NULL")
    matching = match_topics(by_pattern.select(CLUSTER_ID, "topics_pattern"), topics)
    matched = by_pattern.join(
        F.broadcast(matching), on=[CLUSTER_ID, "topics_pattern"], how="inner"
    ).select(
        *GROUP_KEY, "member_id", F.explode("matching").alias("topic"), F.lit(1).alias("by_pattern")
    )
    listed = known.select(
        *GROUP_KEY, "member_id", F.explode("topics").alias("topic"), F.lit(0).alias("by_pattern")
    ).join(F.broadcast(topics), on=[CLUSTER_ID, "topic"], how="left_semi")
    touched = (
        matched.unionByName(listed)
        .groupBy(*GROUP_KEY, "topic", "member_id")
        .agg(F.max("by_pattern").alias("by_pattern"))
        .groupBy(*GROUP_KEY, "topic")
        .agg(F.count("*").alias("member_count"), F.sum("by_pattern").alias("pattern_count"))
    )
    return answer(touched, "touched_groups", has_cluster_id=has_cluster_id(members))
