"""Bottlenecks by their kernel: each row is counted again, and the bounds are the optimum's."""

from collections import defaultdict
from collections.abc import Iterable
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import pytest
from ortools.graph.python import max_flow

from kassign_spark.graph.class_batch import class_graph
from kassign_spark.graph.levels import levels
from kassign_spark.graph.proofs import KINDS, proofs
from kassign_spark.groups import numbers
from tests.graph.arrays import batch_of
from tests.oracles.mixed_groups import MixedGroup, mixed_groups

SEED = 151
GROUPS = mixed_groups(700, SEED)


class Row(NamedTuple):
    kind: str
    part: int
    level: int
    members: list[str]
    topics: list[str]
    partition_count: int
    least_max: int | None
    most_min: int | None


def _rows(groups: list[MixedGroup]) -> dict[int, list[Row]]:
    made = batch_of(groups)
    graph = class_graph(made.subscribed)
    result = proofs(made.subscribed, graph, levels(graph))
    members, topics = defaultdict(list), defaultdict(list)
    for row, item in zip(*result.members, strict=True):
        members[row].append(made.members[item][1])
    for row, item in zip(*result.topics, strict=True):
        topics[row].append(made.topics[item][1])
    rows = defaultdict(list)
    for row, group in enumerate(result.group):
        assert result.member_count[row] == len(members[row])
        assert result.topic_count[row] == len(topics[row])
        rows[int(group)].append(
            Row(
                KINDS[result.kind[row]],
                int(result.part[row]),
                int(result.level[row]),
                members[row],
                topics[row],
                int(result.partition_count[row]),
                None if result.least_max[row] < 0 else int(result.least_max[row]),
                None if result.most_min[row] < 0 else int(result.most_min[row]),
            )
        )
    return rows


ROWS = _rows(GROUPS)


def _readable(group: MixedGroup) -> dict[str, set[str]]:
    return {
        topic: set(group.subscribers(topic))
        for topic, count in group.partitions.items()
        if count and group.subscribers(topic)
    }


def _fits(group: MixedGroup, *, at_most: int, at_least: int = 0) -> bool:
    """Whether all partitions can be given out with loads between these, by a maximum flow."""
    readable, members = _readable(group), list(group.subscriptions)
    node = {name: number for number, name in enumerate([*readable, *members])}
    source, spare, sink = len(node), len(node) + 1, len(node) + 2
    total = sum(group.partitions[topic] for topic in readable)
    expected = at_least * len(members)
    if expected > total:
        return False
    flow = max_flow.SimpleMaxFlow()
    for topic, readers in readable.items():
        flow.add_arc_with_capacity(source, node[topic], group.partitions[topic])
        for member in readers:
            flow.add_arc_with_capacity(node[topic], node[member], group.partitions[topic])
    for member in members:
        flow.add_arc_with_capacity(node[member], sink, at_least)
        flow.add_arc_with_capacity(node[member], spare, at_most - at_least)
    flow.add_arc_with_capacity(spare, sink, total - expected)
    assert flow.solve(source, sink) == flow.OPTIMAL
    return bool(flow.optimal_flow() == total)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_among_the_rows(kind: str) -> None:
    assert sum(row.kind == kind for rows in ROWS.values() for row in rows) > 20


