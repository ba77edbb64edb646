"""The general pass of sticky and cooperative-sticky: best balance, then fewest moves.

For groups whose members' subscriptions differ Kafka searches greedily; this finds the optimum
(see ``general_arrays`` for how and why). It works on counts, one row a topic class and subscriber,
and names partitions once, at the end.
"""

from typing import NamedTuple

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from kassign_spark.assignors.general_arrays import settle_arrow
from kassign_spark.assignors.general_rounds import settle_in_rounds
from kassign_spark.eligibility.graph import (
    class_vertex,
    connected_components,
    member_vertex,
    number_groups,
)
from kassign_spark.eligibility.groups import Eligible
from kassign_spark.rounds import Budget, OnRound, settle
from kassign_spark.schemas import GROUP_KEY
from kassign_spark.settings import Settings

CLASS_KEY = (*GROUP_KEY, "class")
EDGE_KEY = (*CLASS_KEY, "member")


class General(NamedTuple):
    """The assignment (columns of ``schemas.ASSIGNMENT``) and the rounds that it took."""

    assignment: DataFrame
    rounds: int


def assign_general(
    eligible: Eligible, settings: Settings, on_round: OnRound | None = None
) -> General:
    """Assign every partition: balance best, then moves fewest, then by names.

    Runs jobs: the counts are made and settled before it returns; only the naming of partitions is
    left to the caller's action.

    Args:
        eligible: groups of any subscriptions; ``owned`` has at most one owner a partition, claims
            that are not valid (no such partition, not subscribed) are left aside.
        settings: ``general_batches``, ``general_max_edges_per_task``, ``general_max_rounds``.
        on_round: called after every round over DataFrames, if there are any.

    Raises:
        NotConvergedError: more rounds than ``general_max_rounds``.
    """
    topics = _topics(eligible.groups)
    members = _members(eligible.groups)
    claims = _claims(eligible.owned, topics, members)
    edges, found = settle(
        _edges(eligible.groups, topics, claims),
        {"largest": F.max("group_edges"), "owned": F.sum("owned")},
    )
    fits = F.col("group_edges") <= settings.general_max_edges_per_task
    solved = _in_tasks(edges.where(fits), settings)
    budget = Budget(settings.general_max_rounds, on_round)
    if (found["largest"] or 0) > settings.general_max_edges_per_task:
        solved = solved.unionByName(_by_components(edges.where(~fits), settings, budget))
    return General(_named(settle(solved).frame, topics, members, claims), budget.used)


def _topics(groups: DataFrame) -> DataFrame:
    """One row a group and topic: class int, topic string, num_partitions int."""
    return groups.select(*GROUP_KEY, F.inline("topics")).withColumnRenamed("subscribers", "class")


def _members(groups: DataFrame) -> DataFrame:
    """One row a group and member: member int (its rank), member_id string."""
    return groups.select(*GROUP_KEY, F.posexplode("members").alias("member", "member_id"))


def _claims(owned: DataFrame | None, topics: DataFrame, members: DataFrame) -> DataFrame | None:
    """Owned partitions that exist, in numbers and names; subscriptions are not looked at yet."""
    if owned is None:
        return None
    return (
        owned.join(topics, on=[*GROUP_KEY, "topic"], how="inner")
        .where("partition < num_partitions")
        .join(members, on=[*GROUP_KEY, "member_id"], how="inner")
        .select(*EDGE_KEY, "member_id", "topic", F.col("partition").cast("int"))
    )


def _edges(groups: DataFrame, topics: DataFrame, claims: DataFrame | None) -> DataFrame:
    """Make one row a topic class and subscriber: supply bigint (of the class), owned bigint,

    group_edges bigint (how many rows the group has).
    """
    supply = topics.groupBy(*CLASS_KEY).agg(F.sum("num_partitions").alias("supply"))
    group_edges = F.aggregate(
        "subscriber_ranks", F.lit(0).cast("bigint"), lambda total, ranks: total + F.size(ranks)
    )
    edges = (
        groups.select(
            *GROUP_KEY,
            group_edges.alias("group_edges"),
            F.posexplode("subscriber_ranks").alias("class", "members"),
        )
        .join(supply, on=list(CLASS_KEY), how="inner")
        .select(*CLASS_KEY, "group_edges", "supply", F.explode("members").alias("member"))
    )
    columns = (*EDGE_KEY, "group_edges", "supply")
    if claims is None:
        return edges.select(*columns, F.lit(0).cast("bigint").alias("owned"))
    owned = claims.groupBy(*EDGE_KEY).agg(F.count("*").alias("owned"))
    return edges.join(owned, on=list(EDGE_KEY), how="left").select(
        *columns, F.coalesce("owned", F.lit(0).cast("bigint")).alias("owned")
    )


def _in_tasks(edges: DataFrame, settings: Settings) -> DataFrame:
    """Settle whole groups or components inside single tasks, many of them in each.

    Returns:
        EDGE_KEY, owned bigint, assigned bigint.
    """
    batch = F.pmod(F.xxhash64(*GROUP_KEY), F.lit(settings.general_batches))
    columns = (*EDGE_KEY, "supply", "owned")
    return (
        edges.select(*columns, batch.alias("batch"))
        .groupBy("batch")
        .applyInArrow(
            settle_arrow,
            "cluster_id string, group_id string, class int, member int, "
            "owned bigint, assigned bigint",
        )
    )


