"""Bottlenecks as proofs: members and topics whose counts show that no plan does better.

``levels`` says why the sets of it are what they are; here they become rows.
"""

from typing import NamedTuple

import numpy as np

from kassign_spark.engine.segments import Longs, Segments
from kassign_spark.graph.class_batch import ClassGraph, Subscribed
from kassign_spark.graph.levels import Levels
from kassign_spark.groups.numbers import Flags, dense, place_in_run, ranges

KINDS = ("dense", "part", "sparse", "single_reader", "few_partitions", "idle")
DENSE, PART, SPARSE, SINGLE_READER, FEW_PARTITIONS, IDLE = range(6)
NOTHING = -1
"""Stands for null in a column of numbers."""


class Pairs(NamedTuple):
    """Pairs of a row and an item that belongs to it."""

    row: Longs
    item: Longs


class Proofs(NamedTuple):
    """Rows by (group, kind, part, level, first member, first topic); numbers, -1 for null.

    Attributes:
        kind: an index into ``KINDS``.
        group: of each row.
        part: null if the row belongs to no part.
        level: of `dense` and `sparse` rows the level that they go down to, or begin at.
        members: by row and number.
        topics: by row and number.
        member_count: of each row.
        topic_count: of each row.
        partition_count: of the row's topics.
        least_max: some member has at least this many partitions under any assignor.
        most_min: some member has at most this many.
    """

    kind: Longs
    group: Longs
    part: Longs
    level: Longs
    members: Pairs
    topics: Pairs
    member_count: Longs
    topic_count: Longs
    partition_count: Longs
    least_max: Longs
    most_min: Longs


class _Rows(NamedTuple):
    """Rows of one kind, numbered from 0."""

    kind: int
    group: Longs
    part: Longs
    level: Longs
    members: Pairs
    topics: Pairs


