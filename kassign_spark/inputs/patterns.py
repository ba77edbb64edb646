"""Subscriptions by pattern, resolved to topics as the Java client does.

Source: ``ConsumerCoordinator.updatePatternSubscription``, ``ConsumerMetadata.retainTopic`` and
``SubscriptionState.matchesSubscribedPattern`` of the classic protocol: the whole name must match
(``java.util.regex.Matcher.matches``), and topics that the broker calls internal are left out, as
``exclude.internal.topics`` asks by default. A pattern that the broker resolves (KIP-848, RE2/J) is
another language and no ``topics_pattern``.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kassign_spark.conforming import check_same_clusters, conform, has_cluster_id, topics_table
from kassign_spark.inputs.linear import (
    LONGEST_NAME,
    compile_pattern,
    is_compiled,
    match_each,
    may_not_end_in_sql,
)
from kassign_spark.results import to_result
from kassign_spark.schemas import CLUSTER_ID, GROUP_KEY, MEMBERS, table_of
from kassign_spark.spark.sessions import cores
from kassign_spark.spark.spark_versions import arrow_udf

INTERNAL_TOPICS = ("__consumer_offsets", "__transaction_state", "__share_group_state")
"""``org.apache.kafka.common.internals.Topic.isInternal``; other names with ``__`` are ordinary."""

NEW_TOPICS = table_of("new_topics", "cluster_id string?, topic string")
"""Names of topics; further columns, such as those of ``schemas.TOPICS``, do not matter."""

_PATTERN_KEY = [CLUSTER_ID, "topics_pattern"]
# A pattern may end within a quotation (\Q), a comment ((?x) ... #) or both, which would swallow the
# bracket that closes the group. Then the bracket is missing, so exactly one of these compiles.
_CLOSINGS = (r")\z", r"\E)\z", "\n)\\z", "\\E\n)\\z")


def resolve_patterns(members: DataFrame, topics: DataFrame) -> DataFrame:
    """Replace ``topics_pattern`` by the topics that match; runs no job.

    All functions of this package do that with their inputs by themselves.

    Args:
        members: ``schemas.MEMBERS``.
        topics: ``schemas.TOPICS``, or one row per partition.

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
    return to_result(resolved, MEMBERS, has_cluster_id=has_cluster_id(members))


def touched_groups(members: DataFrame, new_topics: DataFrame) -> DataFrame:
    """List the groups in which a new topic starts a rebalance; runs no job.

    These have a member whose pattern matches the whole name, or that lists a topic which was not
    there. The group's leader notices at its next refresh of metadata (``metadata.max.age.ms``).

    Args:
        members: ``schemas.MEMBERS``.
        new_topics: ``NEW_TOPICS``: cluster_id string?, topic string.

    Returns:
        One row per group and topic: cluster_id string (where the inputs have it), group_id string,
        topic string, member_count bigint: members that will subscribe to it, pattern_count bigint:
        of these, by pattern. A pattern that cannot be resolved touches nothing.

    Raises:
        SchemaError: columns are missing or of the wrong type, or only one table has cluster_id.
    """
    check_same_clusters([(MEMBERS, members), (NEW_TOPICS, new_topics)])
    conforming = conform(members, MEMBERS)
    topics = conform(new_topics, NEW_TOPICS).distinct()
    by_pattern = conforming.where("topics_pattern IS NOT NULL")
    matching = match_topics(by_pattern.select(CLUSTER_ID, "topics_pattern"), topics)
    matched = by_pattern.join(F.broadcast(matching), on=_PATTERN_KEY, how="inner").select(
        *GROUP_KEY, "member_id", F.explode("matching").alias("topic"), F.lit(1).alias("by_pattern")
    )
    lists = conforming.select(
        *GROUP_KEY, "member_id", F.explode("topics").alias("topic"), F.lit(0).alias("by_pattern")
    ).join(F.broadcast(topics), on=[CLUSTER_ID, "topic"], how="left_semi")
    touched = (
        matched.unionByName(lists)
        .groupBy(*GROUP_KEY, "topic", "member_id")
        .agg(F.max("by_pattern").alias("by_pattern"))
        .groupBy(*GROUP_KEY, "topic")
        .agg(F.count("*").alias("member_count"), F.sum("by_pattern").alias("pattern_count"))
    )
    return to_result(touched, "touched_groups", has_cluster_id=has_cluster_id(members))


