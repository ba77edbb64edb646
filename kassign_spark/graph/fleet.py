"""The fleet's graph, of groups and the topics that they read: what a change touches, clusters."""

from collections.abc import Sequence
from typing import NamedTuple

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kassign_spark.client.protocols import COOPERATIVE_ASSIGNORS
from kassign_spark.conforming import has_cluster_id
from kassign_spark.errors import InputError, SettingsError
from kassign_spark.graph.components import (
    GraphFramesError,
    connected_components,
    graphframe,
    number_rows,
)
from kassign_spark.groups.eligible import Eligible
from kassign_spark.groups.inspection import inspect_inputs
from kassign_spark.inputs.input_tables import conform_inputs
from kassign_spark.inputs.nearest import refuse_unknown
from kassign_spark.results import to_result
from kassign_spark.schemas import CLUSTER_ID, GROUP_KEY
from kassign_spark.settings.computing import Settings
from kassign_spark.spark.iteration import Budget, converge, materialize, settle

GROUP, TOPIC = "group", "topic"
METHODS = ("components", "labels")
_TOPIC_KEY = [CLUSTER_ID, TOPIC]
_ROUNDS_OF_GRAPHFRAMES = 5


class FleetGraph(NamedTuple):
    """Groups and topics; ``GraphFrame(*fleet_graph(...))`` takes it as it is.

    Attributes:
        vertices: id bigint, cluster_id string (where the inputs have it), kind string: `group` or
            `topic`, name string: the group_id or the topic.
        edges: src bigint: a group, dst bigint: a topic that members of it read, member_count
            bigint: how many of them.
    """

    vertices: DataFrame
    edges: DataFrame


def fleet_graph(members: DataFrame, topics: DataFrame) -> FleetGraph:
    """Return the graph of groups and the topics that they read; computed once, and held.

    Ids follow from the names alone. A topic that no group reads, or that has no partition, is not
    there; a group that reads none is there without edges.

    Args:
        members: ``schemas.MEMBERS``; only group_id, member_id and topics must be there.
        topics: ``schemas.TOPICS``, or one row per partition.

    Returns:
        Vertices and edges.

    Raises:
        SchemaError: columns are missing or of the wrong type.
        InputError: values that have no meaning; lists every one.
    """
    eligible = inspect_inputs(conform_inputs(members, topics), None).eligible
    vertices, edges = _fleet_graph(eligible)
    has_clusters = has_cluster_id(members)
    return FleetGraph(
        to_result(vertices, "fleet_graph.vertices", has_cluster_id=has_clusters),
        to_result(edges, "fleet_graph.edges", has_cluster_id=False),
    )


def group_clusters(
    members: DataFrame,
    topics: DataFrame,
    *,
    method: str = "components",
    settings: Settings = Settings(),
) -> DataFrame:
    """Find clusters of groups that read the same topics, and these topics; runs jobs.

    Whether GraphFrames or rounds over DataFrames found components is logged (level INFO).

    Args:
        members: ``schemas.MEMBERS``; only group_id, member_id and topics must be there.
        topics: ``schemas.TOPICS``, or one row per partition.
        method: `components`: whatever is joined by topics in any number of steps is one cluster, so
            that a change in one touches no other; `labels`: denser clusters inside of these, by
            label propagation.
        settings: ``use_graphframes``, ``max_rounds``.

    Returns:
        cluster_id string (where the inputs have it), kind string: `group` or `topic`, name string,
        cluster bigint: the same for all of one cluster, the least id in it, which follows from
        names, group_count bigint, topic_count bigint: of the cluster.

    Raises:
        SchemaError: columns are missing or of the wrong type.
        InputError: values that have no meaning, or no such method.
        NotConvergedError: it took more rounds than ``max_rounds``.
    """
    if method not in METHODS:
        raise InputError(f"unknown method {method!r}; known are {', '.join(METHODS)}")
    eligible = inspect_inputs(conform_inputs(members, topics), None).eligible
    graph = _fleet_graph(eligible)
    budget = Budget(settings.max_rounds)
    if method == "labels":
        labels = spread_labels(graph.vertices.select("id"), graph.edges, settings, budget)
        labels = labels.withColumnRenamed("label", "component")
    else:
        labels = connected_components(graph.edges.select("src", "dst"), settings, budget).frame
    whole = graph.vertices.join(labels, on="id", how="left").withColumn(
        "component", F.coalesce("component", "id")
    )
    sizes = whole.groupBy("component").agg(
        F.count_if(F.col("kind") == GROUP).alias("group_count"),
        F.count_if(F.col("kind") == TOPIC).alias("topic_count"),
    )
    columns = (CLUSTER_ID, "kind", "name", "component as cluster", "group_count", "topic_count")
    result = whole.join(sizes, on="component", how="inner").selectExpr(*columns)
    return to_result(result, "group_clusters", has_cluster_id=has_cluster_id(members))


