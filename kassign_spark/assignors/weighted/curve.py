"""The trade-off: how low the greatest load gets by number of moves.

The engine answers the other way round, the fewest moves under a limit. So limits are spread between
the present and the best, then put between answers that skip numbers of moves, and what no other
answer beats is kept.
"""

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from kassign_spark.assignors.weighted.fewest import PlannedStates, find_fewest, judge
from kassign_spark.assignors.weighted.objective import reach, within
from kassign_spark.assignors.weighted.problem import FAR, Doubles, Longs, PaddedGroups, last_sum
from kassign_spark.assignors.weighted.reach import find_reach

_GRID = 12
_REFINEMENTS = 3
_MORE = 10
_BELOW = 1 - 1e-9
_ROWS = 2_000


class Point(NamedTuple):
    """A plan on the curve.

    Attributes:
        owner: [partition].
        moves: partitions that leave their owner.
        cost: what they cost.
        ratio: how many times its limit the member has that exceeds it most.
        outside: by how much counts are outside their bounds.
    """

    owner: Longs
    moves: int
    cost: float
    ratio: float
    outside: float


def find_curve(
    batch: PaddedGroups,
    limit: Doubles,
    reached: Longs,
    cost: Doubles,
    kicks: int,
    counts: Doubles | None = None,
) -> list[list[Point]]:
    """Find for each group the plans that no other beats in both cost and load, cheapest first.

    ``limit`` is [group, member], the weight that it may have at the end of the curve; ``reached``
    [group, partition], owners that keep it or come near; ``kicks``, how often to disturb an answer.
    """
    points = [[point] for point in _stay(batch, limit, counts, kicks)]
    factors = []
    for row, (stay,) in enumerate(points):
        top = max(stay.ratio, 1.0)
        factors += [(row, top ** (j / (_GRID - 1))) for j in range(_GRID)]
    for _ in range(1 + _REFINEMENTS):
        for start in range(0, len(factors), _ROWS):
            rows, factor = map(np.array, zip(*factors[start : start + _ROWS], strict=True))
            subset, most = batch.take(rows), np.floor(limit[rows] * factor[:, None])
            of_rows = None if counts is None else counts[rows]
            objective = within(subset, most, cost[rows], counts=of_rows)
            cheapest = find_fewest(subset, objective, [reached[rows]], np.zeros(len(rows)), kicks)
            answers = _points(subset, limit[rows], cost[rows], cheapest)
            for row, point in zip(rows.tolist(), answers, strict=True):
                points[row].append(point)
        points = [_drop_dominated(of_group) for of_group in points]
        factors = [(row, f) for row, of_group in enumerate(points) for f in _between(of_group)]
        if not factors:
            break
    return points


def _stay(batch: PaddedGroups, limit: Doubles, counts: Doubles | None, kicks: int) -> list[Point]:
    """Keep all owners; put partitions without an owner where they do the least harm."""
    measured = np.maximum(limit / batch.capacity, 1e-300)
    objective = reach(batch, measured)
    members = np.arange(limit.shape[1])
    away = (batch.home >= 0)[:, :, None] & (batch.home[:, :, None] != members)
    pinned = objective._replace(where=np.where(away, FAR, objective.where))
    near = find_reach(batch, measured, np.zeros(len(limit)), kicks, objective=pinned)
    plain = within(batch, limit, batch.cost, counts=counts)
    return _points(batch, limit, batch.cost, judge(batch, plain, near.state))


def _points(
    batch: PaddedGroups, limit: Doubles, cost: Doubles, states: PlannedStates
) -> list[Point]:
    owner = states.state.owner
    paid = last_sum(np.where(batch.away(owner), cost, 0.0))
    ratio = (states.state.load / np.maximum(limit, 1.0)).max(axis=1)
    columns = (column.tolist() for column in (states.moves, paid, ratio, states.outside))
    return [Point(*row) for row in zip(owner, *columns, strict=True)]


def _drop_dominated(points: list[Point]) -> list[Point]:
    """Return the cheapest first; each next has better counts, or as good ones and lower load."""
    kept: list[Point] = []
    for point in sorted(points, key=lambda p: (p.cost, p.moves, p.outside, p.ratio)):
        last = kept[-1] if kept else point._replace(ratio=np.inf)
        lowers = point.outside == last.outside and point.ratio < last.ratio * (1 - 1e-12)
        if lowers or point.outside < last.outside:
            kept.append(point)
    return kept


def _between(points: list[Point]) -> list[float]:
    """Return limits that may hold answers between those that are known."""
    ratios = []
    for point, next_ in pairwise(points):
        if next_.moves - point.moves > 1:
            ratios.append((point.ratio * next_.ratio) ** 0.5)
            ratios.append(point.ratio * _BELOW)
    return ratios[: 2 * _MORE]
