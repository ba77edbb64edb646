"""The general pass of sticky and cooperative-sticky: best balance, then fewest moves.

Where the subscriptions of a group's members differ, Kafka searches greedily; this finds the optimum
(``engine.costs`` says how, and why it is one). It works on counts, one row a topic class and
subscriber, and names partitions once, at the end.
"""

from typing import NamedTuple

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kassign_spark.assignors.general_naming import name_partitions
from kassign_spark.assignors.general_rounds import settle_in_rounds
from kassign_spark.engine.task import settle_arrow
from kassign_spark.graph.components import (
    class_vertex,
    connected_components,
    member_vertex,
    number_rows,
)
from kassign_spark.groups.eligible import Eligible
from kassign_spark.groups.large_claims import (
    claimed_partitions,
    read_claims,
    subscribed_topics,
    topic_number,
)
from kassign_spark.groups.large_classes import EDGE_KEY, Classes, topic_classes
from kassign_spark.groups.paths import COUNTS, components_path
from kassign_spark.groups.rows import in_tasks
from kassign_spark.rounds import Budget, OnRound, hold, settle
from kassign_spark.schemas import GROUP_KEY
from kassign_spark.settings.computing import Settings

_PARTITION_KEY = (*GROUP_KEY, "topic", "partition")
_SOLVED = (*EDGE_KEY, "owned", "assigned")


class General(NamedTuple):
    """What the general pass gives.

    Attributes:
        assignment: the columns of ``schemas.ASSIGNMENT`` and is_moving boolean: others claim the
            partition now, so that a cooperative rebalance withholds it.
        rounds: how many rounds over DataFrames it took.
    """

    assignment: DataFrame
    rounds: int


def assign_general(
    eligible: Eligible, settings: Settings, on_round: OnRound | None = None
) -> General:
    """Assign every partition: balance best, then moves fewest, then by names; runs jobs.

    For groups that do not fit a task (``sizes``); the others are answered by ``differing``, with
    the same results. Groups beyond ``max_edges_per_task`` are cut into connected components, which
    are packed into tasks each for itself; rounds are for components that are themselves beyond it.

    Args:
        eligible: groups of any subscriptions. Claims are resolved as the constrained pass does;
            what is owned but does not exist, or is not subscribed to, is left aside.
        settings: ``max_edges_per_task``, ``max_rounds``, ``use_graphframes``.
        on_round: called after every round over DataFrames, with what is unfinished.

    Raises:
        NotConvergedError: more rounds than ``max_rounds``.
    """
    classes = topic_classes(eligible)
    budget = Budget(settings.max_rounds, on_round)
    claims = _claims(eligible, classes)
    edges = _edges(classes, claims)
    fits = F.col("group_edges") <= settings.max_edges_per_task
    solved = _in_tasks(edges.where(fits), eligible.tasks)
    if classes.most_edges <= settings.max_edges_per_task:
        eligible.note_path(COUNTS)
    else:
        large, paths = _by_components(edges.where(~fits), eligible, settings, budget)
        solved = solved.unionByName(large)
        if eligible.paths is not None:
            known = eligible.groups.join(paths, on=list(GROUP_KEY), how="left")
            eligible.paths.note_each(known.fillna(COUNTS, ["path"]))
    named = name_partitions(settle(solved).frame, classes, claims, eligible.tasks)
    return General(_mark_moving(named, eligible), budget.used)


def _mark_moving(assignment: DataFrame, eligible: Eligible) -> DataFrame:
    """Add is_moving: others claim the partition now."""
    if eligible.owned is None:
        return assignment.withColumn("is_moving", F.lit(False))
    # What a member sent as owned counts here, also where its claim did not prevail.
    owners = (
        eligible.owned.join(
            eligible.members.select(*GROUP_KEY, "member_id"),
            on=[*GROUP_KEY, "member_id"],
            how="left_semi",
        )
        .groupBy(*_PARTITION_KEY)
        .agg(F.collect_set("member_id").alias("owners"))
    )
    is_moving = ~F.coalesce(F.array_contains("owners", F.col("member_id")), F.lit(True))
    return (
        assignment.join(owners, on=list(_PARTITION_KEY), how="left")
        .withColumn("is_moving", is_moving)
        .drop("owners")
    )


