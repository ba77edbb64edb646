"""What the search makes small, as a cost of each member's weight, of moves and of counts."""

from typing import NamedTuple

import numpy as np

from kassign_spark.assignors.weighted.problem import FAR, Batch, Doubles, Longs, allowed, last_sum

_OVER = 1e9
_EVEN = 1e-3
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
        least: [group, 1], how many partitions a member should have; None: any number.
        most: [group, 1].
    """

    is_reach: bool
    a: Doubles
    b: Doubles
    c: Doubles
    where: Doubles
    least: Doubles | None = None
    most: Doubles | None = None

    def take(self, groups: Longs) -> "Objective":
        """The objective of some of the groups."""
        columns = (None if column is None else column[groups] for column in self[1:])
        return Objective(self.is_reach, *columns)  # type: ignore[arg-type]


def reach(batch: Batch, level: Doubles) -> Objective:
    """Make the greatest load small, measured by each member's level: eighth powers, no pow."""
    room = np.maximum(batch.capacity * level, 1e-300)
    total = np.maximum(batch.total, 1.0)[:, None]
    where = np.where(allowed(batch), 0.0, FAR)
    return Objective(True, room / total, 1 / room, room, where)


def within(batch: Batch, limit: Doubles, cost: Doubles, even: float = _EVEN) -> Objective:
    """Stay within limits, then make moves few, then loads even.

    Args:
        batch: groups.
        limit: [group, member], weight.
        cost: [group, partition], of moving it from home.
        even: what evenness counts beside a move.
    """
    total = np.maximum(batch.total, 1.0)[:, None]
    all_ = last_sum(np.where(batch.eligible.any(axis=1), batch.capacity, 0.0))[:, None]
    quadratic = even * all_ / (total * total) / batch.capacity
    members = np.arange(batch.capacity.shape[1])
    away = (batch.home[:, :, None] != members) & (batch.home >= 0)[:, :, None]
    where = np.where(allowed(batch), np.where(away, cost[:, :, None], 0.0), FAR)
    over = np.broadcast_to(_OVER / total, limit.shape)
    return Objective(False, limit, over, quadratic, where)


def cost_of(objective: Objective, weight: Doubles) -> Doubles:
    """[group, member]: the cost of each member's weight."""
    return member_cost(objective.is_reach, weight, objective.a, objective.b, objective.c)


def member_cost(is_reach: bool, weight: Doubles, a: Doubles, b: Doubles, c: Doubles) -> Doubles:
    """The cost of weights, which are used up; multiplications only, which round alike anywhere."""
    if is_reach:
        cost = weight * b
        np.multiply(cost, cost, out=cost)
        np.multiply(cost, cost, out=cost)
        np.multiply(cost, cost, out=cost)
        np.multiply(cost, a, out=cost)
        return cost
    cost = weight - a
    np.maximum(cost, 0.0, out=cost)
    np.multiply(cost, b, out=cost)
    even = weight * weight
    np.multiply(even, c, out=even)
    np.add(cost, even, out=cost)
    return cost


def count_cost(objective: Objective, count: Doubles) -> Doubles:
    """[group, member]: the cost of members' numbers of partitions."""
    if objective.least is None or objective.most is None:
        return np.zeros(count.shape)
    outside = np.maximum(objective.least - count, 0.0) + np.maximum(count - objective.most, 0.0)
    return _COUNT * outside
