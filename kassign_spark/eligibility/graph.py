"""The eligibility graph of a fleet: who can take what, and what is independent of what.

Vertices are the members and the topic classes of every group (a class: the group's topics with the
same subscribers), edges are subscriptions. Groups share no edge, so one graph holds the whole
fleet. Its connected components are independent of each other: whatever happens in one, a join, a
leave, a new partition, changes nothing in the others.

Components come from GraphFrames where its package is on the session's class path, else from rounds
over DataFrames; both say the same.
"""

from typing import NamedTuple

from py4j.protocol import Py4JError
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from kassign_spark.eligibility.groups import Eligible
from kassign_spark.errors import SettingsError
from kassign_spark.rounds import Budget, converge, settle
from kassign_spark.schemas import GROUP_KEY
from kassign_spark.settings import Settings

_BUCKETS = 64


class Graph(NamedTuple):
    """Long vertex ids, as both ways to find components like them best.

    Attributes:
        vertices: cluster_id string, group_id string, id bigint, is_member boolean, number int
            (``member_rank``, or the class: an index into ``subscriber_ranks``).
        edges: src bigint (a member), dst bigint (a class it subscribes to).
    """

    vertices: DataFrame
    edges: DataFrame


class Eligibility(NamedTuple):
    """What ``describe_eligibility`` gives; ``component`` counts from 0 within each group.

    Attributes:
        takers: who can take which partition, a topic in one row: cluster_id string, group_id
            string, topic string, num_partitions int, component int, taker_count int,
            takers array<string> (member ids in ``member_rank`` order), is_sole_taker boolean
            (its partitions have a single possible owner).
        members: cluster_id string, group_id string, member_id string, component int (null: it
            can take nothing), eligible_count bigint (partitions it can take), sole_count bigint
            (partitions that only it can take), has_alternative boolean (some other member can
            take a partition that it can take; false: what it gets is the same by any assignor).
        components: cluster_id string, group_id string, component int, member_count bigint,
            topic_count bigint, partition_count bigint.
    """

    takers: DataFrame
    members: DataFrame
    components: DataFrame


def number_groups(groups: DataFrame) -> DataFrame:
    """Give each group a number, without a window over the whole fleet.

    Returns:
        cluster_id string, group_id string, group_number bigint; the same whatever the partitioning.
    """
    bucket = F.pmod(F.xxhash64(*GROUP_KEY), F.lit(_BUCKETS))
    in_bucket = Window.partitionBy("bucket").orderBy(*GROUP_KEY)
    return (
        groups.select(*GROUP_KEY, bucket.alias("bucket"))
        .select(*GROUP_KEY, "bucket", F.row_number().over(in_bucket).alias("place"))
        .select(*GROUP_KEY, (F.col("place") * _BUCKETS + F.col("bucket")).alias("group_number"))
    )


def member_vertex(group_number: Column, member_rank: Column) -> Column:
    """Id of a member; ascending with its rank."""
    return F.shiftleft(group_number, 32) + F.shiftleft(member_rank.cast("bigint"), 1)


def class_vertex(group_number: Column, class_: Column) -> Column:
    """Id of a topic class; ascending with its number."""
    return member_vertex(group_number, class_) + 1


def eligibility_graph(groups: DataFrame) -> Graph:
    """Make the graph of all groups; runs no job.

    Args:
        groups: as ``eligibility.groups.fold_groups`` gives them.
    """
    numbered = groups.join(number_groups(groups), on=list(GROUP_KEY), how="inner")
    number = F.col("group_number")
    members = numbered.select(
        *GROUP_KEY, "group_number", F.posexplode("members").alias("number", "member_id")
    ).select(
        *GROUP_KEY,
        member_vertex(number, F.col("number")).alias("id"),
        F.lit(True).alias("is_member"),
        "number",
    )
    ranks = numbered.select(
        *GROUP_KEY, "group_number", F.posexplode("subscriber_ranks").alias("number", "ranks")
    )
    classes = ranks.select(
        *GROUP_KEY,
        class_vertex(number, F.col("number")).alias("id"),
        F.lit(False).alias("is_member"),
        "number",
    )
    edges = ranks.select("group_number", "number", F.explode("ranks").alias("rank")).select(
        member_vertex(number, F.col("rank")).alias("src"),
        class_vertex(number, F.col("number")).alias("dst"),
    )
    return Graph(members.unionByName(classes), edges)


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
            raise SettingsError(
                "setting use_graphframes: GraphFrames is not there; it takes the Python package "
                "graphframes-py and, on the session's class path, the Spark package "
                "io.graphframes:graphframes-spark4_2.13"
            )
    return _components_in_rounds(edges, budget)


