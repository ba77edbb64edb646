"""The search: the best single move, swap or chain of two, again and again, group by group.

The groups of a batch share no number: each takes its own best step, and those that have none are
done. Chains move p to q's member, and q on to its best other one.
"""

from typing import NamedTuple

import numpy as np

from kassign_spark.assignors.weighted.objective import Objective, cost_of, count_cost, member_cost
from kassign_spark.assignors.weighted.problem import FAR, Bools, Doubles, Longs, PaddedGroups, loads

_ELEMENTS = 250_000
"""Elements of [group, partition, partition] that are worked on at once: they stay in the cache."""
_GAIN = 1e-14
_STEPS_A_PARTITION = 8


class PlacementState(NamedTuple):
    """A placement: owner [group, partition] (padding: 0), weight and count [group, member]."""

    owner: Longs
    load: Doubles
    counts: Doubles

    def take(self, groups: Longs) -> "PlacementState":
        """Return the state of some groups."""
        return PlacementState(self.owner[groups], self.load[groups], self.counts[groups])

    def put(self, groups: Longs, other: "PlacementState") -> None:
        """Copy the state of some groups."""
        for column, new in zip(self, other, strict=True):
            column[groups] = new

    def copy(self) -> "PlacementState":
        """Return a state that shares nothing with this one."""
        return PlacementState(self.owner.copy(), self.load.copy(), self.counts.copy())


def state_of(batch: PaddedGroups, owner: Longs) -> PlacementState:
    """Return the state that these owners make."""
    count = np.zeros(batch.capacity.shape)
    is_owned = batch.is_there & (owner >= 0)
    np.add.at(count, (np.nonzero(is_owned)[0], owner[is_owned]), 1.0)
    return PlacementState(owner, loads(batch, np.where(batch.is_there, owner, -1)), count)


def insert(
    batch: PaddedGroups,
    objective: Objective,
    owner: Longs,
    order: Doubles,
    taste: Doubles | None = None,
) -> PlacementState:
    """Place unowned partitions (owner -1), the greatest in ``order`` first, where they cost least.

    ``taste``: [group, member], by what share a member seems more expensive than it is.
    """
    lifted = batch.is_there & (owner < 0)
    state = state_of(batch, owner)
    state = state._replace(owner=np.where(batch.is_there, owner, 0))
    sequence = np.argsort(np.where(lifted, -order, np.inf), axis=1, kind="stable")
    many = lifted.sum(axis=1)
    for place in range(int(many.max(initial=0))):
        rows = np.flatnonzero(many > place)
        partition = sequence[rows, place]
        weight = batch.weight[rows, partition][:, None]
        a, b, c = objective.a[rows], objective.b[rows], objective.c[rows]
        load, count = state.load[rows], state.counts[rows]
        if objective.is_reach:
            # What counts is how full the member gets, not how much fuller: that is LPT.
            cost = (load + weight) * b
        else:
            cost = member_cost(False, load + weight, a, b, c) - member_cost(False, load, a, b, c)
        if objective.counts is not None:
            subset = objective.take(rows)
            cost += count_cost(subset, count + 1) - count_cost(subset, count)
        if taste is not None:
            cost *= 1 + taste[rows]
        cost += objective.where[rows, partition]
        member = np.argmin(cost, axis=1)
        state.owner[rows, partition] = member
        state.load[rows, member] += weight[:, 0]
        state.counts[rows, member] += 1
    return state


