"""Phase B: the fewest moves, or the least moved weight, that keep every member in its limit."""

from typing import NamedTuple

import numpy as np

from kassign_spark.assignors.weighted.objective import Objective, outside
from kassign_spark.assignors.weighted.problem import (
    FAR,
    Doubles,
    Longs,
    PaddedGroups,
    last_sum,
    noise,
)
from kassign_spark.assignors.weighted.reach import kick_members, reinsert
from kassign_spark.assignors.weighted.steps import PlacementState, improve, insert, state_of

_BACK, _LIFT = 0.6, 0.3


class PlannedStates(NamedTuple):
    """A state and what decides about it, each [group].

    Attributes:
        state: who has what.
        outside: by how much counts are outside their bounds.
        excess: weight above the limits.
        cost: of the moves.
        even: how uneven the loads are.
        moves: partitions that leave their owner.
    """

    state: PlacementState
    outside: Doubles
    excess: Doubles
    cost: Doubles
    even: Doubles
    moves: Longs

    def take(self, groups: Longs) -> "PlannedStates":
        """Return some groups."""
        columns = (column[groups] for column in self[1:])
        return PlannedStates(self.state.take(groups), *columns)  # type: ignore[arg-type]

    def put(self, groups: Longs, other: "PlannedStates") -> None:
        """Copy the state of some groups."""
        self.state.put(groups, other.state)
        for column, new in zip(self[1:], other[1:], strict=True):
            column[groups] = new


def judge(batch: PaddedGroups, objective: Objective, state: PlacementState) -> PlannedStates:
    """Measure a state."""
    excess = last_sum(np.maximum(state.load - objective.a, 0.0))
    costs = np.take_along_axis(objective.where, state.owner[:, :, None], 2)[:, :, 0]
    # Who may take nothing has nothing: it cannot be above.
    serves = batch.eligible.any(axis=1)
    return PlannedStates(
        state,
        last_sum(np.where(serves, outside(objective, state.counts), 0.0)),
        excess,
        last_sum(np.where(batch.is_there, costs, 0.0)),
        last_sum(state.load * state.load * objective.c),
        batch.away(state.owner).sum(axis=1),
    )


def is_better(new: PlannedStates, old: PlannedStates, *, even_first: bool = False) -> np.ndarray:
    """Return [group]: whether a plan beats another: counts, excess, cost of moves, evenness."""
    keys = [(new.outside, old.outside), (new.excess, old.excess)]
    rest = [(new.cost, old.cost), (new.even, old.even * (1 - 1e-12))]
    better = np.zeros(len(new.cost), bool)
    equal = ~better
    for a, b in keys + (rest[::-1] if even_first else rest):
        better |= equal & (a < b)
        equal &= a == b if a is not new.even else ~(a < b) & (a <= b * (1 + 1e-11))
    return better


def find_fewest(
    batch: PaddedGroups,
    objective: Objective,
    others: list[Longs],
    cost_bound: Doubles,
    kicks: int,
    *,
    even_first: bool = False,
) -> PlannedStates:
    """Search the cheapest moves within limits; ``objective`` is one of ``objective.within``.

    ``others`` are owners, [group, partition], to start from beside the present ones; no plan within
    the limits costs less than ``cost_bound``; ``kicks``: how often to disturb what was found.
    """
    present = insert(batch, objective, batch.home, batch.weight)
    best = judge(batch, objective, present.copy())
    open_ = np.arange(len(cost_bound))
    for start in (present, *(state_of(batch, np.where(batch.is_there, o, 0)) for o in others)):
        subset, aims = batch.take(open_), objective.take(open_)
        candidate = judge(subset, aims, improve(subset, aims, start.take(open_)))
        _keep(best, open_, candidate, even_first)
        open_ = _open(best, cost_bound, open_, even_first)
        if not len(open_):
            return best
    current = best.state.copy()
    for kick in range(kicks):
        if not len(open_):
            break
        subset, aims = batch.take(open_), objective.take(open_)
        if kick % 3 == 0:
            kicked = _eject(subset, aims, present.take(open_), kick // 3)
        else:
            kicked = _kick(subset, aims, current.take(open_), kick)
        candidate = judge(subset, aims, improve(subset, aims, kicked))
        _keep(best, open_, candidate, even_first)
        best_open = best.take(open_)
        slack = 1.0 + 0.02 * best_open.cost
        fine = (candidate.excess <= best_open.excess) & (candidate.outside <= best_open.outside)
        fine &= candidate.cost <= best_open.cost + slack
        current.put(open_, candidate.state)
        current.put(open_[~fine], best.state.take(open_[~fine]))
        open_ = _open(best, cost_bound, open_, even_first)
    return best


def _open(best: PlannedStates, cost_bound: Doubles, rows: Longs, even_first: bool) -> Longs:
    """Return the ``rows`` that may still gain something."""
    if even_first:
        return rows
    within = (best.excess[rows] <= 0) & (best.outside[rows] <= 0)
    return rows[~(within & (best.cost[rows] <= cost_bound[rows] * (1 + 1e-12)))]


def _keep(best: PlannedStates, rows: Longs, new: PlannedStates, even_first: bool) -> None:
    better = np.flatnonzero(is_better(new, best.take(rows), even_first=even_first))
    best.put(rows[better], new.take(better))


def _eject(
    batch: PaddedGroups, objective: Objective, present: PlacementState, rank: int
) -> PlacementState:
    """Ban one heavy partition from a member above its limit, and search from there.

    Steps downhill shed the light ones instead: as long as the heavy one finds no member with room
    for it, moving it helps nobody before others have moved too.
    """
    owner = present.owner
    rows = np.arange(len(owner))
    over = np.take_along_axis(present.load > objective.a, owner, 1)
    ejectable = over & (batch.home >= 0) & (owner == batch.home) & (batch.weight > 0)
    ejectable &= np.take_along_axis(batch.eligible.sum(axis=2), batch.class_, 1) > 1
    count = ejectable.sum(axis=1)
    heavy = np.argsort(~ejectable, axis=1, kind="stable")
    partition = heavy[rows, rank % np.maximum(count, 1)]
    chosen = np.zeros(owner.shape, bool)
    chosen[rows, partition] = count > 0
    where = objective.where.copy()
    where[rows[count > 0], partition[count > 0], owner[rows, partition][count > 0]] = FAR
    banned = objective._replace(where=where)
    members = batch.capacity.shape[1]
    again = (rank // np.maximum(count, 1) > 0)[:, None]
    taste = np.where(again, 0.5 * noise(rank, 6, size=members)[None, :], 0.0)
    lifted = chosen | (batch.is_there & (batch.home < 0))
    start = insert(batch, banned, np.where(lifted, -1, owner), batch.weight, taste)
    return improve(batch, banned, start)


def _kick(
    batch: PaddedGroups, objective: Objective, state: PlacementState, kick: int
) -> PlacementState:
    if kick % 3 == 1:
        return kick_members(batch, objective, state, kick)
    free = batch.is_there & (batch.home < 0)
    size = batch.weight.shape[1]
    back = batch.away(state.owner) & (noise(kick, 4, size=size) < _BACK)
    lifted = free & (noise(kick, 5, size=size) < _LIFT)
    owner = np.where(back, batch.home, state.owner)
    return reinsert(batch, objective, state._replace(owner=owner), lifted, kick)
