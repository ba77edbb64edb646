"""The search: the best single move, swap or chain of two, again and again, group by group.

The groups of a batch share no number: each takes its own best step, and those that have none are
done. Chains move p to q's member, and q on to its best other one.
"""

from typing import NamedTuple

import numpy as np

from kassign_spark.assignors.weighted.objective import Objective, cost_of, count_cost, member_cost
from kassign_spark.assignors.weighted.problem import FAR, Batch, Bools, Doubles, Longs, loads

_ELEMENTS = 250_000
"""Elements of [group, partition, partition] that are worked on at once: they stay in the cache."""
_GAIN = 1e-14
_STEPS_A_PARTITION = 8


class State(NamedTuple):
    """Who has what: owner [group, partition] (padding: 0), weight and number [group, member]."""

    owner: Longs
    load: Doubles
    held: Doubles

    def take(self, groups: Longs) -> "State":
        """The state of some groups."""
        return State(self.owner[groups], self.load[groups], self.held[groups])

    def put(self, groups: Longs, other: "State") -> None:
        """Take over the state of some groups."""
        for column, new in zip(self, other, strict=True):
            column[groups] = new

    def copy(self) -> "State":
        """A state that shares nothing with this one."""
        return State(self.owner.copy(), self.load.copy(), self.held.copy())


def state_of(batch: Batch, owner: Longs) -> State:
    """Sum up who has what."""
    count = np.zeros(batch.capacity.shape)
    held = batch.is_there & (owner >= 0)
    np.add.at(count, (np.nonzero(held)[0], owner[held]), 1.0)
    return State(owner, loads(batch, np.where(batch.is_there, owner, -1)), count)