def _by_components(edges: DataFrame, settings: Settings, budget: Budget) -> DataFrame:
    """Settle large groups: components that fit a task inside tasks, the others in rounds."""
    number = F.col("group_number")
    numbers = number_groups(edges.select(*GROUP_KEY).distinct())
    numbered = settle(
        edges.join(numbers, on=list(GROUP_KEY), how="inner").withColumns(
            {
                "class_id": class_vertex(number, F.col("class")),
                "member_id": member_vertex(number, F.col("member")),
            }
        )
    ).frame
    links = numbered.select(F.col("member_id").alias("src"), F.col("class_id").alias("dst"))
    components = connected_components(links, settings, budget).select(
        F.col("id").alias("class_id"), F.col("component").alias("part")
    )
    placed = numbered.join(components, on="class_id", how="inner")
    sizes = placed.groupBy("part").agg(F.count("*").alias("part_edges"))
    placed, found = settle(
        placed.join(sizes, on="part", how="inner"), {"largest": F.max("part_edges")}
    )
    fits = F.col("part_edges") <= settings.general_max_edges_per_task
    solved = _in_tasks(placed.where(fits), settings)
    if found["largest"] <= settings.general_max_edges_per_task:
        return solved
    assigned = settle_in_rounds(
        placed.where(~fits).select(
            "part",
            F.col("class_id").alias("class"),
            F.col("member_id").alias("member"),
            F.col("class").alias("turn"),
            "supply",
            "owned",
        ),
        budget,
    ).select(F.col("class").alias("class_id"), F.col("member").alias("member_id"), "assigned")
    named = placed.join(assigned, on=["class_id", "member_id"], how="inner")
    return solved.unionByName(named.select(*EDGE_KEY, "owned", "assigned"))


def _named(
    solved: DataFrame, topics: DataFrame, members: DataFrame, claims: DataFrame | None
) -> DataFrame:
    """From counts to partitions: first those that stay, then the others in turn."""
    free = topics.select(*CLASS_KEY, "topic", _all_partitions().alias("free"))
    if claims is None:
        return _dealt(solved, free, members)
    kept = _kept(solved, claims)
    taken = kept.groupBy(*GROUP_KEY, "topic").agg(F.collect_set("partition").alias("taken"))
    free = topics.join(taken, on=[*GROUP_KEY, "topic"], how="left").select(
        *CLASS_KEY,
        "topic",
        F.array_except(
            _all_partitions(), F.coalesce("taken", F.array().cast("array<int>"))
        ).alias("free"),
    )
    return kept.select(*GROUP_KEY, "member_id", "topic", "partition").unionByName(
        _dealt(solved, free, members)
    )


def _all_partitions():
    return F.sequence(F.lit(0), F.col("num_partitions") - 1)


def _kept(solved: DataFrame, claims: DataFrame) -> DataFrame:
    """What stays with its owner: of each class the lowest partitions, spread over its topics."""
    lowest = Window.partitionBy(*EDGE_KEY).orderBy("partition", "topic")
    staying = solved.where("owned > 0 and assigned > 0")
    return (
        claims.join(staying, on=list(EDGE_KEY), how="inner")
        .withColumn("place", F.row_number().over(lowest))
        .where("place <= assigned")
    )


def _dealt(solved: DataFrame, free: DataFrame, members: DataFrame) -> DataFrame:
    """Deal each class's free partitions to those that lack some, in turn, topic by topic."""
    in_class = Window.partitionBy(*CLASS_KEY)
    before_member = in_class.orderBy("member").rowsBetween(Window.unboundedPreceding, -1)
    before_topic = in_class.orderBy("topic").rowsBetween(Window.unboundedPreceding, -1)
    none_before = F.lit(0).cast("bigint")

    takers = (
        solved.select(*EDGE_KEY, (F.col("assigned") - F.col("owned")).alias("lacks"))
        .where("lacks > 0")
        .withColumns(
            {
                "start": F.coalesce(F.sum("lacks").over(before_member), none_before),
                "takers": F.count("*").over(in_class),
            }
        )
    )
    places = takers.join(members, on=[*GROUP_KEY, "member"], how="inner").select(
        *CLASS_KEY,
        "member_id",
        F.explode(F.sequence("start", F.col("start") + F.col("lacks") - 1)).alias("place"),
    )
    columns = takers.select(*CLASS_KEY, "takers").distinct()
    partitions = (
        free.where(F.size("free") > 0)
        .withColumns(
            {
                "start": F.coalesce(F.sum(F.size("free")).over(before_topic), none_before),
                "free_count": F.sum(F.size("free")).over(in_class),
            }
        )
        .join(columns, on=list(CLASS_KEY), how="inner")
        .select(
            *CLASS_KEY, "topic", "start", "free_count", "takers",
            F.posexplode("free").alias("place_in_topic", "partition"),
        )
        .select(
            *CLASS_KEY, "topic", "partition",
            _in_turn(F.col("start") + F.col("place_in_topic")).alias("place"),
        )
    )
    return partitions.join(places, on=[*CLASS_KEY, "place"], how="inner").select(
        *GROUP_KEY, "member_id", "topic", "partition"
    )


def _in_turn(rank):
    """Where the partition of this rank goes, when the takers' places lie one taker after another.

    Neighbouring partitions go to different takers, so that nobody gets a topic for itself.
    """
    takers, count = F.col("takers"), F.col("free_count")
    column, row = rank % takers, F.floor(rank / takers)
    return column * F.floor(count / takers) + F.least(column, count % takers) + row
