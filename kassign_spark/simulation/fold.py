"""Groups and what is to happen to them as the rows of one table, so that tasks can be given it."""

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from kassign_spark.groups.read import CLAIM, SUBSCRIPTION
from kassign_spark.groups.rows import (
    OF_CLIENTS,
    member_rows,
    number_lists,
    regex_rows,
    rows,
    target_rows,
    topic_rows,
)
from kassign_spark.inputs.input_tables import Inputs
from kassign_spark.inputs.patterns import match_topics
from kassign_spark.inputs.regexes import match_regexes
from kassign_spark.schemas import CLUSTER_ID, GROUP_KEY
from kassign_spark.simulation.events import Events
from kassign_spark.simulation.group_reading import EVENT, PATTERN
from kassign_spark.spark.spark_versions import union_by_name

_KEYS = list(GROUP_KEY)
_FIRST = -(2**31)
"""No event has a smaller number."""


def fold_events(inputs: Inputs, topics: DataFrame, events: Events, *, patterns: bool) -> DataFrame:
    """Fold groups, and the events that concern them, into the rows of one table; runs no job.

    Args:
        inputs: checked, subscriptions as declared.
        topics: cluster_id string, topic string, num_partitions int, and where racks may matter
            replica_racks; one row per topic.
        events: what happens.
        patterns: whether a member has one before the first event.

    Returns:
        Rows as in ``rows.fold`` of the groups that have events, but for these:
        MEMBER: texts has topics_regex, client and whether it leads as well;
        SUBSCRIPTION: list_number, texts (the topics as declared), topic (the pattern);
        TOPIC: those that the group could ever read, and that events name; member_id is the
        topic's id, where it is known;
        EVENT: texts (a JSON object of the columns of ``events.EVENTS``, is_topic, and is_hosted:
        its cluster has a group by then);
        PATTERN: topic (the pattern), texts (all names that it ever matches; null: it is none);
        REGEX: the same of a regex that the broker resolves;
        TARGET: member_id, topic, number (partition), place (position, or -1).
        A topic's event is there for each group of its cluster, or for none (null) where there is
        no group.
    """
    of_groups = _group_events(inputs.members, events)
    members, owned, target = inputs.members, inputs.owned, inputs.target
    if not events.counts["topics"]:
        group_keys = of_groups.select(*_KEYS).distinct()
        members = members.join(group_keys, on=_KEYS, how="left_semi")
        owned = None if owned is None else owned.join(group_keys, on=_KEYS, how="left_semi")
        target = None if target is None else target.join(group_keys, on=_KEYS, how="left_semi")
    members = number_lists(members, "topics", "topics_pattern")
    subscriptions = members.select(*_KEYS, "list_number", "topics", "topics_pattern").distinct()
    # Not of_groups: what is planned for it would be planned, and run, for each of these again.
    member_events = events.frame.where("NOT is_topic")
    topic_names = [
        subscriptions.select(*_KEYS, F.explode("topics").alias("topic")),
        member_events.select(*_KEYS, F.explode("topics").alias("topic")),
        of_groups.where("event.is_topic").select(*_KEYS, F.col("event.topic").alias("topic")),
    ]
    parts = [
        member_rows(members, *OF_CLIENTS),
        rows(subscriptions, SUBSCRIPTION, topic="topics_pattern", texts="to_json(topics)"),
        rows(of_groups, EVENT, texts="to_json(event, map('ignoreNullFields', 'false'))"),
    ]
    if patterns or events.counts["patterns"]:
        matched = _match_patterns(subscriptions, topics, events)
        topic_names.append(matched.select(*_KEYS, F.explode("matching").alias("topic")))
        parts.append(rows(matched, PATTERN, topic="topics_pattern", texts="to_json(matching)"))
    if inputs.has_regexes or events.counts["regexes"]:
        regexes = members.select(*_KEYS, "topics_regex").unionByName(
            member_events.select(*_KEYS, "topics_regex")
        )
        matches = match_regexes(regexes, _ever(topics, events))
        topic_names.append(matches.select(*_KEYS, F.explode("names").alias("topic")))
        parts.append(regex_rows(matches))
    if target is not None:
        parts.append(target_rows(target))
        topic_names.append(target.select(*_KEYS, "topic"))
    could_read = union_by_name(topic_names).distinct()
    existing = could_read.join(topics, on=[CLUSTER_ID, "topic"], how="inner")
    parts.append(topic_rows(existing))
    if owned is not None:
        parts.append(rows(owned, CLAIM, number="partition"))
    return union_by_name(parts)


def _group_events(members: DataFrame, events: Events) -> DataFrame:
    """Return the events of each group: GROUP_KEY and event, as ``fold_events`` says."""
    member_events, hosted = events.frame.where("NOT is_topic"), F.lit(True).alias("is_hosted")
    columns = [name for name in events.frame.columns if name not in GROUP_KEY]
    of_groups = member_events.select(*_KEYS, F.struct(*columns, hosted).alias("event"))
    if not events.counts["topics"]:
        return of_groups
    hosts = (
        members.select(*_KEYS, F.lit(_FIRST).alias("first"))
        .unionByName(member_events.select(*_KEYS, F.col("event").alias("first")))
        .groupBy(*_KEYS)
        .agg(F.min("first").alias("first"))
        .withColumn("first", F.min("first").over(Window.partitionBy(CLUSTER_ID)))
    )
    everywhere = events.frame.where("is_topic").drop("group_id")
    hosted = F.coalesce(F.col("first") <= F.col("event"), F.lit(False)).alias("is_hosted")
    return of_groups.unionByName(
        everywhere.join(hosts, on=CLUSTER_ID, how="left").select(
            *_KEYS, F.struct(*columns, hosted).alias("event")
        )
    )


def _match_patterns(subscriptions: DataFrame, topics: DataFrame, events: Events) -> DataFrame:
    """Return all names that patterns of groups ever match: GROUP_KEY, topics_pattern, matching."""
    member_events = events.frame.where("NOT is_topic")
    patterns = (
        subscriptions.select(*_KEYS, "topics_pattern")
        .unionByName(member_events.select(*_KEYS, "topics_pattern"))
        .where("topics_pattern IS NOT NULL")
        .distinct()
    )
    of_cluster = [CLUSTER_ID, "topics_pattern"]
    matches = match_topics(patterns.select(*of_cluster), _ever(topics, events))
    return patterns.join(F.broadcast(matches), on=of_cluster, how="inner")


def _ever(topics: DataFrame, events: Events) -> DataFrame:
    """Return the names of topics that exist or are to be created."""
    columns = [CLUSTER_ID, "topic"]
    return topics.select(*columns).unionByName(events.frame.where("is_topic").select(*columns))