def proofs(subscribed: Subscribed, graph: ClassGraph, levels: Levels) -> Proofs:
    """List the bottlenecks of all groups."""
    kinds = [
        *_rows_of_levels(graph, levels),
        _single_readers(subscribed, graph),
        _few_partitions(subscribed, graph),
        _idle(graph),
    ]
    counts = np.array([len(rows.group) for rows in kinds])
    kind = np.repeat([rows.kind for rows in kinds], counts)
    group, part, level = (
        np.concatenate([getattr(rows, name) for rows in kinds]).astype(np.int64)
        for name in ("group", "part", "level")
    )
    members, topics = (
        _join_pairs([getattr(rows, name) for rows in kinds], counts)
        for name in ("members", "topics")
    )
    firsts = [Segments(pairs.row, len(group)).least(pairs.item) for pairs in (topics, members)]
    order = np.lexsort((*firsts, level, part, kind, group))
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    members, topics = (_sort_pairs(place[pairs.row], pairs.item) for pairs in (members, topics))
    kind, group, part, level = kind[order], group[order], part[order], level[order]
    member_count, topic_count = (np.bincount(p.row, minlength=len(kind)) for p in (members, topics))
    partitions = Segments(topics.row, len(kind)).sum(subscribed.size[topics.item])
    bounds_max = ~np.isin(kind, (SPARSE, IDLE))
    bounds_min = np.isin(kind, (PART, SPARSE, IDLE))
    least_max = np.where(bounds_max, -(-partitions // member_count), NOTHING)
    most_min = np.where(bounds_min, partitions // member_count, NOTHING)
    keys, numbers = (kind, group, part, level), (member_count, topic_count, partitions)
    return Proofs(*keys, members, topics, *numbers, least_max, most_min)


def _rows_of_levels(graph: ClassGraph, levels: Levels) -> list[_Rows]:
    """Return for each part the levels down to each level (the last set is the part) and up from it.

    What down to a level is held, only the members down to there can read; and the members from a
    level on can read only what they hold.
    """
    linked = np.flatnonzero(graph.part_of_member >= 0)
    group, part = graph.group_of_member[linked], graph.part_of_member[linked]
    level = levels.level_of_member[linked]
    first, part_of_linked = dense(group, part)
    depth = np.zeros(len(first), np.int64)
    np.maximum.at(depth, part_of_linked, level + 1)
    first_row = np.cumsum(depth) - depth
    row_part = np.repeat(np.arange(len(depth)), depth)
    row_level = place_in_run(row_part)

    part_of_class = np.empty(len(graph.supply), np.int64)
    part_of_class[graph.class_of] = part_of_linked[np.searchsorted(linked, graph.member_of)]
    class_ = graph.class_of_topic
    members = (linked, part_of_linked, level)
    topics = (np.arange(len(class_)), part_of_class[class_], levels.level_of_class[class_])

    def down_to(item: Longs, of_part: Longs, at_level: Longs) -> Pairs:
        copies = depth[of_part] - at_level
        return Pairs(ranges(first_row[of_part] + at_level, copies), np.repeat(item, copies))

    def up_from(item: Longs, of_part: Longs, at_level: Longs) -> Pairs:
        return Pairs(ranges(first_row[of_part] + 1, at_level), np.repeat(item, at_level))

    keys = (group[first][row_part], part[first][row_part], row_level)
    is_whole = row_level == depth[row_part] - 1
    down = _Rows(DENSE, *keys, down_to(*members), down_to(*topics))
    up = _Rows(SPARSE, *keys, up_from(*members), up_from(*topics))
    whole = _only(down, is_whole)
    no_level = np.full(len(whole.group), NOTHING)
    return [
        _only(down, ~is_whole),
        whole._replace(kind=PART, level=no_level),
        _only(up, row_level > 0),
    ]


def _single_readers(subscribed: Subscribed, graph: ClassGraph) -> _Rows:
    """Return the topics that each member alone reads."""
    readers = np.bincount(graph.class_of, minlength=len(graph.supply))
    reader = np.full(len(graph.supply), NOTHING)
    reader[graph.class_of] = graph.member_of
    topic = np.flatnonzero(readers[graph.class_of_topic] == 1)
    members, row = np.unique(reader[graph.class_of_topic[topic]], return_inverse=True)
    return _Rows(
        SINGLE_READER,
        graph.group_of_member[members],
        graph.part_of_member[members],
        np.full(len(members), NOTHING),
        Pairs(np.arange(len(members)), members),
        Pairs(row, topic),
    )


def _few_partitions(subscribed: Subscribed, graph: ClassGraph) -> _Rows:
    """Return the topics of each class that have fewer partitions than readers."""
    readers = np.bincount(graph.class_of, minlength=len(graph.supply))
    topic = np.flatnonzero(subscribed.size < readers[graph.class_of_topic])
    classes, row = np.unique(graph.class_of_topic[topic], return_inverse=True)
    row_of_class = np.full(len(graph.supply), NOTHING)
    row_of_class[classes] = np.arange(len(classes))
    edge = row_of_class[graph.class_of] >= 0
    return _Rows(
        FEW_PARTITIONS,
        graph.group_of_class[classes],
        graph.part_of_class[classes],
        np.full(len(classes), NOTHING),
        Pairs(row_of_class[graph.class_of[edge]], graph.member_of[edge]),
        Pairs(row, topic),
    )


def _idle(graph: ClassGraph) -> _Rows:
    """Return the members of each group that can read nothing."""
    member = np.flatnonzero(graph.part_of_member < 0)
    groups, row = np.unique(graph.group_of_member[member], return_inverse=True)
    none = np.full(len(groups), NOTHING)
    nothing = np.zeros(0, np.int64)
    return _Rows(IDLE, groups, none, none, Pairs(row, member), Pairs(nothing, nothing))


def _only(rows: _Rows, keep: Flags) -> _Rows:
    place: Longs = np.cumsum(keep) - keep

    def of(pairs: Pairs) -> Pairs:
        kept = keep[pairs.row]
        return Pairs(place[pairs.row[kept]], pairs.item[kept])

    keys = (rows.group[keep], rows.part[keep], rows.level[keep])
    return _Rows(rows.kind, *keys, of(rows.members), of(rows.topics))


def _join_pairs(parts: list[Pairs], counts: Longs) -> Pairs:
    offsets = np.repeat(np.cumsum(counts) - counts, [len(pairs.row) for pairs in parts])
    rows, items = (np.concatenate(column) for column in zip(*parts, strict=True))
    return Pairs(rows + offsets, items)


def _sort_pairs(row: Longs, item: Longs) -> Pairs:
    order = np.lexsort((item, row))
    return Pairs(row[order], item[order])
