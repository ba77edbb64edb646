"""Phase A: how even the loads can be made, regardless of the current owners."""

from typing import NamedTuple

import numpy as np

from kassign_spark.assignors.weighted.objective import Objective, cost_of, reach
from kassign_spark.assignors.weighted.problem import (
    Bools,
    Doubles,
    Longs,
    PaddedGroups,
    last_sum,
    noise,
)
from kassign_spark.assignors.weighted.steps import PlacementState, improve, insert

CLOSE = 1 + 1e-6
"""Nearer to a bound than this nobody searches on."""
_CLOSE_PART = 1.001
_WORSE = 1.02
_AMPLITUDES = (0.1, 0.3, 0.8)
_TASTE = 0.3


class BestLoads(NamedTuple):
    """The best state found, its greatest relative load, and how even it is: [group]."""

    state: PlacementState
    most: Doubles
    cost: Doubles

    def take(self, groups: Longs) -> "BestLoads":
        """Return some groups."""
        return BestLoads(self.state.take(groups), self.most[groups], self.cost[groups])


def judge(batch: PaddedGroups, objective: Objective, state: PlacementState) -> BestLoads:
    """Measure a state."""
    most = (state.load / batch.capacity).max(axis=1)
    return BestLoads(state, most, last_sum(cost_of(objective, state.load)))


def keep_better(best: BestLoads, rows: Longs, new: BestLoads) -> None:
    """Keep the better state of each group: by the greatest load, then by evenness."""
    old = best.take(rows)
    better = (new.most < old.most) | ((new.most == old.most) & (new.cost < old.cost))
    better_rows = rows[better]
    best.state.put(better_rows, new.state.take(np.flatnonzero(better)))
    best.most[better_rows], best.cost[better_rows] = new.most[better], new.cost[better]


def find_reach(
    batch: PaddedGroups,
    level: Doubles,
    bound: Doubles,
    kicks: int,
    *,
    objective: Objective | None = None,
) -> BestLoads:
    """Search the most even loads by each member's ``level``, [group, member].

    ``bound``: [group], on the greatest relative load; ``kicks``: how often to disturb what was
    found; ``objective``: in place of eighth powers of the level.
    """
    objective = reach(batch, level) if objective is None else objective
    first = insert(batch, objective, np.full(batch.home.shape, -1), batch.weight)
    best = judge(batch, objective, first.copy())
    everyone = np.arange(len(bound))
    keep_better(best, everyone, judge(batch, objective, improve(batch, objective, first)))
    open_ = _select_unfinished(batch, level, bound, best, everyone)
    for start in (_from_owners, _scarcest_first):
        if not len(open_):
            return best
        subset, aims = batch.take(open_), objective.take(open_)
        candidate = judge(subset, aims, improve(subset, aims, start(subset, aims)))
        keep_better(best, open_, candidate)
        open_ = _select_unfinished(batch, level, bound, best, open_)
    current = best.state.copy()
    for kick in range(kicks):
        if not len(open_):
            break
        subset, aims = batch.take(open_), objective.take(open_)
        kicked = improve(subset, aims, kick_members(subset, aims, current.take(open_), kick))
        candidate = judge(subset, aims, kicked)
        keep_better(best, open_, candidate)
        current.put(open_, candidate.state)
        back = open_[candidate.most > best.most[open_] * _WORSE]
        current.put(back, best.state.take(back))
        open_ = _select_unfinished(batch, level, bound, best, open_)
    return best


def kick_members(
    batch: PaddedGroups, objective: Objective, state: PlacementState, kick: int
) -> PlacementState:
    """Empty the fullest member and up to two others, and place what they had in another order."""
    groups, members = batch.capacity.shape
    chosen = noise(kick, 1, size=members)[None, :] + np.where(batch.eligible.any(axis=1), 0.0, 10.0)
    fullest = np.argmax(cost_of(objective, state.load), axis=1)
    chosen[np.arange(groups), fullest] = -1.0
    others = 1 + kick % 2
    order = np.argsort(chosen, axis=1, kind="stable")[:, : 1 + others]
    emptied = np.zeros((groups, members), bool)
    np.put_along_axis(emptied, order, True, 1)
    lifted = np.take_along_axis(emptied, state.owner, 1) & batch.is_there
    return reinsert(batch, objective, state, lifted, kick)


def reinsert(
    batch: PaddedGroups, objective: Objective, state: PlacementState, lifted: np.ndarray, kick: int
) -> PlacementState:
    """Lift partitions and place them in an order with noise, with a taste for members."""
    groups, partitions = batch.weight.shape
    members = batch.capacity.shape[1]
    amplitude = _AMPLITUDES[kick % len(_AMPLITUDES)]
    order = batch.weight * (1 + amplitude * (noise(kick, 2, size=partitions) - 0.5))
    taste = np.broadcast_to(_TASTE * noise(kick, 3, size=members), (groups, members))
    return insert(batch, objective, np.where(lifted, -1, state.owner), order, taste)


def _from_owners(batch: PaddedGroups, objective: Objective) -> PlacementState:
    return insert(batch, objective, batch.home, batch.weight)


def _scarcest_first(batch: PaddedGroups, objective: Objective) -> PlacementState:
    takers = np.take_along_axis(batch.eligible.sum(axis=2), batch.class_, 1)
    order = -takers * (2.0 * np.maximum(batch.weight.max(axis=1), 1.0))[:, None] + batch.weight
    return insert(batch, objective, np.full(batch.home.shape, -1), order)


def _select_unfinished(
    batch: PaddedGroups, level: Doubles, bound: Doubles, best: BestLoads, rows: Longs
) -> Longs:
    """Return the ``rows`` whose maximum is above its bound, or with a part above its level."""
    part = best.state.load[rows] / np.maximum(batch.capacity[rows] * level[rows], 1e-300)
    is_open: Bools = (best.most[rows] > bound[rows] * CLOSE) | (part.max(axis=1) > _CLOSE_PART)
    return rows[is_open]