def describe_eligibility(
    eligible: Eligible, settings: Settings | None = None
) -> Eligibility:
    """Say who can take what in every group; runs the jobs that find the components.

    Args:
        eligible: prepared tables, as ``eligibility.groups.eligible`` gives them.
        settings: ``use_graphframes``, ``general_max_rounds``.

    Raises:
        NotConvergedError: the components took more rounds than ``general_max_rounds``.
    """
    settings = settings or Settings()
    graph = eligibility_graph(eligible.groups)
    edges = settle(graph.edges).frame
    found = connected_components(edges, settings, Budget(settings.general_max_rounds))
    in_group = Window.partitionBy(*GROUP_KEY).orderBy("component")
    placed = settle(
        graph.vertices.join(found, on="id", how="inner").select(
            *GROUP_KEY,
            "is_member",
            "number",
            (F.dense_rank().over(in_group) - 1).alias("component"),
        )
    ).frame
    takers = _takers(eligible.groups, placed)
    members = _members(eligible.groups, placed, takers)
    counted_members = members.groupBy(*GROUP_KEY, "component").agg(F.count("*").alias("member_count"))
    components = (
        takers.groupBy(*GROUP_KEY, "component")
        .agg(F.count("*").alias("topic_count"), F.sum("num_partitions").alias("partition_count"))
        .join(counted_members, on=[*GROUP_KEY, "component"], how="inner")
        .select(*GROUP_KEY, "component", "member_count", "topic_count", "partition_count")
    )
    return Eligibility(takers, members, components)


def _takers(groups: DataFrame, placed: DataFrame) -> DataFrame:
    """Topics with their takers."""
    classes = placed.where("not is_member").select(
        *GROUP_KEY, F.col("number").alias("subscribers"), "component"
    )
    ranks = F.col("subscriber_ranks")[F.col("subscribers")]
    return (
        groups.select(*GROUP_KEY, "members", "subscriber_ranks", F.inline("topics"))
        .join(classes, on=[*GROUP_KEY, "subscribers"], how="inner")
        .select(
            *GROUP_KEY,
            "topic",
            "num_partitions",
            "component",
            F.size(ranks).alias("taker_count"),
            F.transform(ranks, lambda rank: F.col("members")[rank]).alias("takers"),
            (F.size(ranks) == 1).alias("is_sole_taker"),
        )
    )


def _members(groups: DataFrame, placed: DataFrame, takers: DataFrame) -> DataFrame:
    """Members with what they can take."""
    everyone = groups.select(*GROUP_KEY, F.posexplode("members").alias("number", "member_id"))
    in_component = placed.where("is_member").select(*GROUP_KEY, "number", "component")
    counts = (
        takers.select(*GROUP_KEY, "num_partitions", "is_sole_taker", F.explode("takers").alias("member_id"))
        .groupBy(*GROUP_KEY, "member_id")
        .agg(
            F.sum("num_partitions").alias("eligible_count"),
            F.sum(F.when(F.col("is_sole_taker"), F.col("num_partitions")).otherwise(0)).alias(
                "sole_count"
            ),
        )
    )
    none = F.lit(0).cast("bigint")
    return (
        everyone.join(in_component, on=[*GROUP_KEY, "number"], how="left")
        .join(counts, on=[*GROUP_KEY, "member_id"], how="left")
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


def _components_by_graphframes(edges: DataFrame) -> DataFrame | None:
    """GraphFrames' answer with its components named by their least ids; None: it is not there."""
    try:
        from graphframes import GraphFrame
    except ImportError:
        return None
    ids = edges.select(F.col("src").alias("id")).union(edges.select("dst")).distinct()
    try:
        graph = GraphFrame(ids, edges)
    except Py4JError:  # its Python package is there, its classes are not
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
