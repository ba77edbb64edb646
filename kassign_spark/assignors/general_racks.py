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
from kassign_spark.flow.arrays import settle
from kassign_spark.flow.costs import MAJOR, MINOR
from kassign_spark.flow.segments import Longs


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
    flat = edges.to_arrays()
    crossing, move = (MAJOR, MINOR) if racks_before_moves else (MINOR, MAJOR)
    counts = settle(
        flat.class_of,
        flat.member_of,
        flat.owned,
        flat.supply,
        flat.turn,
        surcharge=flat.is_cross * crossing,
        move=move,
    )
    owner = np.full(len(flat.slot_of_partition), -1)
    edge, number, topic, partition = flat.claims
    kept = kept_claims(edge, number, topic, counts)
    owner[flat.slot_of_partition[partition[kept]]] = flat.member_of[edge[kept]]
    owner[owner < 0] = flat.member_of[deal_in_turn(flat.class_of, counts - flat.owned)]
    owner_of_partition = owner[flat.slot_of_partition].tolist()
    return [group.named(owner_of_partition) for group in groups]


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
            if member < 0:
                continue
            here = member - self.first_member
            # What a member sent as owned counts here, also where its claim did not prevail.
            if here in owners.get(partition, {here}):
                assigned[here].append(partition)
            else:
                moving[partition] = here
        return Outcome(OK, None, assigned, moving, layout)


class _Arrays(NamedTuple):
    """Edges of all groups, sorted by class and member; ``claims``: edge, number, topic, id."""

    class_of: Longs
    member_of: Longs
    owned: Longs
    is_cross: Longs
    supply: Longs
    turn: Longs
    slot_of_partition: Longs
    claims: tuple[Longs, Longs, Longs, Longs]


class _Edges:
    """Edges of one group after the other, in flat lists."""

    def __init__(self) -> None:
        self.class_of: list[int] = []
        self.member_of: list[int] = []
        self.owned: list[int] = []
        self.is_cross: list[int] = []
        self.supply: list[int] = []
        self.turn: list[int] = []
        self.class_of_partition: list[int] = []
        self.claims: list[tuple[int, int, int, int]] = []
        self.member_count = 0

    def to_arrays(self) -> _Arrays:
        def longs(values: list[int]) -> Longs:
            return np.array(values, np.int64)

        # Slots: partitions in the order of their classes.
        slot = np.empty(len(self.class_of_partition), np.int64)
        slot[np.argsort(longs(self.class_of_partition), kind="stable")] = np.arange(len(slot))
        claims = longs([n for claim in self.claims for n in claim]).reshape(-1, 4)
        return _Arrays(
            longs(self.class_of),
            longs(self.member_of),
            longs(self.owned),
            longs(self.is_cross),
            longs(self.supply),
            longs(self.turn),
            slot,
            (claims[:, 0], claims[:, 1], claims[:, 2], claims[:, 3]),
        )


def _add_group(edges: _Edges, state: GroupState) -> _Group:
    claims = lay_out(state)
    layout = claims.layout
    first_partition, first_member = len(edges.class_of_partition), edges.member_count
    edges.member_count += len(state.member_ids)
    classes: dict[tuple[int, ...], int] = {}
    class_of = [classes.setdefault(key, len(classes)) for key in _class_keys(state, layout)]
    first_class = len(edges.supply)
    supply = [0] * len(classes)
    for number in class_of:
        supply[number] += 1
    edges.supply += supply
    edges.turn += range(len(classes))
    edges.class_of_partition += (first_class + number for number in class_of)
    edge_of: dict[tuple[int, int], int] = {}
    for key, number in classes.items():
        for member, is_cross in sorted((abs(code) - 1, code < 0) for code in key):
            edge_of[number, member] = len(edges.class_of)
            edges.class_of.append(first_class + number)
            edges.member_of.append(first_member + member)
            edges.is_cross.append(is_cross)
            edges.owned.append(0)
    believed = believe(state, claims, hash_map_order(list(map(java_hash, state.member_ids))))
    for partition, member in believed.owner.items():
        edge = edge_of.get((class_of[partition], member))
        if edge is not None and partition not in believed.disputed:
            edges.owned[edge] += 1
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
