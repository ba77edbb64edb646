"""Subscriptions by pattern, resolved to topics as the Java client does.

Source: ``ConsumerCoordinator.updatePatternSubscription``, ``ConsumerMetadata.retainTopic`` and
``SubscriptionState.matchesSubscribedPattern`` of the classic protocol: the whole name must match
(``java.util.regex.Matcher.matches``), and topics that the broker calls internal are left out, as
``exclude.internal.topics`` asks by default. A pattern that the broker resolves (KIP-848, RE2/J) is
another language and no ``topics_pattern``.
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from kassign_spark.schemas import (
    CLUSTER_ID,
    MEMBERS,
    check_same_clusters,
    conform,
    declare,
    has_cluster_id,
    restore_cluster_id,
    topics_table,
)
from kassign_spark.sessions import cores

INTERNAL_TOPICS = ("__consumer_offsets", "__transaction_state", "__share_group_state")
"""``org.apache.kafka.common.internals.Topic.isInternal``; other names with ``__`` are ordinary."""

_PATTERN_KEY = [CLUSTER_ID, "topics_pattern"]
# A pattern may end within a quotation (\Q), a comment ((?x) ... #) or both, which would swallow the
# bracket that closes the group. Then the bracket is missing, so exactly one of these compiles.
_CLOSINGS = (r")\z", r"\E)\z", "\n)\\z", "\\E\n)\\z")


def resolve_patterns(members: DataFrame, topics: DataFrame) -> DataFrame:
    """Replace ``topics_pattern`` by the topics that match; runs no job.

    All functions of this package do that with their inputs by themselves.

    Args:
        members: ``schemas.MEMBERS``.
        topics: ``schemas.TOPICS``, or one row a partition.

    Returns:
        The columns of ``schemas.MEMBERS`` (cluster_id where the inputs have it): of members with a
        pattern, topics in name order, and no pattern any more. A member that lists topics beside
        its pattern, or whose pattern is empty or not one of ``java.util.regex``, stays as it is;
        inputs with such a member are refused.

    Raises:
        SchemaError: columns are missing or of the wrong type, or only one table has cluster_id.
    """
    form = topics_table(topics)
    check_same_clusters([(MEMBERS, members), (form, topics)])
    resolved = with_topics(conform(members, MEMBERS), conform(topics, form))
    return restore_cluster_id(declare(resolved, MEMBERS), has_cluster_id(members))


def with_topics(members: DataFrame, topics: DataFrame) -> DataFrame:
    """Do what ``resolve_patterns`` does with conforming tables; of ``topics`` any form does.

    A pattern that cannot be resolved is left with null ``topics``.
    """
    has_pattern = F.col("topics_pattern").isNotNull() & (
        F.col("topics").isNull() | (F.size("topics") == 0)
    )
    patterns = members.where(has_pattern).select(*_PATTERN_KEY)
    matching = F.broadcast(match_topics(patterns, topics))
    resolved = F.when(has_pattern, F.col("matching")).otherwise(F.col("topics"))
    left = F.when(~has_pattern | F.col("matching").isNull(), F.col("topics_pattern"))
    changed = {"topics": resolved, "topics_pattern": left}
    return members.join(matching, on=_PATTERN_KEY, how="left").select(
        *(changed[n].alias(n) if n in changed else F.col(n) for n in members.columns)
    )


def match_topics(patterns: DataFrame, topics: DataFrame) -> DataFrame:
    """Find the topics that match each pattern.

    Args:
        patterns: cluster_id string, topics_pattern string; any number of times each.
        topics: cluster_id string, topic string, and, where it is known, num_partitions: a topic
            without partitions is unknown to a client.

    Returns:
        One row a pattern of a cluster: cluster_id string, topics_pattern string,
        matching array<string>: names in order, null where the pattern is none.
    """
    is_known = ~F.col("topic").isin(*INTERNAL_TOPICS)
    if "num_partitions" in topics.columns:
        is_known &= F.col("num_partitions") > 0
    names = (
        topics.where(is_known)
        .groupBy(CLUSTER_ID)
        .agg(F.array_sort(F.collect_set("topic")).alias("names"))
    )
    # Names are exploded behind the pattern, so that Spark compiles a pattern once and not for each
    # name; the number of tasks is given, as adaptive execution sees only the few patterns.
    tasks = cores(patterns.sparkSession)
    return (
        patterns.distinct()
        .withColumn("regex", _whole_name(F.col("topics_pattern")))
        .join(F.broadcast(names), on=CLUSTER_ID, how="left")
        .repartition(tasks, *_PATTERN_KEY)
        .select(*_PATTERN_KEY, "regex", F.explode_outer("names").alias("topic"))
        .groupBy(*_PATTERN_KEY)
        .agg(
            F.max("regex").alias("regex"),
            F.collect_list(F.when(F.rlike("topic", F.col("regex")), F.col("topic"))).alias("found"),
        )
        .select(
            *_PATTERN_KEY,
            F.when(F.col("regex").isNotNull(), F.array_sort("found")).alias("matching"),
        )
    )


def _whole_name(pattern: Column) -> Column:
    """Give a pattern for ``rlike`` that finds exactly what ``pattern`` matches as a whole.

    Null for an empty pattern, which a consumer refuses, and for one that does not compile.
    """
    opened = F.concat(F.lit(r"\A(?:"), pattern)
    anchored = F.coalesce(*(_compiled(F.concat(opened, F.lit(end))) for end in _CLOSINGS))
    return F.when((F.length(pattern) > 0) & _compiled(pattern).isNotNull(), anchored)


def _compiled(pattern: Column) -> Column:
    """Give the pattern itself, or null where Java refuses it."""
    return F.try_reflect(F.lit("java.util.regex.Pattern"), F.lit("compile"), pattern)
