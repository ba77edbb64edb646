"""The eligibility graph of a fleet: who can take what, and what is independent of what.

Vertices are the members and the topic classes of every group (a class: the group's topics with the
same subscribers), edges are subscriptions. Groups share no edge, so one graph holds the whole
fleet. Its connected components are independent of each other: whatever happens in one, a join, a
leave, a new partition, changes nothing in the others.

Components come from GraphFrames where its package is on the session's class path, else from rounds
over DataFrames; both say the same.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from py4j.protocol import Py4JError
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from kassign_spark.eligibility.classes import Classes
from kassign_spark.errors import SettingsError
from kassign_spark.rounds import Budget, converge, settle
from kassign_spark.schemas import GROUP_KEY
from kassign_spark.settings import Settings

_BUCKETS = 64
_LABEL_ROUNDS = 5


class Graph(NamedTuple):
    """Long vertex ids, as both ways to find components like them best.

    Attributes:
        vertices: cluster_id string, group_id string, id bigint, is_member boolean, number int
            (``member`` or ``class`` of ``eligibility.classes``).
        edges: src bigint (a member), dst bigint (a class it subscribes to).
    """

    vertices: DataFrame
    edges: DataFrame


def number_groups(groups: DataFrame) -> DataFrame:
    """Give each group a number, without a window over the whole fleet.

    Returns:
        cluster_id string, group_id string, group_number bigint; the same whatever the partitioning.
    """
    return number_rows(groups, GROUP_KEY, "group_number")


def number_rows(frame: DataFrame, keys: Sequence[str], number: str) -> DataFrame:
    """Give each row, told by its ``keys``, a number >= 64 that follows from the keys alone.

    Returns:
        the keys and ``number`` bigint.
    """
    bucket = F.pmod(F.xxhash64(*keys), F.lit(_BUCKETS))
    in_bucket = Window.partitionBy("bucket").orderBy(*keys)
    return (
        frame.select(*keys, bucket.alias("bucket"))
        .select(*keys, "bucket", F.row_number().over(in_bucket).alias("place"))
        .select(*keys, (F.col("place") * _BUCKETS + F.col("bucket")).alias(number))
    )


def member_vertex(group_number: Column, member: Column) -> Column:
    """Id of a member; ascending with its number."""
    return F.shiftleft(group_number, 32) + F.shiftleft(member.cast("bigint"), 1)


def class_vertex(group_number: Column, class_: Column) -> Column:
    """Id of a topic class; ascending with its number."""
    return member_vertex(group_number, class_) + 1


def eligibility_graph(classes: Classes) -> Graph:
    """Make the graph of all groups; runs no job."""
    numbers = number_groups(classes.members.select(*GROUP_KEY).distinct())
    number = F.col("group_number")
    members = classes.members.join(numbers, on=list(GROUP_KEY), how="inner").select(
        *GROUP_KEY,
        member_vertex(number, F.col("member")).alias("id"),
        F.lit(True).alias("is_member"),
        F.col("member").alias("number"),
    )
    distinct_classes = classes.topics.select(*GROUP_KEY, "class").distinct()
    topics = distinct_classes.join(numbers, on=list(GROUP_KEY), how="inner").select(
        *GROUP_KEY,
        class_vertex(number, F.col("class")).alias("id"),
        F.lit(False).alias("is_member"),
        F.col("class").alias("number"),
    )
    edges = classes.edges.join(numbers, on=list(GROUP_KEY), how="inner").select(
        member_vertex(number, F.col("member")).alias("src"),
        class_vertex(number, F.col("class")).alias("dst"),
    )
    return Graph(members.unionByName(topics), edges)


def connected_components(edges: DataFrame, settings: Settings, budget: Budget) -> DataFrame:
    """Find the connected components; runs jobs.

    Args:
        edges: src bigint, dst bigint; in any direction.
        settings: ``use_graphframes``: None takes it where it is there.
        budget: counts the rounds of the way without GraphFrames.

    Returns:
        id bigint, component bigint (the least id in it); vertices without edges are left out.

    Raises:
        SettingsError: ``use_graphframes`` is true and GraphFrames is not there.
        NotConvergedError: the budget ended first.
    """
    if settings.use_graphframes is not False:
        found = _components_by_graphframes(edges)
        if found is not None:
            return found
        if settings.use_graphframes:
            raise _no_graphframes()
    return _components_in_rounds(edges, budget)


def _no_graphframes() -> SettingsError:
    return SettingsError(
        "setting use_graphframes: GraphFrames is not there; it takes the Python package "
        "graphframes-py and, on the session's class path, the Spark package "
        "io.graphframes:graphframes-spark4_2.13"
    )


def _graphframe(vertices: DataFrame, edges: DataFrame) -> Any | None:
    """A GraphFrame; None: it is not there."""
    try:
        from graphframes import GraphFrame
    except ImportError:
        return None
    try:
        return GraphFrame(vertices, edges)
    except Py4JError:  # its Python package is there, its classes are not
        return None


def _components_by_graphframes(edges: DataFrame) -> DataFrame | None:
    """GraphFrames' answer with its components named by their least ids; None: it is not there."""
    ids = edges.select(F.col("src").alias("id")).union(edges.select("dst")).distinct()
    graph = _graphframe(ids, edges)
    if graph is None:
        return None
    # graphx: the fastest of its algorithms on long ids, and it needs no checkpoint folder; a
    # broadcastThreshold other than -1 would switch adaptive execution off for the session.
    found = graph.connectedComponents(algorithm="graphx", broadcastThreshold=-1)
    least = found.groupBy("component").agg(F.min("id").alias("least"))
    named = found.join(least, on="component", how="inner").select(
        "id", F.col("least").alias("component")
    )
    try:
        return settle(named).frame
    finally:
        found.unpersist()


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
        SettingsError: ``use_graphframes`` is true and GraphFrames is not there.
        NotConvergedError: the budget ended first.
    """
    if settings.use_graphframes:
        graph = _graphframe(vertices, edges)
        if graph is None:
            raise _no_graphframes()
        labels = graph.labelPropagation(maxIter=_LABEL_ROUNDS)
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
    return converge(start, step, F.count_if("is_moved"), what="labels", budget=budget)


def _most_frequent(labels: DataFrame, edges: DataFrame, *, at: str, of: str) -> DataFrame:
    """Give the vertices ``at`` the ends of edges the label of most of the others' ends."""
    theirs = labels.select(F.col("id").alias(of), F.col("label").alias("theirs"))
    counted = (
        edges.join(theirs, on=of, how="inner")
        .groupBy(at, "theirs")
        .agg(F.count("*").alias("count"))
    )
    own = labels.select(F.col("id").alias(at), "label")
    choice = F.struct("count", F.col("theirs") == F.col("label"), -F.col("theirs"))
    taken = (
        counted.join(own, on=at, how="inner")
        .groupBy(at)
        .agg(F.max_by("theirs", choice).alias("new"))
    )
    renamed = taken.withColumnRenamed(at, "id")
    return labels.join(renamed, on="id", how="left").select(
        "id", F.coalesce("new", "label").alias("label")
    )


