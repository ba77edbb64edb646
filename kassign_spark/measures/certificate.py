"""Whether an assignment is the best there is, and how many partitions the best would keep.

Judges any assignment, also one observed in a cluster or made by Kafka. It knows nothing of how the
general pass works (no quotas, no places); it looks for a way to do better.

Balance. Draw an arc from member to member wherever the first holds a partition that the second may
take. Loads can be made more even exactly when a path leads from a member to one whose load is lower
by two or more (the cost-reducing paths of "Semi-matchings for bipartite graphs", Harvey and others,
2006). So the highest load upstream of each member tells.

Moves. At the best balance an assignment keeps the most exactly when no exchange that leaves the
sorted loads as they are keeps more: no cycle of negative cost in the graph of single changes, where
a chain of them may go round, or end at a member whose load is lower by one than that of the member
where it began. Shortest distances (Bellman and Ford) settle exactly when there is no such cycle.
How much the best keeps is taken from an assignment that the general pass makes, and believed only
after that one has passed both tests.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kassign_spark.assignors.general_arrays import settle
from kassign_spark.schemas import GROUP_KEY

Longs = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

_TOPIC_KEY = (*GROUP_KEY, "topic")
_BATCHES = 32


def certify(assignment: DataFrame, members: DataFrame, owned: DataFrame | None = None) -> DataFrame:
    """Judge each group's assignment against the optimum; runs no job.

    The optimum: first the sum of squared loads is the least possible; then the number of
    partitions that stay with their current owner is the greatest at that balance.

    Args:
        assignment: columns of ``schemas.ASSIGNMENT``; what it does not hold is not there.
        members: cluster_id string, group_id string, member_id string, topics array<string>.
        owned: columns of ``schemas.OWNED``, one owner a partition; None: nobody owns any.

    Returns:
        One row for each group in ``assignment``: cluster_id string, group_id string,
        is_balance_optimal boolean: false also where a partition is given twice, or to a member
        that does not subscribe to its topic,
        is_optimal boolean: the balance is, and no assignment of that balance keeps more,
        kept_count bigint: partitions that stay with their owner,
        most_kept_count bigint: the most that can stay, at the best balance,
        least_moves bigint: the fewest partitions that can change owner, at the best balance,
        least_sum_of_squares bigint: of the loads at the best balance.
    """
    placed = assignment.select(*_TOPIC_KEY, "partition", "member_id")
    if owned is None:
        placed = placed.withColumn("owner", F.lit(None).cast("string"))
    else:
        owners = owned.select(*_TOPIC_KEY, "partition", F.col("member_id").alias("owner"))
        placed = placed.join(owners, on=[*_TOPIC_KEY, "partition"], how="left")
    judged = (
        _edges(placed, members)
        .withColumn("batch", F.pmod(F.xxhash64(*GROUP_KEY), F.lit(_BATCHES)))
        .groupBy("batch")
        .applyInArrow(
            judge_arrow,
            "cluster_id string, group_id string, eligible_count bigint, is_balanced boolean, "
            "most_kept_count bigint, least_sum_of_squares bigint",
        )
    )
    is_kept = F.col("owner").eqNullSafe(F.col("member_id"))
    totals = placed.groupBy(*GROUP_KEY).agg(
        F.count("*").alias("row_count"),
        F.count_distinct("topic", "partition").alias("partition_count"),
        F.count("owner").alias("owned_count"),
        F.count_if(is_kept).alias("kept_count"),
    )
    count = F.col("row_count")
    is_valid = (count == F.col("partition_count")) & (count == F.col("eligible_count"))
    is_balanced = F.coalesce(is_valid & F.col("is_balanced"), F.lit(False))
    return (
        totals.join(judged, on=list(GROUP_KEY), how="left")
        .fillna(0, ["most_kept_count", "least_sum_of_squares"])
        .select(
            *GROUP_KEY,
            is_balanced.alias("is_balance_optimal"),
            (is_balanced & (F.col("kept_count") == F.col("most_kept_count"))).alias("is_optimal"),
            "kept_count",
            "most_kept_count",
            (F.col("owned_count") - F.col("most_kept_count")).alias("least_moves"),
            "least_sum_of_squares",
        )
    )


def _edges(placed: DataFrame, members: DataFrame) -> DataFrame:
    """One row a topic and subscriber: supply, owned, assigned bigint (counts of partitions)."""
    supply = placed.groupBy(*_TOPIC_KEY).agg(F.count_distinct("partition").alias("supply"))
    assigned = placed.groupBy(*_TOPIC_KEY, "member_id").agg(F.count("*").alias("assigned"))
    owned = (
        placed.where(F.col("owner").isNotNull())
        .groupBy(*_TOPIC_KEY, F.col("owner").alias("member_id"))
        .agg(F.count_distinct("partition").alias("owned"))
    )
    key = [*_TOPIC_KEY, "member_id"]
    return (
        members.select(
            *GROUP_KEY, "member_id", F.explode(F.array_distinct("topics")).alias("topic")
        )
        .join(supply, on=list(_TOPIC_KEY), how="inner")
        .join(assigned, on=key, how="left")
        .join(owned, on=key, how="left")
        .fillna(0, ["assigned", "owned"])
        .select(*key, "supply", "owned", "assigned")
    )


def judge_arrow(table: pa.Table) -> pa.Table:
    """Judge the groups of one batch; the rows are those of ``_edges``.

    Raises:
        AssertionError: the assignment to compare with is not the best itself.
    """
    codes, groups = _codes(table, ("cluster_id", "group_id"))
    topic, _ = _codes(table, ("topic",), codes)
    member, _ = _codes(table, ("member_id",), codes)
    order = np.lexsort((member, topic))
    judged = judge(
        codes[order],
        topic[order],
        member[order],
        *(table[name].to_numpy()[order] for name in ("supply", "owned", "assigned")),
    )
    return (
        groups.append_column("eligible_count", pa.array(judged.eligible_count))
        .append_column("is_balanced", pa.array(judged.is_balanced))
        .append_column("most_kept_count", pa.array(judged.most_kept_count))
        .append_column("least_sum_of_squares", pa.array(judged.least_squares))
    )


class Judged(NamedTuple):
    """Of each group that has an edge.

    Attributes:
        group: its number.
        eligible_count: partitions that are with a subscriber of their topic.
        is_balanced: no path leads from a member to one whose load is lower by two or more.
        most_kept_count: the most partitions that can stay, at the best balance.
        least_squares: the sum of squared loads at the best balance.
    """

    group: Longs
    eligible_count: Longs
    is_balanced: Flags
    most_kept_count: Longs
    least_squares: Longs


def judge(
    group: Longs, topic: Longs, member: Longs, supply: Longs, owned: Longs, assigned: Longs
) -> Judged:
    """Judge many groups, given by their edges: topics and subscribers.

    Args:
        group: of each edge.
        topic: of each edge; a topic here is of one group. Edges are sorted by it, then by member.
        member: of each edge; a member is of one group.
        supply: partitions of the topic.
        owned: those that the member owned before.
        assigned: those that it holds now.

    Raises:
        AssertionError: the assignment to compare with is not the best itself.
    """
    groups, group = np.unique(group, return_inverse=True)
    topic, member = (np.unique(codes, return_inverse=True)[1] for codes in (topic, member))
    first = np.flatnonzero(np.diff(topic, prepend=-1))
    best = _merged(topic, member, owned, supply[first], first)
    of_group = group[best.row]
    kept = settle(best.topic, best.member, best.owned, best.supply, np.arange(len(best.supply)))
    assert is_balanced(best.topic, best.member, kept).all()
    assert keeps_most(of_group, best.topic, best.member, best.owned, kept).all()
    group_of_member = np.zeros(member.max(initial=-1) + 1, np.int64)
    group_of_member[member] = group
    unbalanced = group_of_member[~is_balanced(topic, member, assigned)]
    eligible, most_kept, squares = np.zeros((3, len(groups)), np.int64)
    np.add.at(eligible, group, assigned)
    np.add.at(most_kept, of_group, np.minimum(kept, best.owned))
    load = np.zeros(len(group_of_member), np.int64)
    np.add.at(load, best.member, kept)
    np.add.at(squares, group_of_member, load * load)
    balanced = np.ones(len(groups), bool)
    balanced[unbalanced] = False
    return Judged(groups, eligible, balanced, most_kept, squares)


class _Merged(NamedTuple):
    """Edges of topics with the same subscribers made one; ``row``: one of the edges it was."""

    topic: Longs
    member: Longs
    owned: Longs
    supply: Longs
    row: Longs


def _merged(topic: Longs, member: Longs, owned: Longs, supply: Longs, first: Longs) -> _Merged:
    """Merge topics, which changes no count that matters: whoever may take one may take all."""
    last = np.append(first[1:], len(topic))
    numbers: dict[bytes, int] = {}
    merged_topic = np.array(
        [
            numbers.setdefault(member[a:b].tobytes(), len(numbers))
            for a, b in zip(first, last, strict=True)
        ]
    )
    _, kind = np.unique(merged_topic, return_index=True)
    sizes = (last - first)[kind]
    starts = np.cumsum(sizes) - sizes
    place = starts[merged_topic[topic]] + np.arange(len(topic)) - first[topic]
    row = np.empty(sizes.sum(), np.int64)
    row[place] = np.arange(len(topic))
    total_owned, total_supply = np.zeros(len(row), np.int64), np.zeros(len(kind), np.int64)
    np.add.at(total_owned, place, owned)
    np.add.at(total_supply, merged_topic, supply)
    return _Merged(merged_topic[topic[row]], member[row], total_owned, total_supply, row)


def is_balanced(topic: Longs, member: Longs, assigned: Longs) -> Flags:
    """Whether no path leads to the member from one whose load is higher by two or more.

    Args:
        topic: of each edge, dense from 0.
        member: of each edge, dense from 0; a member is of one group.
        assigned: partitions of the topic that the member holds.

    Returns:
        For each member.
    """
    load = np.zeros(member.max(initial=-1) + 1, np.int64)
    np.add.at(load, member, assigned)
    holds = assigned > 0
    upstream = load
    while True:
        of_topic = np.zeros(topic.max(initial=-1) + 1, np.int64)
        np.maximum.at(of_topic, topic[holds], upstream[member[holds]])
        higher = upstream.copy()
        np.maximum.at(higher, member, of_topic[topic])
        if np.array_equal(higher, upstream):
            return upstream - load <= 1
        upstream = higher


def keeps_most(group: Longs, topic: Longs, member: Longs, owned: Longs, assigned: Longs) -> Flags:
    """Whether a group's assignment, of the best balance, keeps the most that it can.

    Args:
        group: of each edge, dense from 0.
        topic: of each edge, dense from 0; a topic here is of one group.
        member: of each edge, dense from 0; a member is of one group.
        owned: partitions of the topic that the member owned before.
        assigned: partitions of the topic that the member holds now.

    Returns:
        For each group.
    """
    group_count, member_count = group.max(initial=-1) + 1, member.max(initial=-1) + 1
    load = np.zeros(member_count, np.int64)
    np.add.at(load, member, assigned)
    group_of_member = np.zeros(member_count, np.int64)
    group_of_member[member] = group
    # One load more for whoever ends a chain may be one less for whoever began it.
    level = group_of_member * (load.max(initial=0) + 2) + load
    levels, level_of = np.unique(np.concatenate([level, level - 1]), return_inverse=True)
    ends_at, begins_at = level_of[:member_count], level_of[member_count:]
    take = np.where(assigned < owned, 0, 1)
    give = np.where(assigned > owned, -1, 0)
    holds = assigned > 0
    # A path passes each member once and saves at most one move there: beyond that, it is a cycle.
    least = -np.bincount(group_of_member, minlength=group_count)
    is_best = np.ones(group_count, bool)
    distance = np.zeros(member_count, np.int64)
    of_topic = np.zeros(topic.max(initial=-1) + 1, np.int64)
    of_level = np.zeros(len(levels), np.int64)
    while True:
        open_edge = is_best[group]
        giving = open_edge & holds
        np.minimum.at(of_topic, topic[giving], (distance[member] + give)[giving])
        np.minimum.at(of_level, ends_at, distance)
        nearer = np.minimum(distance, of_level[begins_at])
        np.minimum.at(nearer, member[open_edge], (of_topic[topic] + take)[open_edge])
        nearer = np.where(is_best[group_of_member], nearer, distance)
        if np.array_equal(nearer, distance):
            return is_best
        distance = nearer
        is_best[group_of_member[distance < least[group_of_member]]] = False


def _codes(
    table: pa.Table, names: tuple[str, ...], within: Longs | None = None
) -> tuple[Longs, pa.Table]:
    """Number the distinct values of columns densely (within each code), and list them."""
    code = np.zeros(table.num_rows, np.int64) if within is None else within
    for name in names:
        encoded = pc.dictionary_encode(table[name].combine_chunks())
        code = code * max(len(encoded.dictionary), 1) + encoded.indices.to_numpy()
    _, first, dense = np.unique(code, return_index=True, return_inverse=True)
    return dense, table.select(list(names)).take(pa.array(first))
