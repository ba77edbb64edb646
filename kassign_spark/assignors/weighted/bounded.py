"""Bounds that come before the limit: on moves, on moved weight, on the difference of counts."""

from collections.abc import Sequence

import numpy as np

from kassign_spark.assignors.weighted.counts import best_counts, count_difference
from kassign_spark.assignors.weighted.curve import Point, find_curve
from kassign_spark.assignors.weighted.fewest import PlannedStates, find_fewest, is_better, judge
from kassign_spark.assignors.weighted.objective import within
from kassign_spark.assignors.weighted.options import Bounds
from kassign_spark.assignors.weighted.problem import Bools, Doubles, Group, Longs, PaddedGroups
from kassign_spark.assignors.weighted.steps import state_of

CURVE_KICKS = {"fast": 0, "default": 12, "thorough": 40}
_ROUNDING = 1 + 1e-12


def plan_with_counts(
    groups: Sequence[Group],
    batch: PaddedGroups,
    limit: Doubles,
    cost: Doubles,
    starts: list[Longs],
    difference: int,
    kicks: int,
) -> tuple[PlannedStates, Doubles, Longs]:
    """Plan within every window of counts around the mean, and keep each group's best plan.

    Where subscriptions make the difference unreachable, it is the least that they allow.

    Returns:
        the plans; [group, 2] their windows, as in ``Objective.counts``; and [group] the least
        difference of counts that there can be.
    """
    exact = np.zeros(batch.home.shape, np.int64)
    least = np.zeros(len(groups), np.int64)
    for row, group in enumerate(groups):
        owner = best_counts(group)
        exact[row, : len(owner)] = owner
        least[row] = count_difference(group, owner)
    allowed = np.maximum(difference, least)
    members = np.maximum(batch.eligible.any(axis=1).sum(axis=1), 1)
    partitions = batch.is_there.sum(axis=1)
    lowest = np.maximum(-(-partitions // members) - allowed, 0)
    highest = partitions // members
    best: PlannedStates | None = None
    counts = np.zeros((len(groups), 2))
    for shift in range(int((highest - lowest).max(initial=0)) + 1):
        first = np.minimum(lowest + shift, highest)
        window = np.stack([first, first + allowed], axis=1).astype(float)
        objective = within(batch, limit, cost, counts=window)
        new = find_fewest(batch, objective, [*starts, exact], np.zeros(len(groups)), kicks)
        is_first = np.full(len(groups), best is None)
        best = best or new
        better = np.flatnonzero(is_first | is_better(new, best))
        best.put(better, new.take(better))
        counts[better] = window[better]
    assert best is not None
    return best, counts, least


def breaks(bounds: Bounds, away: Bools, weight: Doubles, power: Doubles | float) -> Bools:
    """Return [...]: whether plans, by moved partitions [..., partition], break a bound on moves.

    ``power``: by what the weights were multiplied.
    """
    over = np.zeros(away.shape[:-1], bool)
    if bounds.max_moves is not None:
        over |= away.sum(axis=-1) > bounds.max_moves
    if bounds.max_moved_weight is not None:
        moved = np.where(away, weight, 0.0).sum(axis=-1)
        over |= moved > bounds.max_moved_weight * power * _ROUNDING
    return over


def keep_bounds(
    batch: PaddedGroups,
    limit: Doubles,
    reached: Longs,
    bounds: Bounds,
    power: Doubles,
    counts: Doubles | None,
    effort: str,
) -> PlannedStates:
    """Return the best plans within the bounds on moves, as points of the curve.

    ``limit`` is [group, member], the weight it may have; ``reached`` [group, partition], owners
    that come near it; ``power`` [group], by what weights were multiplied.
    """
    costs = []
    if bounds.max_moves is not None:
        costs.append(np.ones(batch.weight.shape))
    if bounds.max_moved_weight is not None:
        costs.append(batch.weight / np.maximum(batch.weight.max(axis=1), 1.0)[:, None])
    kicks = CURVE_KICKS[effort]
    curves = [find_curve(batch, limit, reached, cost, kicks, counts) for cost in costs]
    owner = np.zeros(batch.home.shape, np.int64)
    for row in range(len(limit)):
        points = [point for curve in curves for point in curve[row]]
        owner[row] = _best_point(points, batch.home[row], batch.weight[row], bounds, power[row])
    objective = within(batch, limit, np.ones(batch.weight.shape), counts=counts)
    return judge(batch, objective, state_of(batch, owner))


def _best_point(
    points: list[Point], home: Longs, weight: Doubles, bounds: Bounds, power: float
) -> Longs:
    """Return the owners of the best point that keeps the bounds."""

    def away(point: Point) -> Bools:
        left: Bools = (home >= 0) & (point.owner != home)
        return left

    kept = [point for point in points if not breaks(bounds, away(point), weight, power)]
    assert kept, "no move at all is a plan"
    return min(kept, key=lambda p: (p.outside, p.ratio, p.moves, weight[away(p)].sum())).owner