def touched_by(members: DataFrame, topics: DataFrame, changed: Sequence[str]) -> DataFrame:
    """Find what a change of topics affects: new partitions, or a deleted topic.

    Args:
        members: ``schemas.MEMBERS``; only group_id, member_id and topics must be there.
        topics: ``schemas.TOPICS``, or one row per partition.
        changed: names of topics, of any cluster.

    Returns:
        One row per topic and group that reads it: cluster_id string (where the inputs have it),
        topic string, group_id string, member_count bigint: members that subscribe to it,
        group_member_count bigint: of the whole group, whose members all take part in the rebalance,
        partition_count bigint: of the topic, reassigned_count bigint: partitions that are revoked
        and handed out again: of all the group's topics with an eager assignor, or where none is
        named; of the topic with `cooperative-sticky`, other_topics `array<string>`: what else the
        group reads, by name. A topic that no group reads has no row.

    Raises:
        SchemaError: columns are missing or of the wrong type.
        InputError: values that have no meaning, or a name that no topic has.
    """
    inputs = conform_inputs(members, topics)
    eligible = inspect_inputs(inputs, None).eligible
    refuse_unknown(inputs.topics.select(F.col(TOPIC).alias("name")), list(changed), noun="topic")
    reads, keys = _reads(eligible), list(GROUP_KEY)
    of_group = reads.groupBy(*keys).agg(
        F.array_sort(F.collect_list(TOPIC)).alias("topics"),
        F.sum("partition_count").alias("group_partitions"),
    )
    is_cooperative = F.coalesce(F.col("assignor").isin(*COOPERATIVE_ASSIGNORS), F.lit(False))
    groups = eligible.groups.select(
        *keys, is_cooperative.alias("is_cooperative"), F.size("members").alias("group_members")
    )
    touched = (
        reads.where(F.col(TOPIC).isin(list(changed)))
        .join(of_group, on=keys, how="inner")
        .join(groups, on=keys, how="inner")
        .selectExpr(
            *(CLUSTER_ID, TOPIC, "group_id", "member_count"),
            "cast(group_members as bigint) as group_member_count",
            "partition_count",
            "if(is_cooperative, partition_count, group_partitions) as reassigned_count",
            f"array_remove(topics, {TOPIC}) as other_topics",
        )
    )
    return to_result(touched, "touched_by", has_cluster_id=has_cluster_id(members))


def _reads(eligible: Eligible) -> DataFrame:
    """Return GROUP_KEY, topic, partition_count, member_count: a row per group and topic."""
    topics = F.array_distinct(F.coalesce("topics", F.array().cast("array<string>")))
    # Members of one subscription first: so a group costs its members and its topics.
    return (
        eligible.members.groupBy(*GROUP_KEY, topics.alias("topics"))
        .agg(F.count("*").alias("members"))
        .select(*GROUP_KEY, F.explode("topics").alias(TOPIC), "members")
        .groupBy(*GROUP_KEY, TOPIC)
        .agg(F.sum("members").alias("member_count"))
        .join(eligible.topics, on=_TOPIC_KEY, how="inner")
        .selectExpr(
            *GROUP_KEY, TOPIC, "cast(num_partitions as bigint) as partition_count", "member_count"
        )
    )


