"""The entrance to the kernels: groups in, plans and curves out, of any size."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from kassign_spark.assignors.weighted.answer import (
    NOTHING_TO_DO,
    WITHIN_LIMIT,
    GroupMeasures,
    WeightedPlan,
    answer_of,
)
from kassign_spark.assignors.weighted.bounded import CURVE_KICKS
from kassign_spark.assignors.weighted.counts import best_counts, count_difference, deal_by_count
from kassign_spark.assignors.weighted.curve import Point, find_curve
from kassign_spark.assignors.weighted.large import curve_large, group_bounds, plan_large
from kassign_spark.assignors.weighted.problem import Group, Longs
from kassign_spark.assignors.weighted.small import PlanOptions, batch_bounds, plan_small, unit_costs

LARGE = 400
"""Groups of more partitions go by bulk steps."""
_ELEMENTS = 4_000_000
_MOST_TOGETHER = 500
_WORTH = 0.05
"""A move is worth it that lowers the greatest load by this share of the fair load."""


class CurvePoint(NamedTuple):
    """A point of a group's curve: the lowest load found with this number of moves.

    Attributes:
        moves: partitions that leave their owner.
        moved_weight: what they weigh.
        max_load: the greatest relative load.
        skew: that by the fair load of the whole group.
        count_difference: between members' numbers of partitions.
        bound: no plan has a lower greatest load, whatever it moves.
        is_knee: the last point whose moves are worth it.
    """

    moves: int
    moved_weight: float
    max_load: float
    skew: float
    count_difference: int
    bound: float
    is_knee: bool


def plan_groups(groups: Sequence[Group], options: PlanOptions) -> list[WeightedPlan]:
    """Plan groups, each on its own; those of similar size side by side.

    Partitions without weight are free to stay, and new ones go by count, unless counts are bounded.
    """
    with_counts = options.bounds.max_count_difference is not None
    has_weight = [bool((group.weight > 0).any()) for group in groups]
    answers = {i: _plan_by_counts(groups[i]) for i, weighs in enumerate(has_weight) if not weighs}
    weighted = [i for i, weighs in enumerate(has_weight) if weighs]
    rest = [groups[i] if with_counts else _weighted_part(groups[i]) for i in weighted]
    for rows in batches(rest):
        chunk = [rest[row] for row in rows]
        large = len(chunk[0].weight) > LARGE
        plans = [plan_large(chunk[0], options)] if large else plan_small(chunk, options)
        for row, answer in zip(rows, plans, strict=True):
            answers[weighted[row]] = _with_idle(groups[weighted[row]], answer)
    return [answers[i] for i in range(len(groups))]


def curves_of(groups: Sequence[Group], effort: str) -> list[list[CurvePoint]]:
    """Trace the curve of each group; those without weight have none."""
    curves: list[list[CurvePoint]] = [[] for _ in groups]
    weighted = [i for i, group in enumerate(groups) if (group.weight > 0).any()]
    rest = [_weighted_part(groups[i]) for i in weighted]
    for rows in batches(rest):
        chunk = [rest[row] for row in rows]
        if len(chunk[0].weight) > LARGE:
            bounds = group_bounds(chunk[0])
            bounds_and_points = [(bounds.bound, curve_large(chunk[0], bounds))]
        else:
            bounds_and_points = _small_curves(chunk, effort)
        for row, (bound, points) in zip(rows, bounds_and_points, strict=True):
            curves[weighted[row]] = _curve_of(groups[weighted[row]], bound, points)
    return curves


def _small_curves(groups: Sequence[Group], effort: str) -> list[tuple[float, list[Point]]]:
    bounds = batch_bounds(groups, effort)
    batch, reached = bounds.batch, bounds.reached
    limit, cost = reached.most[:, None] * batch.capacity, unit_costs(batch)
    curves = find_curve(batch, limit, reached.state.owner, cost, CURVE_KICKS[effort])
    return list(zip(bounds.bound.tolist(), curves, strict=True))


def _curve_of(group: Group, bound: float, points: Sequence[Point]) -> list[CurvePoint]:
    """Measure the points of a group's curve, and its knee: where more stop being worth it."""
    fair = group.fair_load()
    curve: list[CurvePoint] = []
    for point in points:
        done = int((group.weight > 0).sum())
        owner = np.concatenate([point.owner[:done], group.home[done:]])
        _deal_idle(group, owner)
        load = group.loads(owner)
        most = float((load / group.capacity).max())
        away = group.away(owner)
        curve.append(
            CurvePoint(
                int(away.sum()),
                float(group.weight[away].sum()) / group.power,
                most / group.power,
                most / fair,
                count_difference(group, owner),
                min(bound, most) / group.power,
                False,
            )
        )
    knee = 0
    for i, (before, point_) in enumerate(pairwise(curve), start=1):
        moved = max(point_.moves - before.moves, 1)
        if before.skew - point_.skew >= _WORTH * moved:
            knee = i
    return [point._replace(is_knee=i == knee) for i, point in enumerate(curve)]


def batches(groups: Sequence[Group]) -> Iterator[list[int]]:
    """Put groups of similar size together; a large one stays alone."""
    sizes = [(len(g.weight), len(g.capacity), len(g.eligible)) for g in groups]
    rounded = [_size_class(partitions, members) for partitions, members, _ in sizes]
    batch: list[int] = []
    most: tuple[int, ...] = (0, 0, 0)
    for i in sorted(range(len(groups)), key=rounded.__getitem__):
        wider = tuple(map(max, most, sizes[i]))
        elements = (len(batch) + 1) * wider[0] * max(wider)
        full = elements > _ELEMENTS or len(batch) >= _MOST_TOGETHER
        if batch and (full or sizes[i][0] > LARGE or rounded[i] != rounded[batch[0]]):
            yield batch
            batch, wider = [], sizes[i]
        batch.append(i)
        most = wider
    if batch:
        yield batch


def _size_class(partitions: int, members: int) -> tuple[int, int]:
    """Return the sizes by which groups share a batch; of partitions about a half apart."""
    return int(np.ceil(np.log(partitions + 1) * 2.5)), int(np.ceil(np.log(members + 1)))


def _weighted_part(group: Group) -> Group:
    """Return the partitions that have weight, which come first."""
    return group.heaviest(int((group.weight > 0).sum()))


def _with_idle(group: Group, answer: WeightedPlan) -> WeightedPlan:
    """Put partitions without weight back: with their owner, or by count."""
    done = len(answer.owner)
    if done == len(group.weight):
        return answer
    owner = np.concatenate([answer.owner, group.home[done:]])
    _deal_idle(group, owner)
    verdict = answer.verdict
    if verdict == NOTHING_TO_DO and (group.home[done:] < 0).any():
        verdict = WITHIN_LIMIT
    difference = count_difference(group, owner)
    return replace(answer, owner=owner, verdict=verdict, count_difference=difference)


def _deal_idle(group: Group, owner: Longs) -> None:
    """Deal unowned partitions without weight by count: fills in ``owner``."""
    free = np.flatnonzero(owner < 0)
    if len(free):
        deal_by_count(group.class_, group.eligible, group.counts(owner), free, owner)


def _plan_by_counts(group: Group) -> WeightedPlan:
    """Plan a group without weight: best balance of counts, then the fewest moves."""
    owner = best_counts(group)
    weightless = GroupMeasures(
        limit=np.zeros(len(group.capacity)),
        fair_load=0.0,
        load_bound=0.0,
        shown_limit=0.0,
        best_load=0.0,
        moves_bound=int(group.away(owner).sum()),
    )
    return replace(answer_of(group, owner, weightless), by_count=True)
