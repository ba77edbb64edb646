"""Plans for one large group: bounds, parts, reach, stay, shed, deal, mend, go home."""

from typing import NamedTuple

import numpy as np

from kassign_spark.assignors.weighted.answer import GroupMeasures, WeightedPlan, answer_of
from kassign_spark.assignors.weighted.bounded import breaks
from kassign_spark.assignors.weighted.bounds import load_bounds, pigeonhole
from kassign_spark.assignors.weighted.bulk import (
    MemberPartitions,
    count_to_shed,
    deal,
    go_home,
    group_by_member,
    shed,
)
from kassign_spark.assignors.weighted.counts import best_counts, count_difference, counts_decide
from kassign_spark.assignors.weighted.curve import Point
from kassign_spark.assignors.weighted.mend import mend
from kassign_spark.assignors.weighted.options import Limit
from kassign_spark.assignors.weighted.parts import Parts, find_parts, limits_by_part, weights_within
from kassign_spark.assignors.weighted.problem import (
    Doubles,
    Group,
    Longs,
    stack,
    sums_of,
)
from kassign_spark.assignors.weighted.small import PlanOptions

_TIGHTER = (0.02, 0.005, 0.001, 0.0003)
_CLOSE = 1.0003
_NEARLY = 1.002
_DOMINANT_A_MEMBER = 2
_POINTS = 12
_REFINEMENTS = 8


class LargeGroupBounds(NamedTuple):
    """Bounds of a large group before moves are considered; loads are relative.

    Attributes:
        bound: on the maximum.
        parts: what each member is held to, of this one group.
        dominant: partitions.
        owner: the best loads that were found, and whose they are.
        load: weights of members in it.
        owned: what members have now.
        movable: the same without dominant partitions that have their member for themselves.
        by_cost: whether moves cost differently, so that not their number counts.
    """

    bound: float
    parts: Parts
    dominant: tuple[int, ...]
    owner: Longs
    load: Doubles
    owned: MemberPartitions
    movable: MemberPartitions
    by_cost: bool


def group_bounds(group: Group) -> LargeGroupBounds:
    """Find the bounds, the parts and the best loads of a large group."""
    members = len(group.capacity)
    class_weight = sums_of(group.class_, group.weight, len(group.eligible))
    # Only the heaviest partitions can be dominant.
    few = group.heaviest(_DOMINANT_A_MEMBER * members)
    batch = stack([few])._replace(class_weight=class_weight[None])
    bounds, parts = load_bounds(batch), find_parts(batch, many_at_once=True)
    bound = float(bounds.load[0])
    owner, load = _reach(group, parts.level[0])
    if float((load / group.capacity).max()) > bound * _CLOSE and parts.alone.any():
        as_one = _reach(group, np.full(members, bound))
        if (as_one[1] / group.capacity).max() < (load / group.capacity).max():
            owner, load = as_one
            parts = parts.as_one(np.ones(1, bool), bounds.fractional)
    if counts_decide(group):
        owner = best_counts(group)
        load = sums_of(owner, group.weight, members)
    most = float((load / group.capacity).max())
    if most > bound:
        bound = pigeonhole(group, bound, most)
    heavy = np.flatnonzero(parts.dominant[0])
    owned = movable = group_by_member(group.home, members)
    if len(heavy):
        home = group.home.copy()
        home[heavy[(home[heavy] >= 0) & parts.alone[0, home[heavy]]]] = -1
        movable = group_by_member(home, members)
    by_cost = len(np.unique(group.cost)) > 1
    return LargeGroupBounds(
        bound, parts, tuple(heavy.tolist()), owner, load, owned, movable, by_cost
    )


def plan_large(group: Group, options: PlanOptions) -> WeightedPlan:
    """Plan one large group."""
    bounds = group_bounds(group)
    relative = relative_limits(options.limit, group, bounds)
    limit = weights_within(relative, group.capacity)
    needed = int(count_to_shed(group, group.loads(group.home), limit, bounds.owned).sum())
    difference, least = options.bounds.max_count_difference, -1
    if difference is None:
        owner = _plan_within(group, bounds, limit)
        # Of equal weights the best counts are known, with the fewest moves that they take.
        even_first = options.limit.tolerance == 0
        if even_first and (counts_decide(group) or _excess(group, owner, limit) > 0):
            owner = bounds.owner
    else:
        # Exchanges one for one keep the best counts as they are.
        owner = best_counts(group)
        load = sums_of(owner, group.weight, len(group.capacity))
        least = count_difference(group, owner)
        mend(group, owner, load, limit, swaps_only=True)
    freely = None
    if _breaks(group, owner, options):
        freely = owner
        owner = _best_within_bounds(group, bounds, limit, options)
    level, common = bounds.parts.level[0], group.eligible.any(axis=0) & ~bounds.parts.alone[0]
    shown = int(np.argmax(np.where(common, level, -1.0)))
    measured = GroupMeasures(
        limit=limit,
        fair_load=float(level[shown]),
        load_bound=bounds.bound,
        shown_limit=float(relative[shown]),
        best_load=float((bounds.load / group.capacity).max()),
        moves_bound=needed,
        dominant=bounds.dominant,
        max_count_difference=difference,
        least_difference=least,
    )
    return answer_of(group, owner, measured, freely)


