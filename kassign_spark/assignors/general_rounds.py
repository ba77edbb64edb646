"""The general pass of sticky and cooperative-sticky: best balance, then fewest moves.

Where the subscriptions of a group's members differ, Kafka searches greedily; this finds the optimum
(``engine.costs`` says how, and why it is one). It works on counts, one row per topic class and
subscriber, and names partitions once, at the end.
"""

import numpy as np
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kassign_spark.assignors.general_naming import name_partitions
from kassign_spark.assignors.task_groups import BYTES_OF_A_PAIR
from kassign_spark.engine.edge_rows import cut_edges, settled_edges
from kassign_spark.engine.program import settle_blocks
from kassign_spark.engine.rounds import Rounds
from kassign_spark.engine.segments import Longs
from kassign_spark.graph.components import components_by_graphframes
from kassign_spark.groups.eligible import Eligible
from kassign_spark.groups.large_claims import (
    claimed_partitions,
    read_claims,
    subscribed_topics,
    topic_number,
)
from kassign_spark.groups.large_classes import (
    CLASS_KEY,
    EDGE_KEY,
    Classes,
    split_by_racks,
    topic_classes,
)
from kassign_spark.groups.paths import ROUNDS, ROUNDS_AND_GRAPHFRAMES
from kassign_spark.groups.rows import tasks_for
from kassign_spark.schemas import GROUP_KEY
from kassign_spark.settings.computing import Settings
from kassign_spark.spark.iteration import Budget, OnRound, materialize, settle
from kassign_spark.spark.spark_versions import to_arrow

_PARTITION_KEY = (*GROUP_KEY, "topic", "partition")


def assign_general(
    eligible: Eligible,
    settings: Settings,
    on_round: OnRound | None = None,
    *,
    with_racks: bool = False,
) -> DataFrame:
    """Assign every partition in rounds: balance best, then moves fewest, then by names; runs jobs.

    For groups that do not fit a task (``sizes``); the others are answered by ``differing``, with
    the same results.

    Args:
        eligible: groups of any subscriptions. Claims are resolved as the constrained pass does;
            what is owned but does not exist, or is not subscribed to, is left aside.
        settings: ``max_rounds``, ``use_graphframes``, ``bytes_per_task``, ``racks_before_moves``.
        on_round: called after every round, with what is unfinished.
        with_racks: whether partitions without a replica in their member's rack count, after moves
            or before them.

    Returns:
        The columns of ``schemas.ASSIGNMENT`` and is_moving boolean: others claim the partition now,
        so that a cooperative rebalance withholds it.

    Raises:
        NotConvergedError: more rounds than ``max_rounds``.
    """
    classes = topic_classes(eligible)
    if with_racks:
        classes = split_by_racks(classes, eligible)
    budget = Budget(settings.max_rounds, on_round)
    claims = _claims(eligible, classes)
    solved = _settle_counts(_edges(classes, claims), classes.edge_count, eligible, settings, budget)
    assigned = name_partitions(settle(solved).frame, classes, claims, eligible.tasks)
    return _mark_moving(assigned, eligible)


def _settle_counts(
    edges: DataFrame, edge_count: int, eligible: Eligible, settings: Settings, budget: Budget
) -> DataFrame:
    """Settle the counts of all groups together: EDGE_KEY, owned, assigned bigint > 0."""
    sizes = sorted(eligible.groups.select(*GROUP_KEY, F.size("members").alias("size")).collect())
    keys, counts = [(*row[:-1],) for row in sizes], np.array([row["size"] for row in sizes], int)
    first = np.cumsum(counts) - counts
    schema = "cluster_id string, group_id string, group_number bigint, first_member bigint"
    numbers = [(*key, number, int(first[number])) for number, key in enumerate(keys)]
    groups = edges.sparkSession.createDataFrame(numbers, schema)
    of_group = {
        "class_of_all": F.shiftleft("group_number", 32) + F.col("class"),
        "member_of_all": F.col("first_member") + F.col("member"),
    }
    numbered, _ = materialize(
        edges.join(F.broadcast(groups), on=list(GROUP_KEY)).withColumns(of_group)
    )
    in_numbers = numbered.selectExpr(
        "class_of_all as class",
        "cast(class as bigint) as turn",
        "member_of_all as member",
        "supply",
        "owned",
        *(["is_cross"] if "is_cross" in edges.columns else []),
    )
    member_count = int(counts.sum())
    component = _components(in_numbers, member_count, settings)
    blocks = -(-edge_count * BYTES_OF_A_PAIR // max(settings.bytes_per_task, 1))
    blocks = max(blocks, tasks_for(edge_count, edges.sparkSession))
    engine = Rounds(cut_edges(in_numbers, blocks, settings.racks_before_moves), budget)
    settle_blocks(engine, member_count, component)
    path = ROUNDS if component is None else ROUNDS_AND_GRAPHFRAMES
    eligible.note_path(path, budget.counts)
    settled = settled_edges(engine).selectExpr(
        "shiftright(class, 32) as group_number",
        "cast(class & 4294967295 as int) as class",
        "member as member_of_all",
        "owned",
        "assigned",
    )
    return settled.join(F.broadcast(groups), on="group_number").selectExpr(
        *GROUP_KEY,
        "class",
        "cast(member_of_all - first_member as int) as member",
        "owned",
        "assigned",
    )


def _components(edges: DataFrame, member_count: int, settings: Settings) -> Longs | None:
    """Return a number of each member's component, where GraphFrames finds them; else None."""
    links = edges.selectExpr("member * 2 as src", "class * 2 + 1 as dst")
    components = components_by_graphframes(links, settings)
    if components is None:
        return None
    of_members = to_arrow(
        components.where("id % 2 = 0").selectExpr("id div 2 as member", "component")
    )
    component = -1 - np.arange(member_count)  # of those who may take nothing
    component[of_members["member"].to_numpy()] = of_members["component"].to_numpy()
    return component


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
    """Select the claims of partitions that exist, at most one owner each, by number and by name.

    Subscriptions are not looked at yet.
    """
    if eligible.owned is None:
        return None
    topics = materialize(
        subscribed_topics(eligible).withColumn("topic_number", topic_number())
    ).frame
    claimed = claimed_partitions(read_claims(eligible, topics))
    if "partitions" in classes.topics.columns:
        each = classes.topics.select(
            *CLASS_KEY, "topic", F.explode("partitions").alias("partition")
        )
        of_classes = claimed.join(each, on=list(_PARTITION_KEY), how="inner")
    else:
        of_classes = claimed.join(classes.topics, on=[*GROUP_KEY, "topic"], how="inner").where(
            "partition >= 0 and partition < num_partitions"
        )
    return of_classes.join(classes.members, on=[*GROUP_KEY, "member_id"], how="inner").select(
        *EDGE_KEY, "member_id", "topic", F.col("partition").cast("int")
    )


def _edges(classes: Classes, claims: DataFrame | None) -> DataFrame:
    """Add to each edge how many partitions of the class the member owns: owned bigint."""
    if claims is None:
        return classes.edges.withColumn("owned", F.expr("0L"))
    owned = claims.groupBy(*EDGE_KEY).agg(F.count("*").alias("owned"))
    return classes.edges.join(owned, on=list(EDGE_KEY), how="left").fillna(0, ["owned"])