def _fleet_graph(eligible: Eligible) -> FleetGraph:
    """Give groups even ids, topics odd ones; both frames are held."""
    reads = materialize(_reads(eligible)).frame
    groups = number_rows(eligible.members, GROUP_KEY, "id")
    topics = number_rows(reads, _TOPIC_KEY, "id")
    groups = groups.select(*GROUP_KEY, F.shiftleft("id", 1).alias("src"))
    topics = topics.select(*_TOPIC_KEY, (F.shiftleft("id", 1) + 1).alias("dst"))
    vertices = groups.selectExpr(
        "src as id", CLUSTER_ID, f"'{GROUP}' as kind", "group_id as name"
    ).unionByName(
        topics.selectExpr("dst as id", CLUSTER_ID, f"'{TOPIC}' as kind", f"{TOPIC} as name")
    )
    edges = (
        reads.join(groups, on=list(GROUP_KEY), how="inner")
        .join(topics, on=_TOPIC_KEY, how="inner")
        .select("src", "dst", "member_count")
    )
    frames = [materialize(frame).frame for frame in (vertices, edges)]
    return FleetGraph(*frames)


def spread_labels(
    vertices: DataFrame, edges: DataFrame, settings: Settings, budget: Budget
) -> DataFrame:
    """Find clusters of a graph with two sides by label propagation; runs jobs.

    Every vertex has its own id for a label at first. In each round the vertices on the right take
    the label that most of their neighbours have, and then those on the left do; who has one of
    several most frequent ones keeps it, or else takes the least. Each change makes more edges join
    equal labels, so there is an end, and it is the same however the rows lie.

    Args:
        vertices: id bigint.
        edges: src bigint (on the left), dst bigint (on the right); each once.
        settings: ``use_graphframes``: only where it is true GraphFrames answers, in five rounds of
            its own, whose ties are broken by chance.
        budget: counts the rounds of the way without GraphFrames.

    Returns:
        id bigint, label bigint: the least id among those that have ended with the same label.

    Raises:
        SettingsError: ``use_graphframes`` is true and GraphFrames is not installed, or fails.
        NotConvergedError: the budget ended first.
    """
    if settings.use_graphframes:
        try:
            with graphframe(vertices, edges) as graph:
                labels = graph.labelPropagation(maxIter=_ROUNDS_OF_GRAPHFRAMES)
        except GraphFramesError as error:
            raise SettingsError(f"setting use_graphframes: {error}") from None
    else:
        labels = _labels_in_rounds(vertices, edges, budget)
    least = labels.groupBy("label").agg(F.min("id").alias("least"))
    return settle(
        labels.join(least, on="label", how="inner").select("id", F.col("least").alias("label"))
    ).frame


def _labels_in_rounds(vertices: DataFrame, edges: DataFrame, budget: Budget) -> DataFrame:
    def step(labels: DataFrame) -> DataFrame:
        right = _most_frequent(labels, edges, at="dst", of="src")
        left = _most_frequent(right, edges, at="src", of="dst")
        before = labels.select("id", F.col("label").alias("before"))
        return left.join(before, on="id", how="inner").select(
            "id", "label", (F.col("label") != F.col("before")).alias("is_moved")
        )

    start = vertices.select("id", F.col("id").alias("label"), F.lit(True).alias("is_moved"))
    return converge(start, step, F.count_if("is_moved"), kind="labels", budget=budget)


def _most_frequent(labels: DataFrame, edges: DataFrame, *, at: str, of: str) -> DataFrame:
    """Return the vertices ``at`` the ends of edges the label of most of the others' ends."""
    labels_of_neighbours = labels.select(F.col("id").alias(of), F.col("label").alias("theirs"))
    label_counts = (
        edges.join(labels_of_neighbours, on=of, how="inner").groupBy(at, "theirs").count()
    )
    label_of_vertex = labels.select(F.col("id").alias(at), "label")
    choice = F.struct("count", F.col("theirs") == F.col("label"), -F.col("theirs"))
    taken = (
        label_counts.join(label_of_vertex, on=at, how="inner")
        .groupBy(at)
        .agg(F.max_by("theirs", choice).alias("new"))
    )
    renamed = taken.withColumnRenamed(at, "id")
    return labels.join(renamed, on="id", how="left").select(
        "id", F.coalesce("new", "label").alias("label")
    )