def test_each_row_is_a_proof() -> None:
    """What it says of members and topics holds in the subscriptions, and its bounds follow."""
    for number, rows in ROWS.items():
        group, readable = GROUPS[number], _readable(GROUPS[number])
        for row in rows:
            supply = sum(group.partitions[topic] for topic in row.topics)
            assert row.partition_count == supply
            assert row.members == sorted(set(row.members))
            assert row.topics == sorted(set(row.topics))
            members, topics = set(row.members), set(row.topics)
            read_by_them = {topic for topic, readers in readable.items() if readers & members}
            read_by_them_only = {t for t, readers in readable.items() if readers <= members}
            if row.least_max is not None:  # only they can read these
                assert topics <= read_by_them_only
                assert row.least_max == -(-supply // len(members))
            if row.most_min is not None:  # they can read only these
                assert topics == read_by_them
                assert row.most_min == supply // len(members)
            if row.kind == "single_reader":
                assert topics == {t for t, readers in readable.items() if readers == members}
            if row.kind == "few_partitions":
                assert all(readable[topic] == members for topic in topics)
                assert all(group.partitions[topic] < len(members) for topic in topics)


def test_the_bounds_are_those_of_the_optimum() -> None:
    """No assignment has a lower maximum, or a higher minimum, and one has both (OR-tools)."""
    for number, group in enumerate(GROUPS):
        rows = ROWS[number]
        greatest = max((row.least_max for row in rows if row.least_max is not None), default=0)
        least = min((row.most_min for row in rows if row.most_min is not None), default=0)
        assert _fits(group, at_most=greatest, at_least=least), group
        assert greatest == 0 or not _fits(group, at_most=greatest - 1), group
        total = sum(group.partitions[t] for t in _readable(group))
        assert not _fits(group, at_most=total + 1, at_least=least + 1), group


def test_the_first_level_is_the_bound_of_its_part() -> None:
    for number, rows in ROWS.items():
        for whole in (row for row in rows if row.kind == "part"):
            dense = [r for r in rows if r.kind == "dense" and r.part == whole.part]
            sparse = [r for r in rows if r.kind == "sparse" and r.part == whole.part]
            chain = [row.least_max or 0 for row in (*dense, whole)]
            assert chain == sorted(chain, reverse=True), GROUPS[number]
            assert [row.level for row in dense] == list(range(len(dense)))
            assert [row.level for row in sparse] == list(range(1, len(sparse) + 1))
            assert len(dense) == len(sparse)
            # Each bound is attained by dropping the rest of the group.
            of_part = MixedGroup(
                "", GROUPS[number].partitions, {m: _topics(number, m) for m in whole.members}
            )
            assert _fits(of_part, at_most=chain[0])
            assert not _fits(of_part, at_most=chain[0] - 1)


def _reader_count(readable: dict[str, set[str]], topics: Iterable[str]) -> int:
    return len(set[str]().union(*(readable[topic] for topic in topics)))


def _topics(number: int, member: str) -> tuple[str, ...]:
    return GROUPS[number].subscriptions[member]


def test_the_bound_is_that_of_all_sets_of_topics() -> None:
    """By enumeration: of all sets of topics the one with the most partitions a reader."""
    for number, group in enumerate(GROUPS[:300]):
        readable = _readable(group)
        bounds = [
            -(-sum(group.partitions[t] for t in topics) // _reader_count(readable, topics))
            for size in range(1, len(readable) + 1)
            for topics in combinations(readable, size)
        ]
        stated = [row.least_max for row in ROWS[number] if row.least_max is not None]
        assert max(stated, default=0) == max(bounds, default=0), group


def test_parts_rows_of_single_readers_few_partitions_and_idle_members_are_all_there() -> None:
    for number, group in enumerate(GROUPS):
        readable = _readable(group)
        by_kind: dict[str, list[Row]] = defaultdict(list)
        for row in ROWS[number]:
            by_kind[row.kind].append(row)
        alone = sorted(t for t, readers in readable.items() if len(readers) == 1)
        assert sorted(t for row in by_kind["single_reader"] for t in row.topics) == alone
        few = sorted(t for t, r in readable.items() if group.partitions[t] < len(r))
        assert sorted(t for row in by_kind["few_partitions"] for t in row.topics) == few
        idle = sorted(m for m in group.subscriptions if not any(m in r for r in readable.values()))
        assert [m for row in by_kind["idle"] for m in row.members] == idle
        parts = by_kind["part"]
        assert [row.part for row in parts] == list(range(len(parts)))
        assert sorted(m for row in parts for m in row.members) == sorted(
            set(group.subscriptions) - set(idle)
        )
        assert sorted(t for row in parts for t in row.topics) == sorted(readable)
        for row in parts:  # not two parts in one: what one member reaches is all of it
            reached = {row.members[0]}
            for _ in row.members:
                for readers in readable.values():
                    if readers & reached:
                        reached |= readers
            assert reached == set(row.members)


def test_a_group_alone_or_among_others_has_the_same_rows() -> None:
    for number in range(0, len(GROUPS), 23):
        assert _rows([GROUPS[number]]).get(0, []) == ROWS.get(number, [])


def test_sets_that_hash_alike_are_still_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    def alike(numbers: Any) -> Any:
        return np.zeros(len(numbers), np.uint64)

    monkeypatch.setattr(numbers, "_scatter", alike)
    assert _rows(GROUPS[:60]) == {n: rows for n, rows in ROWS.items() if n < 60}


def test_nothing_has_no_rows() -> None:
    assert _rows([]) == {}
    assert _rows([MixedGroup("", {"t": 3}, {})]) == {}
