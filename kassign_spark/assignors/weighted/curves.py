"""Curves of groups of any size, with the knee: where more moves stop being worth it."""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from kassign_spark.assignors.weighted.bounded import CURVE_KICKS
from kassign_spark.assignors.weighted.counts import count_difference
from kassign_spark.assignors.weighted.curve import Point, find_curve
from kassign_spark.assignors.weighted.large import curve_large
from kassign_spark.assignors.weighted.large import look as look_large
from kassign_spark.assignors.weighted.plan import LARGE, batches, deal_idle, weighted_part
from kassign_spark.assignors.weighted.problem import Group
from kassign_spark.assignors.weighted.small import look, unit_costs

_WORTH = 0.05
"""A move is worth it that lowers the greatest load by this share of the fair load."""


class CurvePoint(NamedTuple):
    """A point of a group's curve: the lowest load that was found with so many moves.

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


def curves_of(groups: Sequence[Group], effort: str) -> list[list[CurvePoint]]:
    """Trace the curve of each group; those without weight have none."""
    curves: list[list[CurvePoint]] = [[] for _ in groups]
    at = [i for i, group in enumerate(groups) if (group.weight > 0).any()]
    rest = [weighted_part(groups[i]) for i in at]
    for rows in batches(rest):
        some = [rest[row] for row in rows]
        if len(some[0].weight) > LARGE:
            seen = look_large(some[0])
            found = [(seen.bound, curve_large(some[0], seen))]
        else:
            found = _small(some, effort)
        for row, (bound, points) in zip(rows, found, strict=True):
            curves[at[row]] = measured(groups[at[row]], bound, points)
    return curves


def _small(groups: Sequence[Group], effort: str) -> list[tuple[float, list[Point]]]:
    found = look(groups, effort)
    batch, reached = found.batch, found.reached
    limit, cost = reached.most[:, None] * batch.capacity, unit_costs(batch)
    curves = find_curve(batch, limit, reached.state.owner, cost, CURVE_KICKS[effort])
    return list(zip(found.bound.tolist(), curves, strict=True))


def measured(group: Group, bound: float, points: Sequence[Point]) -> list[CurvePoint]:
    """Measure the points of a group's curve, and find its knee."""
    serves = group.eligible.any(axis=0)
    total = float(group.loads(np.zeros(len(group.weight), np.int64)).sum())
    fair = total / float(group.capacity[serves].sum())
    found: list[CurvePoint] = []
    for point in points:
        done = int((group.weight > 0).sum())
        owner = np.concatenate([point.owner[:done], group.home[done:]])
        deal_idle(group, owner)
        load = group.loads(owner)
        most = float((load / group.capacity).max())
        away = group.away(owner)
        found.append(
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
    for i, (before, point_) in enumerate(pairwise(found), start=1):
        moved = max(point_.moves - before.moves, 1)
        if before.skew - point_.skew >= _WORTH * moved:
            knee = i
    return [point._replace(is_knee=i == knee) for i, point in enumerate(found)]
