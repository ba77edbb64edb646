"""The general pass where racks count: many groups in one process, settled side by side.

A partition that has no replica in its member's rack is a cost of its own, beside moves. It may be
another one for each subscriber, so classes are of partitions here, not of topics.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from kassign_spark.assignors.differing import deal_in_turn, kept_claims
from kassign_spark.client.claims import believe
from kassign_spark.client.hash_order import hash_map_order, java_hash
from kassign_spark.client.racks import number_racks
from kassign_spark.client.state import OK, Claims, GroupState, Layout, Outcome, lay_out
from kassign_spark.engine.costs import MAJOR, MINOR
from kassign_spark.engine.segments import Longs
from kassign_spark.engine.task import settle


def assign_with_racks(states: Sequence[GroupState], *, racks_before_moves: bool) -> list[Outcome]:
    """Assign all partitions: balance best, then moves fewest, then cross-rack partitions fewest.

    Args:
        states: groups, without claims of partitions that do not exist.
        racks_before_moves: whether cross-rack partitions count before moves.

    Returns:
        For each group what stays or nobody has to give up, and what is withheld.
    """
    edges = _Edges()
    groups = [_add_group(edges, state) for state in states]
    class_of, member_of, is_cross = _columns(edges.edges, 3)
    edge, number, topic, partition = _columns(edges.claims, 4)
    owned = np.bincount(edge, minlength=len(class_of))
    turn = np.array(edges.turn, np.int64)
    class_of_partition = np.array(edges.class_of_partition, np.int64)
    supply = np.bincount(class_of_partition, minlength=len(turn))
    crossing, move = (MAJOR, MINOR) if racks_before_moves else (MINOR, MAJOR)
    counts = settle(
        class_of, member_of, owned, supply, turn, surcharge=is_cross * crossing, move=move
    )
    owner = np.full(len(class_of_partition), -1)
    kept = kept_claims(edge, number, topic, counts)
    owner[partition[kept]] = member_of[edge[kept]]
    free = np.flatnonzero(owner < 0)
    free = free[np.argsort(class_of_partition[free], kind="stable")]
    owner[free] = member_of[deal_in_turn(class_of, counts - owned)]
    owners = owner.tolist()
    return [group.named(owners) for group in groups]


class _Group(NamedTuple):
    """A group among others: where its partitions and members begin."""

    claims: Claims
    first_partition: int
    first_member: int

    def named(self, owner: list[int]) -> Outcome:
        layout, by_member = self.claims.layout, self.claims.by_member
        assigned: list[list[int]] = [[] for _ in by_member]
        owners: dict[int, set[int]] = {}
        for member, partitions in enumerate(by_member):
            for partition in partitions:
                owners.setdefault(partition, set()).add(member)
        moving = {}
        for partition, member in enumerate(
            owner[self.first_partition : self.first_partition + layout.partition_count]
        ):
            here = member - self.first_member
            # What a member sent as owned counts here, also where its claim did not prevail.
            if here in owners.get(partition, {here}):
                assigned[here].append(partition)
            else:
                moving[partition] = here
        return Outcome(OK, None, assigned, moving, layout)


class _Edges:
    """Flat lists over the groups added so far, one group after the other.

    Attributes:
        edges: class, member, is_cross; sorted by class and member.
        turn: of each class its number in its group.
        class_of_partition: of each partition.
        claims: edge, number, topic, partition.
    """

    def __init__(self) -> None:
        self.edges: list[tuple[int, int, int]] = []
        self.turn: list[int] = []
        self.class_of_partition: list[int] = []
        self.claims: list[tuple[int, int, int, int]] = []
        self.member_count = 0


def _columns(rows: Sequence[tuple[int, ...]], count: int) -> Longs:
    return np.array(rows, np.int64).reshape(-1, count).T


def _add_group(edges: _Edges, state: GroupState) -> _Group:
    claims = lay_out(state)
    layout = claims.layout
    first_partition, first_member = len(edges.class_of_partition), edges.member_count
    edges.member_count += len(state.member_ids)
    classes: dict[tuple[int, ...], int] = {}
    class_of = [classes.setdefault(key, len(classes)) for key in _class_keys(state, layout)]
    first_class = len(edges.turn)
    edges.turn += range(len(classes))
    edges.class_of_partition += (first_class + number for number in class_of)
    edge_of: dict[tuple[int, int], int] = {}
    for key, number in classes.items():
        for member, is_cross in sorted((abs(code) - 1, code < 0) for code in key):
            edge_of[number, member] = len(edges.edges)
            edges.edges.append((first_class + number, first_member + member, is_cross))
    believed = believe(state, claims, hash_map_order(list(map(java_hash, state.member_ids))))
    for partition, member in believed.owner.items():
        edge = edge_of.get((class_of[partition], member))
        if edge is not None and partition not in believed.disputed:
            place = layout.number_of[partition], layout.topic_of[partition]
            edges.claims.append((edge, *place, first_partition + partition))
    return _Group(claims, first_partition, first_member)


def _class_keys(state: GroupState, layout: Layout) -> list[tuple[int, ...]]:
    """Tell partitions apart by who may take them, and for whom they are in other racks.

    Returns:
        For each partition the subscribers: each as its position + 1, negative where no replica is
        in the member's rack. A partition of which no rack is known is in nobody's other rack.
    """
    subscribers: list[list[int]] = [[] for _ in layout.topics]
    for member, topics in enumerate(state.subscriptions):
        for name in set(topics):
            if name in layout.index:
                subscribers[layout.index[name]].append(member)
    racks = number_racks(state, layout)
    known: dict[tuple[int, int], tuple[int, ...]] = {}
    keys = []
    for partition, topic in enumerate(layout.topic_of):
        replicas = 0 if racks is None else racks.of_partition[partition]
        key = known.get((topic, replicas))
        if key is None:
            key = known[topic, replicas] = tuple(
                -member - 1
                if racks is not None and replicas and racks.mismatch(member, partition)
                else member + 1
                for member in subscribers[topic]
            )
        keys.append(key)
    return keys