def _claims(eligible: Eligible, classes: Classes) -> DataFrame | None:
    """What is owned and exists, at most one owner a partition, in numbers and names.

    Subscriptions are not looked at yet.
    """
    if eligible.owned is None:
        return None
    topics, _ = hold(
        subscribed_topics(eligible).withColumn("topic_number", topic_number()),
        {"topics": F.count("*")},
    )
    return (
        claimed_partitions(read_claims(eligible, topics))
        .join(classes.topics, on=[*GROUP_KEY, "topic"], how="inner")
        .where("partition >= 0 and partition < num_partitions")
        .join(classes.members, on=[*GROUP_KEY, "member_id"], how="inner")
        .select(*EDGE_KEY, "member_id", "topic", F.col("partition").cast("int"))
    )


def _edges(classes: Classes, claims: DataFrame | None) -> DataFrame:
    """Add to each edge how many partitions of the class the member owns: owned bigint."""
    if claims is None:
        return classes.edges.withColumn("owned", F.expr("0L"))
    owned = claims.groupBy(*EDGE_KEY).agg(F.count("*").alias("owned"))
    return classes.edges.join(owned, on=list(EDGE_KEY), how="left").fillna(0, ["owned"])


def _in_tasks(edges: DataFrame, tasks: int, keys: tuple[str, ...] = GROUP_KEY) -> DataFrame:
    """Settle counts of whole groups, or with another key of components, many of them in a task."""
    more = [name for name in keys if name not in GROUP_KEY]
    return in_tasks(
        edges.select(*EDGE_KEY, "supply", "owned", *more),
        _settle_counts,
        "cluster_id string, group_id string, class int, member int, owned bigint, assigned bigint",
        tasks,
        keys,
    )


def _settle_counts(table: pa.Table) -> list[pa.Table]:
    return [settle_arrow(table).select(_SOLVED)]


def _by_components(
    edges: DataFrame, eligible: Eligible, settings: Settings, budget: Budget
) -> tuple[DataFrame, DataFrame]:
    """Settle large groups: components that fit a task inside tasks, the others in rounds.

    Returns:
        The columns _SOLVED; and GROUP_KEY with the path of each group.
    """
    number = F.col("group_number")
    groups = number_rows(edges.select(*GROUP_KEY).distinct(), GROUP_KEY, "group_number")
    numbered = settle(
        edges.join(groups, on=list(GROUP_KEY), how="inner").withColumns(
            {
                "class_id": class_vertex(number, F.col("class")),
                "member_id": member_vertex(number, F.col("member")),
            }
        )
    ).frame
    links = numbered.selectExpr("member_id as src", "class_id as dst")
    found = connected_components(links, settings, budget)
    components = found.frame.selectExpr("id as class_id", "component as part")
    placed = numbered.join(components, on="class_id", how="inner")
    sizes = placed.groupBy("part").agg(F.count("*").alias("part_edges"))
    placed, counted = settle(
        placed.join(sizes, on="part", how="inner"), {"largest": F.max("part_edges")}
    )
    fits = F.col("part_edges") <= settings.max_edges_per_task
    # A component is the unit: the many of one group are for all tasks that there are.
    solved = _in_tasks(placed.where(fits), eligible.tasks, (*GROUP_KEY, "part"))
    of_components = F.lit(components_path(found.by, found.rounds, 0))
    placed_groups = placed.groupBy(*GROUP_KEY)
    if counted["largest"] <= settings.max_edges_per_task:
        return solved, placed_groups.agg(F.first(of_components).alias("path"))
    before = budget.used
    large = placed.where(~fits)
    in_rounds = settle_in_rounds(
        large.selectExpr(
            "part", "class_id as class", "member_id as member", "class as turn", "supply", "owned"
        ),
        budget,
    ).selectExpr("class as class_id", "member as member_id", "assigned")
    named = large.join(in_rounds, on=["class_id", "member_id"], how="inner")
    in_both = F.lit(components_path(found.by, found.rounds, budget.used - before))
    path = F.when(F.bool_and(fits), of_components).otherwise(in_both)
    return solved.unionByName(named.select(*_SOLVED)), placed_groups.agg(path.alias("path"))
