"""Bounds that come before the limit: on moves, on moved weight, on the difference of counts."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from kassign_spark.assignors.weighted.counts import best_counts, count_difference
from kassign_spark.assignors.weighted.curve import Point, find_curve
from kassign_spark.assignors.weighted.fewest import Planned, find_fewest, is_better, judge
from kassign_spark.assignors.weighted.objective import within
from kassign_spark.assignors.weighted.options import Bounds
from kassign_spark.assignors.weighted.problem import Batch, Bools, Doubles, Group, Longs
from kassign_spark.assignors.weighted.steps import state_of

CURVE_KICKS = {"fast": 0, "default": 12, "thorough": 40}
_ROUNDING = 1 + 1e-12


class Windows(NamedTuple):
    """How many partitions members should have.

    Attributes:
        low: [group, 1].
        high: [group, 1].
        least: [group], the least difference of counts that there can be.
    """

    low: Doubles
    high: Doubles
    least: Longs

    def take(self, groups: Longs) -> "Windows":
        """Some of the groups."""
        return Windows(self.low[groups], self.high[groups], self.least[groups])

    @property
    def counts(self) -> tuple[Doubles, Doubles]:
        """The least and the greatest number."""
        return self.low, self.high


def plan_with_counts(
    groups: Sequence[Group],
    batch: Batch,
    limit: Doubles,
    cost: Doubles,
    starts: list[Longs],
    difference: int,
    kicks: int,
) -> tuple[Planned, Windows]:
    """Plan within every window of counts around the mean, and keep each group's best plan.

    Where subscriptions make the difference unreachable, it is the least that they allow.
    """
    exact = np.zeros(batch.home.shape, np.int64)
    least = np.zeros(len(groups), np.int64)
    for row, group in enumerate(groups):
        owner = best_counts(group)
        exact[row, : len(owner)] = owner
        least[row] = count_difference(
            group.eligible, np.bincount(owner, minlength=len(group.capacity))
        )
    allowed = np.maximum(difference, least)
    members = np.maximum(batch.eligible.any(axis=1).sum(axis=1), 1)
    partitions = batch.is_there.sum(axis=1)
    lowest = np.maximum(-(-partitions // members) - allowed, 0)
    highest = partitions // members
    best: Planned | None = None
    low = np.zeros((len(groups), 1))
    for shift in range(int((highest - lowest).max(initial=0)) + 1):
        first = np.minimum(lowest + shift, highest)[:, None].astype(float)
        objective = within(batch, limit, cost)
        objective = objective._replace(least=first, most=first + allowed[:, None])
        new = find_fewest(batch, objective, [*starts, exact], np.zeros(len(groups)), kicks)
        better = np.arange(len(groups))
        if best is None:
            best = new
        else:
            better = np.flatnonzero(is_better(new, best))
            best.put(better, new.take(better))
        low[better] = first[better]
    assert best is not None
    return best, Windows(low, low + allowed[:, None], least)


def over_bounds(batch: Batch, planned: Planned, bounds: Bounds, power: Doubles) -> Bools:
    """[group]: whether the plan breaks a bound on moves."""
    over = np.zeros(len(planned.moves), bool)
    if bounds.max_moves is not None:
        over |= planned.moves > bounds.max_moves
    if bounds.max_moved_weight is not None:
        away = batch.is_there & (batch.home >= 0) & (planned.state.owner != batch.home)
        moved = np.where(away, batch.weight, 0.0).sum(axis=1)
        over |= moved > bounds.max_moved_weight * power * _ROUNDING
    return over


def keep_bounds(
    batch: Batch,
    limit: Doubles,
    reached: Longs,
    bounds: Bounds,
    power: Doubles,
    windows: Windows | None,
    effort: str,
) -> Planned:
    """The best plans within the bounds on moves, as points of the curve.

    Args:
        batch: groups whose plans break the bounds.
        limit: [group, member], the weight it may have.
        reached: [group, partition], owners that come near the limit.
        bounds: on moves, or moved weight.
        power: [group], by what weights were multiplied.
        windows: of counts.
        effort: how long to search.
    """
    counts = None if windows is None else windows.counts
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
        owner[row] = _best_point(batch, row, points, bounds, float(power[row])).owner
    objective = within(batch, limit, np.ones(batch.weight.shape))
    if windows is not None:
        objective = objective._replace(least=windows.low, most=windows.high)
    return judge(batch, objective, state_of(batch, owner))


def _best_point(batch: Batch, row: int, points: list[Point], bounds: Bounds, power: float) -> Point:
    allowed: list[tuple[float, float, int, float, int, Point]] = []
    for point in points:
        away = batch.is_there[row] & (batch.home[row] >= 0) & (point.owner != batch.home[row])
        moved = float(batch.weight[row][away].sum())
        if bounds.max_moves is not None and point.moves > bounds.max_moves:
            continue
        if bounds.max_moved_weight is not None and (
            moved > bounds.max_moved_weight * power * _ROUNDING
        ):
            continue
        allowed.append((point.outside, point.ratio, point.moves, moved, len(allowed), point))
    assert allowed, "no move at all is a plan"
    return min(allowed)[-1]
