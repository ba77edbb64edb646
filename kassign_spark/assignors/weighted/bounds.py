"""Lower bounds for every assignment: fractional, by item, by the pigeonhole principle, in moves."""

from typing import NamedTuple

import numpy as np

from kassign_spark.assignors.weighted.fair_levels import find_levels
from kassign_spark.assignors.weighted.problem import Bools, Doubles, Group, Longs, PaddedGroups

HEAVIEST_A_MEMBER = 8
"""Number of heaviest partitions per member that the pigeonhole looks at."""
_BISECTIONS = 45
_MANY_MEMBERS = 400


class LoadBounds(NamedTuple):
    """Bounds on the greatest relative load: [group], the greater of both, and the fractional."""

    load: Doubles
    fractional: Doubles


def load_bounds(batch: PaddedGroups) -> LoadBounds:
    """Return the bounds that need no search."""
    levels = find_levels(batch.class_weight, batch.eligible, batch.capacity)
    largest = np.where(batch.eligible, batch.capacity[:, None, :], 0.0).max(axis=2)
    largest = np.take_along_axis(largest, batch.class_, 1)
    alone = np.where(batch.is_there, batch.weight / np.maximum(largest, 1e-300), 0.0)
    return LoadBounds(np.maximum(levels.bound, alone.max(axis=1)), levels.bound)


def pigeonhole(group: Group, low: float, high: float) -> float:
    """Return the greatest load in [low, high] below which some heaviest partitions find no place.

    Under a load T a member takes of the k heaviest partitions of a closed set at most as many as
    the lightest of these k are that fit under T. If all of the set together take fewer than k, T
    is refuted.

    ``low`` is refuted, or the bound so far, and comes back where no load above it is refuted; some
    assignment has ``high``. Of the group's partitions the heaviest suffice.
    """
    for classes in _closed_sets(group.eligible):
        members = group.eligible[classes].any(axis=0)
        inside = group.weight[classes[group.class_]][: HEAVIEST_A_MEMBER * int(members.sum())]
        if len(inside):
            low = _greatest_refuted(inside, group.capacity[members], low, high)
        if low >= high:
            return high
    return low


def _closed_sets(eligible: Bools) -> list[Bools]:
    """Return sets of classes with few subscribers together: all, and those within a class's."""
    sets = [np.ones(len(eligible), bool)]
    if len(eligible) > 1 and eligible.shape[1] <= _MANY_MEMBERS:
        seen = {sets[0].tobytes()}
        for row in eligible:
            inside = ~(eligible & ~row).any(axis=1)
            if inside.tobytes() not in seen:
                seen.add(inside.tobytes())
                sets.append(inside)
    return sets


def _greatest_refuted(weight: Doubles, capacity: Doubles, low: float, high: float) -> float:
    sums = np.concatenate([[0.0], np.cumsum(weight)])
    sizes, counts = np.unique(capacity, return_counts=True)
    if len(sizes) == 1:
        k = np.arange(1, len(sums))
        first = k - -(-k // counts[0])
        return min(max(low, float((sums[k] - sums[first]).max() / sizes[0])), high)

    def is_refuted(load: float) -> bool:
        # The slack of 1e-12 is for T * C, which is rounded; sums are exact.
        return bool(len(short_of(sums, load * sizes * (1 + 1e-12), counts)))

    if not is_refuted(low + (high - low) * 2.0**-20):
        return low
    for _ in range(_BISECTIONS):
        middle = low + (high - low) / 2
        if is_refuted(middle):
            low = middle
        else:
            high = middle
    return low


def short_of(sums: Doubles, sizes: Doubles, counts: Longs) -> Longs:
    """Return the numbers of heaviest partitions for which members have too few places.

    ``sums`` are running ones of weights, from 0; of members ``counts`` may have up to ``sizes``.
    """
    k = np.arange(1, len(sums))
    room = np.zeros(len(k), np.int64)
    for size, count in zip(sizes, counts, strict=True):
        first = np.searchsorted(sums, sums[k] - size)
        room += count * (k - np.minimum(first, k))
    return k[room < k]


def moves_bound(batch: PaddedGroups, limit: Doubles) -> Longs:
    """Return [group]: the least number of partitions that must leave members above ``limit``.

    ``limit``: [group, member], the weight that a member may have.
    """
    groups, members = limit.shape
    moves = np.zeros(groups, np.int64)
    for m in range(members):
        mine = batch.home == m
        running = np.cumsum(np.where(mine, batch.weight, 0.0), axis=1)
        excess = running[:, -1] - limit[:, m] if running.shape[1] else -limit[:, m]
        before = np.where(mine, running - batch.weight, np.inf)
        moves += np.where(excess > 0, (before < excess[:, None]).sum(axis=1), 0)
    return moves
