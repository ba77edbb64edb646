"""The two conditions of the certificate, over counts of topics and subscribers, in numpy.

Balance. Draw an arc from member to member wherever the first holds a partition that the second may
take. Loads can be made more even exactly when a path leads from a member to one whose load is lower
by two or more (the cost-reducing paths of "Semi-matchings for bipartite graphs", Harvey and others,
2006). So the highest load upstream of each member decides.

Moves. At the best balance an assignment keeps the most exactly when no exchange that leaves the
sorted loads as they are keeps more: no cycle of negative cost in the graph of single changes, where
a chain of them may go round, or end at a member whose load is lower by one than that of the member
where it began. Shortest distances (Bellman and Ford) settle exactly when there is no such cycle.
How much the best keeps is taken from an assignment that the general pass makes, and believed only
after that one has passed both tests.
"""

from typing import NamedTuple

import numpy as np

from kassign_spark.engine.task import settle
from kassign_spark.groups.numbers import Flags, Longs


class Optimality(NamedTuple):
    """Optimality of each group that has an edge.

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
) -> Optimality:
    """Judge many groups, given by their edges: topics and subscribers.

    Args:
        group: of each edge.
        topic: of each edge. Edges are sorted by it, then by member.
        member: of each edge. Topics and members here are of one group each.
        supply: partitions of the topic.
        owned: those that the member owned before.
        assigned: those that it holds now.

    Raises:
        AssertionError: the assignment to compare with is not the best itself.
    """
    groups, group = np.unique(group, return_inverse=True)
    topic, member = (np.unique(codes, return_inverse=True)[1] for codes in (topic, member))
    first = np.flatnonzero(np.diff(topic, prepend=-1))
    best = _merge_topics(topic, member, owned, supply[first], first)
    of_group = group[best.row]
    kept = settle(best.topic, best.member, best.owned, best.supply, np.arange(len(best.supply)))
    assert is_balanced(best.topic, best.member, kept).all()
    assert keeps_most(of_group, best.topic, best.member, best.owned, kept).all()
    group_of_member = np.zeros(member.max(initial=-1) + 1, np.int64)
    group_of_member[member] = group
    balanced = np.ones(len(groups), bool)
    balanced[group_of_member[~is_balanced(topic, member, assigned)]] = False
    load = _sums(best.member, kept)
    return Optimality(
        groups,
        _sums(group, assigned),
        balanced,
        _sums(of_group, np.minimum(kept, best.owned)),
        _sums(group_of_member, load * load),
    )


def _sums(key: Longs, values: Longs) -> Longs:
    """Return the values of each key, keys dense from 0, added up as whole numbers."""
    total = np.zeros(key.max(initial=-1) + 1, np.int64)
    np.add.at(total, key, values)
    return total


class _Merged(NamedTuple):
    """Edges of topics with the same subscribers made one; ``row``: one of the edges it was."""

    topic: Longs
    member: Longs
    owned: Longs
    supply: Longs
    row: Longs


def _merge_topics(
    topic: Longs, member: Longs, owned: Longs, supply: Longs, first: Longs
) -> _Merged:
    """Merge topics, which changes no count that matters: whoever may take one may take all."""
    last = np.append(first[1:], len(topic))
    numbers: dict[bytes, int] = {}
    subscribers = (member[a:b].tobytes() for a, b in zip(first, last, strict=True))
    merged_topic = np.fromiter(
        (numbers.setdefault(some, len(numbers)) for some in subscribers), np.int64, len(first)
    )
    _, kind = np.unique(merged_topic, return_index=True)
    sizes = (last - first)[kind]
    starts = np.cumsum(sizes) - sizes
    place = starts[merged_topic[topic]] + np.arange(len(topic)) - first[topic]
    row = np.empty(sizes.sum(), np.int64)
    row[place] = np.arange(len(topic))
    return _Merged(
        merged_topic[topic[row]], member[row], _sums(place, owned), _sums(merged_topic, supply), row
    )


def is_balanced(topic: Longs, member: Longs, assigned: Longs) -> Flags:
    """Return for each member whether no path leads to it from a load higher by two or more.

    Given are, of each edge, topic and member, both dense from 0, a member of one group, and how
    many partitions of the topic it holds.
    """
    load = _sums(member, assigned)
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
    """Return for each group whether its assignment, of the best balance, keeps as much as possible.

    Given are, of each edge, group, topic and member, all dense from 0, topic and member of one
    group, and how many partitions of the topic the member owned before, and holds now.
    """
    group_count, member_count = group.max(initial=-1) + 1, member.max(initial=-1) + 1
    load = _sums(member, assigned)
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
