"""Plans for a group too large for one task, from sums, its heaviest partitions, and what may move.

Most partitions of such a group stay where they are. What its members have together, and what its
classes weigh, gives the levels, the bounds and the limits; only what members above their limits
shed, and what nobody has, is planned by name. The best loads are not searched for: with hundreds
of partitions a member they come as near to the bound as ``_REACHED`` says.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from kassign_spark.assignors.weighted.answer import Answer, Heaviest
from kassign_spark.assignors.weighted.bounds import load_bounds, pigeonhole
from kassign_spark.assignors.weighted.bulk import by_member, earlier_in_run, least_to_shed, shed
from kassign_spark.assignors.weighted.large import (
    Look,
    curve_factors,
    curve_large,
    dominant_batch,
    plan_seen,
    relative_limits,
)
from kassign_spark.assignors.weighted.parts import find_parts, weights_within
from kassign_spark.assignors.weighted.plan import CurvePoint, curve_of, weighted_part, with_idle
from kassign_spark.assignors.weighted.problem import Bools, Doubles, Group, Longs, Rest
from kassign_spark.assignors.weighted.small import Wanted

HEAVIEST_A_MEMBER = 8
"""So many of the heaviest partitions a member are known by name: the pigeonhole asks for them."""
PARTITIONS_A_MEMBER = 300
"""With fewer, single partitions decide how even loads get, and a group is not cut."""
BUNDLES_A_MEMBER = 300
_REACHED = 1.0003
_POINTS = 11
_OPENED = 4


class Facts(NamedTuple):
    """What is known of a group that was cut.

    Attributes:
        heavy: the heaviest partitions, with the members, classes and unit of the group.
        class_weight: of each class.
        load: of each member, the weight that it has now.
        partitions: of each member, how many it has now.
    """

    heavy: Group
    class_weight: Doubles
    load: Doubles
    partitions: Longs


class Pool(NamedTuple):
    """Partitions that may move; heaviest first, then by name. The columns are as of ``Group``.

    Those of a bundle, which ``stands_for`` several, are nobody's, and go together.
    """

    weight: Doubles
    class_: Longs
    home: Longs
    cost: Doubles
    stands_for: Longs


class Limits(NamedTuple):
    """What members are above.

    Attributes:
        excess: for one limit after the other, the tightest first, of each member the weight above.
        kept: those of ``Facts.heavy`` that have their member for themselves, and stay.
        quantum: the weight of a bundle.
    """

    excess: list[Doubles]
    kept: Longs
    quantum: float


def limits_of_plan(facts: Facts, wanted: Wanted) -> Limits:
    """The limits that members are held to, and where moves are bounded, looser ones as well."""
    seen = look_cut(facts, _unmoved(facts))
    limit = _limit(facts, seen, wanted)
    bounds = wanted.bounds
    factors = [1.0]
    if bounds.max_moves is not None or bounds.max_moved_weight is not None:
        top = max(float((facts.load / np.maximum(limit, 1.0)).max()), 1.0)
        factors += [top ** (j / _POINTS) for j in range(1, _POINTS)]
    return _limits(facts, seen, [np.floor(limit * factor) for factor in factors])


def limits_of_curve(facts: Facts) -> Limits:
    """The limits that the points of the curve are of."""
    group = _unmoved(facts)
    seen = look_cut(facts, group)
    limit = float((seen.load / group.capacity).max()) * group.capacity
    factors = sorted(curve_factors(group, limit))
    return _limits(facts, seen, [np.floor(limit * factor * (1 + 1e-12)) for factor in factors])


def look_cut(facts: Facts, pool: Group) -> Look:
    """What ``large.look`` finds; the best loads are taken to be those near the bound."""
    group, members = facts.heavy, len(facts.load)
    batch = dominant_batch(group, facts.class_weight)
    bounds, held = load_bounds(batch), find_parts(batch, many_at_once=True)
    bound = float(bounds.load[0])
    bound = pigeonhole(group, bound, 2 * bound)
    if held.alone.any() and float(held.level.max()) > bound * _REACHED:
        held = held.as_one(np.ones(1, bool), bounds.fractional)
    level, alone = held.level[0], held.alone[0]
    best = np.where(alone, level, level * _REACHED)
    if not alone.any():
        best = np.where(level >= level.max(), np.maximum(best, bound), best)
    dominant = tuple(np.flatnonzero(held.dominant[0]).tolist())
    load, owned = best * group.capacity, by_member(pool.home, members)
    by_cost = len(np.unique(pool.cost)) > 1
    return Look(bound, held, dominant, pool.home, load, owned, owned, by_cost)


def group_of(facts: Facts, pool: Pool) -> Group:
    """The partitions that may move as a group, beside what its members keep."""
    heavy, members = facts.heavy, len(facts.load)
    held = pool.home >= 0
    gone = np.bincount(pool.home[held], pool.weight[held], members)
    count = np.bincount(pool.home[held], minlength=members)
    return heavy._replace(
        weight=pool.weight,
        class_=pool.class_,
        home=pool.home,
        cost=pool.cost,
        rest=Rest(facts.load - gone, facts.partitions - count, pool.stands_for),
    )


def plan_cut(
    facts: Facts, pool: Pool, taking_part: Longs, moves_bound: int, wanted: Wanted
) -> tuple[Answer, Doubles]:
    """Plan what may move; with no bound on the difference of counts.

    ``taking_part``: of each of ``facts.heavy`` its number in ``pool``; -1: it stays.

    Returns:
        the plan, with the owners of ``pool``; and of each member the weight above its limit, or,
        negative, what fits below.
    """
    whole = group_of(facts, pool)
    group = weighted_part(whole)
    seen = look_cut(facts, group)
    heaviest = Heaviest(facts.heavy, facts.class_weight, taking_part)
    answer = plan_seen(group, seen, wanted, (moves_bound, heaviest))
    over = group.loads(answer.owner) - _limit(facts, seen, wanted)
    return with_idle(whole, answer), over


def to_open(facts: Facts, pool: Pool, kept: Longs, over: Doubles, most: int) -> Longs:
    """Choose members all of whose partitions may move in the next round, so that some are swapped.

    These are ``most`` partitions at most, beside ``pool``; ``kept`` and ``over`` are as ``Limits``
    and ``plan_cut`` say.

    Returns:
        members above their limits, and some of those with the most room; none: nobody is above, or
        there are no others.
    """
    above = int((over > 0).sum())
    if not above:
        return np.zeros(0, np.int64)
    members = len(over)
    left = facts.partitions - np.bincount(pool.home[pool.home >= 0], minlength=members)
    left -= np.bincount(facts.heavy.home[kept], minlength=members)
    order = np.argsort(-over, kind="stable")
    # The fullest, and then the emptiest.
    order = np.concatenate([order[:above], order[above:][::-1]])
    order = order[left[order] > 0]
    order = order[np.cumsum(left[order]) <= most]
    return np.sort(order[: above * _OPENED])


def curve_cut(facts: Facts, pool: Pool) -> list[CurvePoint]:
    """Trace the curve of a group that was cut."""
    whole = group_of(facts, pool)
    group = weighted_part(whole)
    seen = look_cut(facts, group)
    return curve_of(whole, seen.bound, curve_large(group, seen))


def to_shed(
    member: Longs,
    weight: Doubles,
    cost: Doubles,
    stays: Bools,
    excess: Sequence[Doubles],
    *,
    by_cost: bool,
) -> tuple[Bools, Longs]:
    """Choose what members shed, ``by_cost`` or by number; what ``stays`` is not shed.

    Partitions of a member come heaviest first, then by name. ``excess``: for one limit after the
    other, of each member the weight above; 0: it is not.

    Returns:
        of each partition whether it is shed under some limit; and of each member how many must
        leave it at least, those that stay among them, under the first one.
    """
    members = len(excess[0])
    nothing, none = np.zeros(len(member), np.int64), np.zeros(members)
    eligible, capacity = np.ones((1, members), bool), np.ones(members)
    group = Group(weight, nothing, member, cost, eligible, capacity)
    movable = by_member(np.where(stays, -1, member), members)
    gives = np.zeros(len(member), bool)
    for above in excess:
        gives[shed(group, above, none, movable, by_cost=by_cost)] = True
    return gives, least_to_shed(group, excess[0], none, by_member(member, members))


def bundled(run: Longs, weight: Doubles, quantum: Doubles, unit: Longs) -> Longs:
    """Put light partitions of a run together, neighbours by weight: of each its bundle's first.

    Partitions are by run and within one, heaviest first, then by name. What is as heavy as its
    ``quantum`` stays alone, others make bundles of less than twice that; ``unit`` without weight
    make one.
    """
    places = np.arange(len(run))
    begins = np.diff(run, prepend=-1) != 0
    heap = np.floor(earlier_in_run(run, weight) / np.maximum(quantum, 1e-300))
    # Partitions without weight follow those with; the first one of them in each run begins.
    idle = weight <= 0
    starts_idle = idle & (begins | ~np.append(False, idle[:-1]))
    first_idle = np.maximum.accumulate(np.where(starts_idle, places, 0))
    heap = np.where(idle, (places - first_idle) // unit, heap)
    alone = (weight >= quantum) & ~idle
    begins |= np.diff(heap, prepend=-1.0) != 0
    begins |= starts_idle | alone | np.append(False, alone[:-1])
    lead: Longs = np.maximum.accumulate(np.where(begins, places, 0))
    return lead


def _limit(facts: Facts, seen: Look, wanted: Wanted) -> Doubles:
    relative = relative_limits(wanted.limit, facts.heavy, seen)
    return weights_within(relative, facts.heavy.capacity)


def _limits(facts: Facts, seen: Look, limits: list[Doubles]) -> Limits:
    home = facts.heavy.home
    kept = [p for p in seen.dominant if home[p] >= 0 and seen.held.alone[0, home[p]]]
    quantum = float(facts.class_weight.sum()) / (BUNDLES_A_MEMBER * len(facts.load))
    above = [np.maximum(facts.load - limit, 0.0) for limit in limits]
    return Limits(above or [np.zeros(len(facts.load))], np.array(kept, np.int64), quantum)


def _unmoved(facts: Facts) -> Group:
    """The group with nothing that may move: its members keep all they have."""
    rest = Rest(facts.load, facts.partitions, np.zeros(0, np.int64))
    return facts.heavy.heaviest(0)._replace(rest=rest)
