"""The optimum of the general pass, by min-cost flow (OR-tools), and by enumeration on tiny groups.

Both work on counts: a group is its classes (what may go where, and how many) and, a class and
member, how many partitions that member owns already. Neither shares code with the package.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from itertools import product

import numpy as np
from ortools.graph.python import min_cost_flow


@dataclass(frozen=True)
class Optimum:
    sum_of_squares: int
    moves: int


def least_cost(supply: Mapping[str, int], owned: Mapping[tuple[str, str], int]) -> Optimum:
    """The least sum of squared loads, and the fewest moves at that balance, as one flow.

    ``supply``: partitions of each class; ``owned``: for each (class, subscriber) how many of them
    that subscriber owns. The j-th partition of a member costs 2j - 1, so that its costs add up to
    the square of its load; times more than all moves together, so that balance comes first.
    """
    classes = sorted(supply)
    members = sorted({member for _, member in owned})
    class_node = {name: node for node, name in enumerate(classes)}
    member_node = {name: len(classes) + node for node, name in enumerate(members)}
    sink = len(classes) + len(members)
    total = sum(supply[name] for name in classes if any(name == c for c, _ in owned))
    weight = total + 1

    arcs: list[tuple[int, int, int, int]] = []
    reach = dict.fromkeys(members, 0)
    for (name, member), count in owned.items():
        tail, head = class_node[name], member_node[member]
        arcs.append((tail, head, count, 0))
        arcs.append((tail, head, supply[name], 1))
        reach[member] += supply[name]
    for member in members:
        for load in range(1, reach[member] + 1):
            arcs.append((member_node[member], sink, 1, weight * (2 * load - 1)))
    if not arcs:
        return Optimum(0, 0)

    flow = min_cost_flow.SimpleMinCostFlow()
    columns = np.array(arcs, dtype=np.int64)
    added = flow.add_arcs_with_capacity_and_unit_cost(
        columns[:, 0].astype(np.int32), columns[:, 1].astype(np.int32), columns[:, 2], columns[:, 3]
    )
    subscribed = {name for name, _ in owned}
    for name in subscribed:
        flow.set_node_supply(class_node[name], supply[name])
    flow.set_node_supply(sink, -total)
    status = flow.solve()
    assert status == flow.OPTIMAL, status
    flows = flow.flows(added)
    moves = int(flows[columns[:, 3] == 1].sum())
    return Optimum(int((flows * columns[:, 3]).sum() - moves) // weight, moves)


@dataclass(frozen=True)
class RackOptimum:
    sum_of_squares: int
    moves: int
    crossings: int


def least_cost_with_racks(
    supply: Mapping[str, int],
    owned: Mapping[tuple[str, str], int],
    crossing: Collection[tuple[str, str]],
    *,
    racks_before_moves: bool,
) -> RackOptimum:
    """As ``least_cost``, where each partition of a ``crossing`` pair is a cost of its own too.

    A class is here of partitions with the same subscribers, and the same ones of other racks.
    """
    total = sum(supply[name] for name in {name for name, _ in owned})
    classes, members = sorted({name for name, _ in owned}), sorted({m for _, m in owned})
    node = {name: number for number, name in enumerate([*classes, *members])}
    base = total + 1
    of_move, of_crossing = (1, base) if racks_before_moves else (base, 1)
    arcs: list[tuple[int, int, int, int]] = []
    kinds: list[tuple[int, int, int]] = []
    reach = dict.fromkeys(members, 0)
    for (name, member), count in owned.items():
        crosses = int((name, member) in crossing)
        for moves, capacity in ((0, count), (1, supply[name])):
            cost = moves * of_move + crosses * of_crossing
            arcs.append((node[name], node[member], capacity, cost))
            kinds.append((0, moves, crosses))
        reach[member] += supply[name]
    for member in members:
        for load in range(1, reach[member] + 1):
            arcs.append((node[member], len(node), 1, base * base * (2 * load - 1)))
            kinds.append((2 * load - 1, 0, 0))
    if not arcs:
        return RackOptimum(0, 0, 0)
    flow = min_cost_flow.SimpleMinCostFlow()
    columns = np.array(arcs, dtype=np.int64)
    added = flow.add_arcs_with_capacity_and_unit_cost(
        columns[:, 0].astype(np.int32), columns[:, 1].astype(np.int32), columns[:, 2], columns[:, 3]
    )
    for name in classes:
        flow.set_node_supply(node[name], supply[name])
    flow.set_node_supply(len(node), -total)
    status = flow.solve()
    assert status == flow.OPTIMAL, status
    squares, moves, crossings = flow.flows(added) @ np.array(kinds, dtype=np.int64)
    return RackOptimum(int(squares), int(moves), int(crossings))


def enumerated(supply: Mapping[str, int], owned: Mapping[tuple[str, str], int]) -> Optimum:
    """The same by trying every way to share out every class; for tiny groups only."""
    members = sorted({member for _, member in owned})
    options = []
    for name, count in sorted(supply.items()):
        subscribers = [member for member in members if (name, member) in owned]
        if subscribers:
            options.append(
                [(name, subscribers, share) for share in _shares(count, len(subscribers))]
            )
    best = None
    for choice in product(*options):
        loads = dict.fromkeys(members, 0)
        moves = 0
        for name, subscribers, share in choice:
            for member, count in zip(subscribers, share, strict=True):
                loads[member] += count
                moves += max(0, count - owned[name, member])
        result = (sum(load * load for load in loads.values()), moves)
        best = result if best is None else min(best, result)
    assert best is not None
    return Optimum(*best)


def _shares(count: int, bins: int) -> Iterator[tuple[int, ...]]:
    if bins == 1:
        yield (count,)
        return
    for first in range(count + 1):
        for rest in _shares(count - first, bins - 1):
            yield (first, *rest)