def with_topics(members: DataFrame, topics: DataFrame, *, has_unending: bool = True) -> DataFrame:
    """Resolve patterns of conforming tables as ``resolve_patterns``; ``topics`` has either form.

    A pattern that cannot be resolved is left with null ``topics``.
    """
    has_pattern = "(topics_pattern is not null and (topics is null or size(topics) = 0))"
    patterns = members.where(has_pattern).select(*_PATTERN_KEY)
    matching = F.broadcast(match_topics(patterns, topics, has_unending=has_unending))
    changed = {
        "topics": f"if({has_pattern}, matching, topics) as topics",
        "topics_pattern": (
            f"if({has_pattern} and matching is not null, null, topics_pattern) as topics_pattern"
        ),
    }
    return members.join(matching, on=_PATTERN_KEY, how="left").selectExpr(
        *(changed.get(name, f"`{name}`") for name in members.columns)
    )


def match_topics(patterns: DataFrame, topics: DataFrame, *, has_unending: bool = True) -> DataFrame:
    """Find the topics that match each pattern.

    Args:
        patterns: cluster_id string, topics_pattern string; any number of times each.
        topics: cluster_id string, topic string, and, where it is known, num_partitions: a topic
            without partitions is unknown to a client.
        has_unending: whether there may be patterns that ``linear`` has to match, in Python.

    Returns:
        One row a pattern of a cluster: cluster_id string, topics_pattern string,
        matching array<string>: names in order, null where the pattern is none, or matching it may
        not end (``linear``).
    """
    is_known = f"topic not in {INTERNAL_TOPICS}"
    if "num_partitions" in topics.columns:
        is_known += " and num_partitions > 0"
    # No topic has a longer name, and what backtracks takes the longer the longer a name is.
    is_known += f" and length(topic) <= {LONGEST_NAME}"
    sorted_names = F.expr("array_sort(collect_set(topic)) as names")
    names = topics.where(is_known).groupBy(CLUSTER_ID).agg(sorted_names)
    # Names are exploded behind the pattern, so that Spark compiles a pattern once and not for each
    # name; the number of tasks is given, as adaptive execution sees only the few patterns.
    tasks = cores(patterns.sparkSession)
    unending = may_not_end_in_sql("topics_pattern")
    matched = (
        patterns.where(f"coalesce(not {unending}, true)")
        .distinct()
        .withColumn("regex", F.expr(_whole_name("topics_pattern")))
        .join(F.broadcast(names), on=CLUSTER_ID, how="left")
        .repartition(tasks, *_PATTERN_KEY)
        .selectExpr(*_PATTERN_KEY, "regex", "explode_outer(names) as topic")
        .groupBy(*_PATTERN_KEY)
        .agg(
            F.expr("max(regex) as regex"),
            F.expr("collect_list(if(rlike(topic, regex), topic, null)) as found"),
        )
        .selectExpr(*_PATTERN_KEY, "if(regex is null, null, array_sort(found)) as matching")
    )
    if not has_unending:
        return matched
    is_pattern = F.expr(is_compiled("topics_pattern"))
    in_python = arrow_udf(match_each, "array<string>")("topics_pattern", "names")
    others = (
        patterns.where(unending)
        .distinct()
        .join(F.broadcast(names), on=CLUSTER_ID, how="left")
        .withColumn("matching", in_python)
        .select(*_PATTERN_KEY, F.when(is_pattern, F.col("matching")).alias("matching"))
    )
    return matched.unionByName(others)


def _whole_name(pattern: str) -> str:
    """Return in SQL a pattern for ``rlike`` that finds what ``pattern`` matches as a whole.

    Null for an empty pattern, which a consumer refuses, and for one that does not compile.
    """
    whole = (rf"concat(r'\A(?:', {pattern}, r'{end}')" for end in _CLOSINGS)
    anchored = f"coalesce({', '.join(map(compile_pattern, whole))})"
    return f"if({is_compiled(pattern)}, {anchored}, null)"