def _plan_within(group: Group, bounds: LargeGroupBounds, limit: Doubles) -> Longs:
    """Keep members within limits with few moves, from what they own now; returns the owners."""
    load = group.loads(group.home)
    shed_partitions = shed(group, load, limit, bounds.movable, by_cost=bounds.by_cost)
    owner = group.home.copy()
    np.subtract.at(load, owner[shed_partitions], group.weight[shed_partitions])
    owner[shed_partitions] = -1
    deal(group, owner, load, np.flatnonzero(owner < 0), limit)
    mend(group, owner, load, limit)
    go_home(group, owner, load, limit)
    present_excess = _excess(group, group.home, limit)
    if not (group.home < 0).any() and _excess(group, owner, limit) >= present_excess:
        owner = group.home.copy()
    return owner


def curve_large(group: Group, bounds: LargeGroupBounds) -> list[Point]:
    """Return the points of fewest moves against the greatest load, relative to the best one."""
    best = float((bounds.load / group.capacity).max())
    limit = best * group.capacity
    points = [_stay(group, limit)]
    top = points[0].ratio
    factors = [max(top ** (j / (_POINTS - 2)), _CLOSE) for j in range(_POINTS - 2)]
    for factor in factors if top > _CLOSE else []:
        owner = _plan_within(group, bounds, np.floor(limit * factor * (1 + 1e-12)))
        points.append(_point(group, owner, limit))
    reached = _point(group, bounds.owner, limit)
    if min(point.ratio for point in points) > reached.ratio * _NEARLY:
        points.append(reached)
    kept: list[Point] = []
    for point in sorted(points, key=lambda p: (p.moves, p.ratio)):
        if not kept or point.ratio < kept[-1].ratio * (1 - 1e-12):
            kept.append(point)
    return kept


def _stay(group: Group, limit: Doubles) -> Point:
    load = group.loads(group.home)
    owner = group.home.copy()
    free = np.flatnonzero(owner < 0)
    # As low as the fullest owner allows; what is free fits below that, or sets the level itself.
    top = np.maximum(float((load / np.maximum(limit, 1.0)).max()), 1.0) * limit
    deal(group, owner, load, free, top)
    return _point(group, owner, limit)


def _point(group: Group, owner: Longs, limit: Doubles) -> Point:
    away = group.away(owner)
    ratio = float((group.loads(owner) / np.maximum(limit, 1.0)).max())
    return Point(owner, int(away.sum()), float(group.cost[away].sum()), ratio, 0.0)


def _best_within_bounds(
    group: Group, bounds: LargeGroupBounds, limit: Doubles, options: PlanOptions
) -> Longs:
    """Return the lowest load within the bounds on moves: a point of the curve, found by halving."""
    best = _stay(group, limit)
    low, high = 1.0, max(best.ratio, 1.0)
    for _ in range(_REFINEMENTS):
        middle = (low * high) ** 0.5
        owner = _plan_within(group, bounds, np.floor(limit * middle))
        point = _point(group, owner, limit)
        if _breaks(group, owner, options):
            low = middle
        else:
            high = middle
            if point.ratio < best.ratio:
                best = point
    return best.owner


def _breaks(group: Group, owner: Longs, options: PlanOptions) -> bool:
    return bool(breaks(options.bounds, group.away(owner), group.weight, group.power))


def _reach(group: Group, level: Doubles) -> tuple[Longs, Doubles]:
    """Deal everything from nothing, then mend under ever lower limits."""
    members = len(group.capacity)
    fair = np.maximum(level, level.max() * 1e-6) * group.capacity
    owner, load = np.full(len(group.weight), -1), np.zeros(members)
    deal(group, owner, load, np.arange(len(owner)), fair * _CLOSE)
    best, best_most = owner.copy(), float((load / fair).max())
    for more in _TIGHTER:
        if best_most <= _CLOSE:
            break
        mend(group, owner, load, np.floor(fair * (1 + more)))
        most = float((load / fair).max())
        if most < best_most:
            best, best_most = owner.copy(), most
    return best, sums_of(best, group.weight, members)


def relative_limits(limit: Limit, group: Group, bounds: LargeGroupBounds) -> Doubles:
    """Return [member]: the greatest relative load that each may have."""
    load, power = bounds.load / group.capacity, np.array([group.power])
    relative: Doubles = limits_by_part(limit, bounds.parts, load[None], power)[0]
    return relative


def _excess(group: Group, owner: Longs, limit: Doubles) -> float:
    """Sum up by how much members are above their limits."""
    return float(np.maximum(group.loads(owner) - limit, 0.0).sum())