def _components_in_rounds(edges: DataFrame, budget: Budget) -> DataFrame:
    """Turn every component into a star around its least id, by large and small stars in turn.

    "Connected Components in MapReduce and Beyond", Kiveris and others, 2014: rounds grow like the
    logarithm of a component's size, not like its diameter.
    """
    downward = edges.select(
        F.greatest("src", "dst").alias("id"), F.least("src", "dst").alias("lower")
    ).distinct()
    stars = converge(
        downward.withColumn("is_moved", F.lit(True)),
        _large_and_small_star,
        F.count_if("is_moved"),
        what="components",
        budget=budget,
    ).select("id", F.col("lower").alias("component"))
    centres = stars.select(F.col("component").alias("id"), "component").distinct()
    return stars.unionByName(centres)


def _large_and_small_star(links: DataFrame) -> DataFrame:
    """Link higher neighbours, then lower ones, to the least neighbour; one row a link.

    ``is_moved`` where a link changed in either; a link that two rows make counts once.
    """
    of_id = Window.partitionBy("id")
    both_ways = links.select("id", F.col("lower").alias("other")).union(
        links.select("lower", F.col("id"))
    )
    large = (
        both_ways.withColumn("least", F.least(F.min("other").over(of_id), F.col("id")))
        .where("other > id")
        .select(
            F.col("other").alias("id"),
            F.col("least").alias("lower"),
            (F.col("least") != F.col("id")).alias("is_moved"),
        )
    )
    least = F.min("lower").over(of_id)
    small = (
        large.withColumn("least", least)
        .withColumn("is_least", F.col("lower") == F.col("least"))
        .select(
            F.when(F.col("is_least"), F.col("id")).otherwise(F.col("lower")).alias("id"),
            F.col("least").alias("lower"),
            (F.col("is_moved") | ~F.col("is_least")).alias("is_moved"),
        )
    )
    return small.groupBy("id", "lower").agg(F.max("is_moved").alias("is_moved"))
