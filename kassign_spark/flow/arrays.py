"""The general pass on counts, in numpy: many groups in one process, settled side by side.

``costs`` says what the steps mean and why they are exact.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kassign_spark.flow.costs import ANY_NUMBER, HIGH, LOW, MIDDLE, MOVE, MUST_FILL, UNREACHABLE
from kassign_spark.flow.segments import Longs, Segments

Flags = npt.NDArray[np.bool_]


@dataclass
class Flow:
    """Parts that are being settled. Rows (edges) are sorted by class, then by member.

    Attributes:
        turn: the class's number within its group; rotates whom it serves first.
        part: of each member.
        quota: of each member.
        open: partitions of each class that have no place.
        load: partitions that each member holds.
        surcharge: what an edge adds to distances whether or not the partition moves.
        move: what a move adds.
    """

    by_class: Segments
    by_member: Segments
    owned: Longs
    assigned: Longs
    turn: Longs
    part: Longs
    quota: Longs
    open: Longs
    load: Longs
    surcharge: Longs
    move: int

    def subset(self, rows: Flags | Longs) -> "Flow":
        """Only these rows, which must be all rows of their parts; shares nothing."""
        classes, class_of = np.unique(self.by_class.key[rows], return_inverse=True)
        members, member_of = np.unique(self.by_member.key[rows], return_inverse=True)
        return Flow(
            Segments(class_of, len(classes)),
            Segments(member_of, len(members)),
            self.owned[rows],
            self.assigned[rows],
            self.turn[classes],
            self.part[members],
            self.quota[members],
            self.open[classes],
            self.load[members],
            self.surcharge[rows],
            self.move,
        )


def settle(
    class_of: Longs,
    member_of: Longs,
    owned: Longs,
    supply: Longs,
    turn: Longs,
    *,
    surcharge: Longs | None = None,
    move: int = MOVE,
) -> Longs:
    """Assign all partitions: balance best, then cost least: moves, and surcharges if there are any.

    Args:
        class_of: for each edge its class, dense from 0; edges are sorted by class, then member.
        member_of: for each edge its member, dense from 0; members of all groups.
        owned: for each edge how many of the class's partitions the member owns.
        supply: partitions of each class.
        turn: for each class its number within its group.
        surcharge: for each edge what one partition there costs, moved or not; None: nothing.
        move: what a move costs; ``MAJOR`` or ``MINOR`` where surcharges are the other one.

    Returns:
        For each edge how many partitions of the class the member gets.
    """
    surcharge = np.zeros(len(owned), np.int64) if surcharge is None else surcharge
    assigned = np.zeros(len(owned), np.int64)
    rows = np.arange(len(owned))
    part = components(class_of, member_of, len(supply), int(member_of.max(initial=-1)) + 1)
    by_class, by_member = Segments(class_of, len(supply)), Segments(member_of, len(part))
    quota, load = np.zeros((2, len(part)), np.int64)
    of_parts = (turn, part, quota, supply, load)
    whole = Flow(by_class, by_member, owned, assigned, *of_parts, surcharge, move)
    while len(rows):
        flow = whole.subset(rows)
        _start(flow)
        _run(flow)
        level_of_member, settled = _levels(flow)
        level = level_of_member[flow.by_member.key]
        stays = level == flow.by_class.least(level)[flow.by_class.key]
        assert not flow.assigned[~stays].any()
        done = stays & settled[flow.by_member.key]
        assigned[rows[done]] = flow.assigned[done]
        _, renumbered = np.unique(flow.part * 3 + level_of_member, return_inverse=True)
        part[np.unique(member_of[rows])] = renumbered
        rows = rows[stays & ~done]
    return assigned


def components(class_of: Longs, member_of: Longs, class_count: int, member_count: int) -> Longs:
    """Name connected components: for each member the least member of its own."""
    label = np.arange(member_count)
    by_class = Segments(class_of, class_count)
    by_member = Segments(member_of, member_count)
    while True:
        of_class = by_class.least(label[member_of])
        lower = np.minimum(label, by_member.least(of_class[class_of]))
        lower = lower[lower]
        if np.array_equal(lower, label):
            return label
        label = lower


def _start(flow: Flow) -> None:
    """Give every part its quota; each member keeps what it owns up to that, lowest class first."""
    by_class, by_member = flow.by_class, flow.by_member
    parts, flow.part = np.unique(flow.part, return_inverse=True)
    part_supply = np.zeros(len(parts), np.int64)
    np.add.at(part_supply, by_class.least(flow.part[by_member.key]), flow.open)
    flow.quota = (part_supply // np.bincount(flow.part))[flow.part]
    free = np.where(flow.surcharge == 0, flow.owned, 0)
    flow.assigned = np.clip(flow.quota[by_member.key] - by_member.before(free), 0, free)
    flow.open = flow.open - by_class.sum(flow.assigned)
    assert (flow.open >= 0).all(), "more partitions are owned than there are: one has two owners"
    flow.load = by_member.sum(flow.assigned)


def _run(flow: Flow) -> None:
    """Push along cheapest paths until no open partition has any."""
    while True:
        of_class, of_member = _distances(flow)
        can_step = (flow.open > 0) & (of_class < UNREACHABLE)
        if not can_step.any():
            return
        moving = np.zeros(flow.part.max() + 1, bool)
        moving[flow.part[flow.by_member.key[can_step[flow.by_class.key]]]] = True
        rows = moving[flow.part[flow.by_member.key]]
        if 2 * rows.sum() < len(rows):
            classes, members = np.unique(flow.by_class.key[rows]), moving[flow.part]
            busy = flow.subset(rows)
            _run(busy)
            flow.assigned[rows] = busy.assigned
            flow.open[classes], flow.load[members] = busy.open, busy.load
            return
        _push(flow, of_class, of_member)


def _place(flow: Flow) -> Longs:
    """Distance from each member to a place of its own."""
    must, may = flow.load < flow.quota, flow.load == flow.quota
    return np.where(must, 1 - MUST_FILL, np.where(may, 1, UNREACHABLE))


def _step_costs(flow: Flow) -> tuple[Longs, Longs]:
    """Distance from class to member, and from member to class (one of it is pushed out)."""
    take = np.where(flow.assigned < flow.owned, 1, flow.move + 1) + flow.surcharge
    give = np.where(flow.assigned > flow.owned, 1 - flow.move, 1) - flow.surcharge
    return take, give


def _distances(flow: Flow) -> tuple[Longs, Longs]:
    """Cheapest path to a place from each class and from each member (Bellman and Ford)."""
    place = _place(flow)
    take, give = _step_costs(flow)
    holds = flow.assigned > 0
    of_member = place
    while True:
        of_class = _reachable(flow.by_class.least(of_member[flow.by_member.key] + take))
        through = np.where(holds, of_class[flow.by_class.key] + give, UNREACHABLE)
        nearer = np.minimum(place, _reachable(flow.by_member.least(through)))
        if np.array_equal(nearer, of_member):
            return of_class, of_member
        of_member = nearer


def _reachable(distance: Longs) -> Longs:
    return np.where(distance > UNREACHABLE // 2, UNREACHABLE, distance)


def _push(flow: Flow, of_class: Longs, of_member: Longs) -> None:
    """Let open partitions step along cheapest paths until none of them finds room."""
    by_class, by_member = flow.by_class, flow.by_member
    take, give = _step_costs(flow)
    class_distance, member_distance = of_class[by_class.key], of_member[by_member.key]
    reachable = class_distance < UNREACHABLE
    takes = reachable & (class_distance == member_distance + take)
    gives = (flow.assigned > 0) & reachable & (member_distance == class_distance + give)
    free_of_cost = flow.owned - flow.assigned
    can_take = np.where(takes, np.where(free_of_cost > 0, free_of_cost, ANY_NUMBER), 0)
    can_give = np.where(gives, np.where(free_of_cost < 0, -free_of_cost, flow.assigned), 0)
    missing = flow.quota - flow.load
    room = np.where(of_member == _place(flow), np.where(missing > 0, missing, 1), 0)
    room = np.where(of_member < UNREACHABLE, room, 0)
    while True:
        accepts = room + by_member.sum(can_give)
        offer = _offers(flow, np.minimum(can_take, accepts[by_member.key]))
        if not offer.any():
            return
        taken = np.clip(accepts[by_member.key] - by_member.before(offer), 0, offer)
        arrived = by_member.sum(taken)
        placed = np.minimum(arrived, room)
        pushed_out = (arrived - placed)[by_member.key] - by_member.before(can_give)
        given = np.clip(pushed_out, 0, can_give)
        flow.assigned += taken - given
        flow.open += by_class.sum(given - taken)
        flow.load += placed
        can_take -= taken
        can_give -= given
        room -= placed


def _offers(flow: Flow, at_most: Longs) -> Longs:
    """Share each class's open partitions among the members that may accept some, evenly.

    Whoever comes first gets the odd one; who that is differs from class to class, so that classes
    with the same few subscribers do not all turn to the same one.
    """
    by_class = flow.by_class
    offered = (at_most > 0) & (flow.open[by_class.key] > 0)
    takers = np.maximum(by_class.sum(offered.astype(np.int64)), 1)[by_class.key]
    place = (by_class.before(offered.astype(np.int64)) + flow.turn[by_class.key]) % takers
    left = flow.open[by_class.key]
    share = left // takers + (place < left % takers)
    return np.where(offered, np.minimum(share, at_most), 0)


def _levels(flow: Flow) -> tuple[Longs, Flags]:
    """For each member which of the three it is in, and whether its load is settled."""
    _, distance = _distances(flow)
    middle_or_high = np.where(distance < UNREACHABLE, MIDDLE, HIGH)
    level = np.where(distance < -MUST_FILL // 2, LOW, middle_or_high)
    stuck = np.zeros(len(flow.part), bool)
    stuck[flow.part[flow.by_member.key[flow.open[flow.by_class.key] > 0]]] = True
    return level, (level == MIDDLE) | ((level == HIGH) & ~stuck[flow.part])


def settle_arrow(table: pa.Table) -> pa.Table:
    """``settle`` for a table of edges; its groups are independent of each other.

    Args:
        table: cluster_id string, group_id string, class int, member int, supply bigint,
            owned bigint; whole groups, rows in any order.

    Returns:
        The same rows without ``supply``, with assigned bigint; rows in another order.
    """
    group = np.zeros(table.num_rows, np.int64)
    for name in ("cluster_id", "group_id"):
        codes = pc.dictionary_encode(table[name]).combine_chunks()
        group = group * max(len(codes.dictionary), 1) + codes.indices.to_numpy()
    names = ("class", "member", "supply", "owned")
    class_, member, supply, owned = (table[name].to_numpy() for name in names)
    order = np.lexsort((member, class_, group))
    group, class_, member = (of[order].astype(np.int64) for of in (group, class_, member))
    first = (np.diff(group, prepend=-1) != 0) | (np.diff(class_, prepend=-1) != 0)
    _, member_of = np.unique(group << 32 | member, return_inverse=True)
    class_of, supply = np.cumsum(first) - 1, supply[order][first]
    assigned = settle(class_of, member_of, owned[order], supply, class_[first])
    sorted_table = table.take(pa.array(order)).drop_columns(["supply"])
    return sorted_table.append_column("assigned", pa.array(assigned))