def insert(
    batch: Batch, objective: Objective, owner: Longs, order: Doubles, taste: Doubles | None = None
) -> State:
    """Place what nobody has (owner -1), the greatest in ``order`` first, where it costs least.

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
        load, count = state.load[rows], state.held[rows]
        if objective.is_reach:
            # What counts is how full the member gets, not how much fuller: that is LPT.
            cost = (load + weight) * b
        else:
            cost = member_cost(False, load + weight, a, b, c) - member_cost(False, load, a, b, c)
        if objective.counts is not None:
            some = objective.take(rows)
            cost += count_cost(some, count + 1) - count_cost(some, count)
        if taste is not None:
            cost *= 1 + taste[rows]
        cost += objective.where[rows, partition]
        member = np.argmin(cost, axis=1)
        state.owner[rows, partition] = member
        state.load[rows, member] += weight[:, 0]
        state.held[rows, member] += 1
    return state


def improve(batch: Batch, objective: Objective, state: State) -> State:
    """Take best steps until no group has one; the state given is used up."""
    groups, partitions = batch.weight.shape
    size = max(1, _ELEMENTS // max(partitions * partitions, 1))
    for start in range(0, groups, size):
        open_ = np.arange(start, min(start + size, groups))
        some, wanted, at = batch.take(open_), objective.take(open_), state.take(open_)
        for _ in range(_STEPS_A_PARTITION * partitions + 20):
            moved = np.flatnonzero(_step(some, wanted, at))
            if len(moved) < len(open_):
                state.put(open_, at)
                open_ = open_[moved]
                some, wanted, at = some.take(moved), wanted.take(moved), at.take(moved)
            if not len(open_):
                break
        state.put(open_, at)
    return state


def arrivals(batch: Batch, objective: Objective, state: State) -> Doubles:
    """[group, partition, member]: what it costs that the member gets the partition as well."""
    a, b, c = (column[:, None, :] for column in (objective.a, objective.b, objective.c))
    grown = state.load[:, None, :] + batch.weight[:, :, None]
    cost = member_cost(objective.is_reach, grown, a, b, c)
    now = cost_of(objective, state.load)
    if objective.counts is not None:
        now -= count_cost(objective, state.held + 1) - count_cost(objective, state.held)
    cost -= now[:, None, :]
    cost += objective.where
    return cost


def _step(batch: Batch, objective: Objective, state: State) -> Bools:
    """Change the state by each group's best step; say which groups had one."""
    groups = np.arange(len(batch.weight))
    owner, weight = state.owner, batch.weight
    now = cost_of(objective, state.load)
    gain = _GAIN * np.maximum(now.max(axis=1), 1.0)

    def at_owner(column: Doubles) -> Doubles:
        return np.take_along_axis(column, owner, 1)

    a, b, c = at_owner(objective.a), at_owner(objective.b), at_owner(objective.c)
    left, now_at = at_owner(state.load) - weight, at_owner(now)
    own = np.take_along_axis(objective.where, owner[:, :, None], 2)[:, :, 0]
    out = member_cost(objective.is_reach, left, a, b, c) - now_at - own
    if objective.counts is not None:
        fewer = count_cost(objective, state.held - 1) - count_cost(objective, state.held)
        out += at_owner(fewer)
    out = np.where(batch.is_there, out, FAR)

    into = arrivals(batch, objective, state)
    np.put_along_axis(into, owner[:, :, None], FAR, 2)
    nearest = np.argmin(into, axis=2)
    best = np.take_along_axis(into, nearest[:, :, None], 2)[:, :, 0]
    single = out + best
    p = np.argmin(single, axis=1)
    gained = single[groups, p]
    moves: Bools = gained < -gain
    to = nearest[groups, p]
    if moves.any():
        _move(batch, state, np.flatnonzero(moves), p[moves], to[moves])
    stuck = np.flatnonzero(~moves)
    if not len(stuck):
        return moves

    np.put_along_axis(into, nearest[:, :, None], FAR * 2, 2)
    second = into.min(axis=2)
    where = objective.where[stuck]
    np.put_along_axis(where, owner[stuck][:, :, None], FAR, 2)
    members = np.arange(where.shape[2])
    at_member = (owner[stuck][:, None, :] == members[:, None]).astype(np.float64)
    # [p, q]: the cost at q's member if p takes q's place; one factor of each sum is not 0.
    instead = left[stuck][:, None, :] + weight[stuck][:, :, None]
    row = tuple(column[stuck][:, None, :] for column in (a, b, c))
    taken = member_cost(objective.is_reach, instead, *row)
    taken -= now_at[stuck][:, None, :]
    taken += where @ at_member
    there = owner[stuck][:, :, None] == nearest[stuck][:, None, :]
    chain = np.where(there, second[stuck][:, None, :], best[stuck][:, None, :])
    chain -= own[stuck][:, None, :]
    chain += taken
    chain += out[stuck][:, :, None]
    taken -= own[stuck][:, None, :]
    swap = taken + np.swapaxes(taken, 1, 2)
    size = weight.shape[1]
    each = np.arange(len(stuck))
    swap, chain = swap.reshape(len(stuck), -1), chain.reshape(len(stuck), -1)
    swap_at, chain_at = np.argmin(swap, axis=1), np.argmin(chain, axis=1)
    swap_gain, chain_gain = swap[each, swap_at], chain[each, chain_at]
    swaps = swap_gain <= chain_gain
    pair = np.where(swaps, swap_at, chain_at)
    useful = np.minimum(swap_gain, chain_gain) < -gain[stuck]
    rows, pair, swaps = stuck[useful], pair[useful], swaps[useful]
    p, q = pair // size, pair % size
    p_from, q_from = owner[rows, p], owner[rows, q]
    on = nearest[rows, q]
    next_best = np.argmin(into[rows, q], axis=1)
    on = np.where(on == p_from, next_best, on)
    _move(batch, state, rows, p, q_from)
    _move(batch, state, rows, q, np.where(swaps, p_from, on))
    moves[rows] = True
    return moves


def _move(batch: Batch, state: State, rows: Longs, partition: Longs, to: Longs) -> None:
    """Give one partition of each of the groups ``rows`` to another member."""
    weight, from_ = batch.weight[rows, partition], state.owner[rows, partition]
    state.load[rows, from_] -= weight
    state.load[rows, to] += weight
    state.held[rows, from_] -= 1
    state.held[rows, to] += 1
    state.owner[rows, partition] = to
