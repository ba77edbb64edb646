"""The objective of the search, as a cost of each member's weight, of moves and of counts."""

from typing import NamedTuple

import numpy as np

from kassign_spark.assignors.weighted.problem import (
    FAR,
    Doubles,
    Longs,
    PaddedGroups,
    can_take,
    last_sum,
)

_OVER = 1e9
EVEN, EVEN_FIRST = 1e-3, 1e6
_COUNT = 1e10


class Objective(NamedTuple):
    """Costs that add up over members, moves and counts.

    Attributes:
        is_reach: whether a member of weight L costs ``a (b L)**8``, or
            ``b max(L - a, 0) + c L L``.
        a: [group, member].
        b: [group, member].
        c: [group, member].
        where: [group, partition, member], the cost of being there: 0 at home, FAR where not
            allowed.
        counts: [group, 2], the least and the greatest number of partitions that a member should
            have; None: any number.
    """

    is_reach: bool
    a: Doubles
    b: Doubles
    c: Doubles
    where: Doubles
    counts: Doubles | None = None

    def take(self, groups: Longs) -> "Objective":
        """Return the objective of some of the groups."""
        columns = (None if column is None else column[groups] for column in self[1:])
        return Objective(self.is_reach, *columns)  # type: ignore[arg-type]


def reach(batch: PaddedGroups, level: Doubles) -> Objective:
    """Make the greatest load small, measured by each member's level: eighth powers, no pow."""
    room = np.maximum(batch.capacity * level, 1e-300)
    total = np.maximum(batch.total, 1.0)[:, None]
    where = np.where(can_take(batch), 0.0, FAR)
    return Objective(True, room / total, 1 / room, room, where)


def within(
    batch: PaddedGroups,
    limit: Doubles,
    cost: Doubles,
    *,
    even: float = EVEN,
    counts: Doubles | None = None,
) -> Objective:
    """Stay within limits, then make moves few, then loads even.

    ``cost``: [group, partition], of moving it from home; ``even``: what evenness counts beside.
    """
    total = np.maximum(batch.total, 1.0)[:, None]
    all_ = last_sum(np.where(batch.eligible.any(axis=1), batch.capacity, 0.0))[:, None]
    quadratic = even * all_ / (total * total) / batch.capacity
    members = np.arange(batch.capacity.shape[1])
    away = (batch.home[:, :, None] != members) & (batch.home >= 0)[:, :, None]
    where = np.where(can_take(batch), np.where(away, cost[:, :, None], 0.0), FAR)
    over = np.broadcast_to(_OVER / total, limit.shape)
    return Objective(False, limit, over, quadratic, where, counts)


def cost_of(objective: Objective, weight: Doubles) -> Doubles:
    """Return [group, member]: the cost of each member's weight."""
    return member_cost(objective.is_reach, weight, objective.a, objective.b, objective.c)


def member_cost(is_reach: bool, weight: Doubles, a: Doubles, b: Doubles, c: Doubles) -> Doubles:
    """Return the cost of weights, in their memory; only multiplies, which rounds alike anywhere."""
    if is_reach:
        cost = weight * b
        for _ in range(3):
            cost *= cost
        cost *= a
        return cost
    cost = weight - a
    np.maximum(cost, 0.0, out=cost)
    cost *= b
    even = weight * weight
    even *= c
    cost += even
    return cost


def count_cost(objective: Objective, count: Doubles) -> Doubles:
    """Return [group, member]: the cost of members' numbers of partitions."""
    return _COUNT * outside(objective, count)


def outside(objective: Objective, count: Doubles) -> Doubles:
    """Return [group, member]: by how much numbers of partitions are outside their bounds."""
    if objective.counts is None:
        return np.zeros(count.shape)
    least, most = objective.counts[:, :1], objective.counts[:, 1:]
    result: Doubles = np.maximum(least - count, 0.0) + np.maximum(count - most, 0.0)
    return result