def improve(batch: PaddedGroups, objective: Objective, state: PlacementState) -> PlacementState:
    """Take best steps until no group has one; the state given is used up."""
    groups, partitions = batch.weight.shape
    size = max(1, _ELEMENTS // max(partitions * partitions, 1))
    for start in range(0, groups, size):
        open_ = np.arange(start, min(start + size, groups))
        open_groups, aims, placements = batch.take(open_), objective.take(open_), state.take(open_)
        for _ in range(_STEPS_A_PARTITION * partitions + 20):
            moved = np.flatnonzero(_step(open_groups, aims, placements))
            if len(moved) < len(open_):
                state.put(open_, placements)
                open_ = open_[moved]
                open_groups, aims, placements = (
                    open_groups.take(moved),
                    aims.take(moved),
                    placements.take(moved),
                )
            if not len(open_):
                break
        state.put(open_, placements)
    return state


def arrivals(batch: PaddedGroups, objective: Objective, state: PlacementState) -> Doubles:
    """Return [group, partition, member]: the cost if the member gets the partition as well."""
    a, b, c = (column[:, None, :] for column in (objective.a, objective.b, objective.c))
    grown = state.load[:, None, :] + batch.weight[:, :, None]
    cost = member_cost(objective.is_reach, grown, a, b, c)
    now = cost_of(objective, state.load)
    if objective.counts is not None:
        now -= count_cost(objective, state.counts + 1) - count_cost(objective, state.counts)
    cost -= now[:, None, :]
    cost += objective.where
    return cost


def _step(batch: PaddedGroups, objective: Objective, state: PlacementState) -> Bools:
    """Change the state by each group's best step; say which groups had one."""
    owner, weight = state.owner, batch.weight
    now = cost_of(objective, state.load)
    gain = _GAIN * np.maximum(now.max(axis=1), 1.0)
    places = _Places(*objective.where.shape)
    of_owner = places.member(owner)

    a, b, c = (column.take(of_owner) for column in (objective.a, objective.b, objective.c))
    left, now_at = state.load.take(of_owner) - weight, now.take(of_owner)
    own_costs = objective.where.take(places.partition(owner))
    out = member_cost(objective.is_reach, left, a, b, c) - now_at - own_costs
    if objective.counts is not None:
        fewer = count_cost(objective, state.counts - 1) - count_cost(objective, state.counts)
        out += fewer.take(of_owner)
    out = np.where(batch.is_there, out, FAR)

    into = arrivals(batch, objective, state)
    into.put(places.partition(owner), FAR)
    nearest = into.argmin(axis=2)
    best = into.take(places.partition(nearest))
    single = out + best
    p = single.argmin(axis=1)
    gained = single[places.groups, p]
    moves: Bools = gained < -gain
    to = nearest[places.groups, p]
    if moves.any():
        _move(batch, state, moves.nonzero()[0], p[moves], to[moves])
    stuck = (~moves).nonzero()[0]
    if not len(stuck):
        return moves

    into.put(places.partition(nearest), FAR * 2)
    second = into.min(axis=2)
    where = objective.where[stuck]
    where.put(_Places(*where.shape).partition(owner[stuck]), FAR)
    at_member = (owner[stuck][:, None, :] == np.arange(where.shape[2])[:, None]).astype(np.float64)
    # [p, q]: the cost at q's member if p takes q's place; one factor of each sum is not 0.
    instead = left[stuck][:, None, :] + weight[stuck][:, :, None]
    row = tuple(column[stuck][:, None, :] for column in (a, b, c))
    taken = member_cost(objective.is_reach, instead, *row)
    taken -= now_at[stuck][:, None, :]
    taken += where @ at_member
    is_nearest = owner[stuck][:, :, None] == nearest[stuck][:, None, :]
    chain = np.where(is_nearest, second[stuck][:, None, :], best[stuck][:, None, :])
    chain -= own_costs[stuck][:, None, :]
    chain += taken
    chain += out[stuck][:, :, None]
    taken -= own_costs[stuck][:, None, :]
    swap = taken + taken.swapaxes(1, 2)
    size = weight.shape[1]
    each = np.arange(len(stuck))
    swap, chain = swap.reshape(len(stuck), -1), chain.reshape(len(stuck), -1)
    swap_at, chain_at = swap.argmin(axis=1), chain.argmin(axis=1)
    swap_gain, chain_gain = swap[each, swap_at], chain[each, chain_at]
    swaps = swap_gain <= chain_gain
    pair = np.where(swaps, swap_at, chain_at)
    useful = np.minimum(swap_gain, chain_gain) < -gain[stuck]
    rows, pair, swaps = stuck[useful], pair[useful], swaps[useful]
    if not len(rows):
        return moves
    p, q = pair // size, pair % size
    p_from, q_from = owner[rows, p], owner[rows, q]
    on = nearest[rows, q]
    next_best = into[rows, q].argmin(axis=1)
    on = np.where(on == p_from, next_best, on)
    _move(batch, state, rows, p, q_from)
    _move(batch, state, rows, q, np.where(swaps, p_from, on))
    moves[rows] = True
    return moves


class _Places:
    """Flat positions of elements of [group, member] and [group, partition, member].

    To take a few numbers by one index takes a seventh of the time of ``take_along_axis``.
    """

    def __init__(self, groups: int, partitions: int, members: int) -> None:
        self.groups = np.arange(groups)
        self._of_member = (self.groups * members)[:, None]
        starts = np.arange(0, groups * partitions * members, members)
        self._of_partition = starts.reshape(groups, partitions)

    def member(self, member: Longs) -> Longs:
        """Return the position in [group, member] of one member for each partition."""
        return member + self._of_member

    def partition(self, member: Longs) -> Longs:
        """Return the position in [group, partition, member] of each partition with a member."""
        return member + self._of_partition


def _move(
    batch: PaddedGroups, state: PlacementState, rows: Longs, partition: Longs, to: Longs
) -> None:
    """Give one partition of each of the groups ``rows`` to another member."""
    weight, from_ = batch.weight[rows, partition], state.owner[rows, partition]
    state.load[rows, from_] -= weight
    state.load[rows, to] += weight
    state.counts[rows, from_] -= 1
    state.counts[rows, to] += 1
    state.owner[rows, partition] = to
