"""Placing partitions one after the other: longest first, and what a kick has lifted."""

import numpy as np

from kassign_spark.assignors.weighted.objective import Objective, count_cost, member_cost
from kassign_spark.assignors.weighted.problem import Batch, Doubles, Longs
from kassign_spark.assignors.weighted.steps import State, state_of


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
