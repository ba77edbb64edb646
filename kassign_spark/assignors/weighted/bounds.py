"""What no assignment can beat: the fractional bound, the item bound, the pigeonhole, and moves."""

from typing import NamedTuple

import numpy as np

from kassign_spark.assignors.weighted.levels import find_levels
from kassign_spark.assignors.weighted.problem import Batch, Bools, Doubles, Longs

_HEAVIEST_A_MEMBER = 8
"""The pigeonhole looks at so many of the heaviest partitions a member."""
_BISECTIONS = 45
_MANY_MEMBERS = 400


class LoadBounds(NamedTuple):
    """Bounds on the greatest relative load of each group, and what proves the greatest of them.

    Attributes:
        load: [group], the fractional and the item bound.
        fractional: [group].
        closed: [group, member], the set that proves ``fractional``.
        item: [group].
        heaviest: [group], the partition that proves ``item``.
    """

    load: Doubles
    fractional: Doubles
    closed: Bools
    item: Doubles
    heaviest: Longs


def load_bounds(batch: Batch) -> LoadBounds:
    """The bounds that need no search."""
    levels = find_levels(batch.class_weight, batch.eligible, batch.capacity)
    largest = np.where(batch.eligible, batch.capacity[:, None, :], 0.0).max(axis=2)
    largest = np.take_along_axis(largest, batch.class_, 1)
    alone = np.where(batch.is_there, batch.weight / np.maximum(largest, 1e-300), 0.0)
    heaviest = np.argmax(alone, axis=1)
    item = alone[np.arange(len(alone)), heaviest]
    return LoadBounds(np.maximum(levels.bound, item), levels.bound, levels.closed, item, heaviest)


def pigeonhole(
    weight: Doubles, class_: Longs, eligible: Bools, capacity: Doubles, low: float, high: float
) -> float:
    """The greatest load in [low, high] below which some heaviest partitions find no place.

    Under a load T a member takes of the k heaviest partitions of a closed set at most as many as
    the lightest of these k are that fit under T. If all of the set together take fewer than k, T
    is refuted.

    Args:
        weight: of one group's partitions, descending.
        class_: of each.
        eligible: [class, member].
        capacity: of each member.
        low: a load that is refuted, or the bound so far.
        high: a load that some assignment has.

    Returns:
        ``low``, or a higher bound; never above ``high``.
    """
    for classes in _closed_sets(eligible):
        members = eligible[classes].any(axis=0)
        inside = weight[np.isin(class_, np.flatnonzero(classes))]
        most = min(len(inside), _HEAVIEST_A_MEMBER * int(members.sum()))
        if most:
            low = _refuted(inside[:most], capacity[members], low, high)
        if low >= high:
            return high
    return low


def _closed_sets(eligible: Bools) -> list[Bools]:
    """Sets of classes whose subscribers are few together: all, and those within a class's."""
    sets = [np.ones(len(eligible), bool)]
    if len(eligible) > 1 and eligible.shape[1] <= _MANY_MEMBERS:
        seen = {sets[0].tobytes()}
        for row in eligible:
            inside = ~(eligible & ~row).any(axis=1)
            if inside.tobytes() not in seen:
                seen.add(inside.tobytes())
                sets.append(inside)
    return sets


def _refuted(weight: Doubles, capacity: Doubles, low: float, high: float) -> float:
    sums = np.concatenate([[0.0], np.cumsum(weight)])
    sizes, counts = np.unique(capacity, return_counts=True)
    if len(sizes) == 1:
        k = np.arange(1, len(sums))
        first = k - -(-k // counts[0])
        return min(max(low, float((sums[k] - sums[first]).max() / sizes[0])), high)
    if not _is_refuted(sums, sizes, counts, low + (high - low) * 2.0**-20):
        return low
    for _ in range(_BISECTIONS):
        middle = low + (high - low) / 2
        if _is_refuted(sums, sizes, counts, middle):
            low = middle
        else:
            high = middle
    return low


def _is_refuted(sums: Doubles, sizes: Doubles, counts: Longs, load: float) -> bool:
    k = np.arange(1, len(sums))
    room = np.zeros(len(k), np.int64)
    for size, count in zip(sizes, counts, strict=True):
        # The slack of 1e-12 is for T * C, which is rounded; sums are exact.
        first = np.searchsorted(sums, sums[k] - load * size * (1 + 1e-12))
        room += count * (k - np.minimum(first, k))
    return bool((room < k).any())


def moves_bound(batch: Batch, limit: Doubles) -> tuple[Longs, Doubles]:
    """How many partitions, and how much weight, must leave the members above their limit.

    Args:
        batch: groups.
        limit: [group, member], the weight that a member may have.

    Returns:
        [group] the least number of moves; [group] the least moved weight.
    """
    groups, members = limit.shape
    moves, moved = np.zeros(groups, np.int64), np.zeros(groups)
    owned = batch.home >= 0
    for m in range(members):
        running = np.cumsum(np.where(owned & (batch.home == m), batch.weight, 0.0), axis=1)
        excess = running[:, -1] - limit[:, m] if running.shape[1] else -limit[:, m]
        over = excess > 0
        mine = owned & (batch.home == m)
        before = np.where(mine, running - batch.weight, np.inf)
        moves += np.where(over, (before < excess[:, None]).sum(axis=1), 0)
        moved += np.where(over, excess, 0.0)
    return moves, moved
