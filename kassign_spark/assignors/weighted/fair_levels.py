"""The fractional optimum: loads if weight were a liquid, and the closed sets that prove it.

For a set R of members, the classes that only R may take weigh W: some member of R has a relative
load of at least W / C(R). The greatest such ratio is the optimum of the fractional problem. Any
levels give valid sets, by thresholds; the better the levels, the better the bound.
"""

from typing import NamedTuple

import numpy as np

from kassign_spark.assignors.weighted.problem import FAR, Bools, Doubles, Longs

_STEPS = 2.0**30
"""Levels are compared in this many steps of the highest one: water finds its level nearly."""
_CLOSE = 1 + 1e-9
_MAX_SWEEPS = 60


class Levels(NamedTuple):
    """Fractional loads of many groups.

    Attributes:
        level: [group, member], relative; 0 of members that nothing is poured to.
        bound: [group], no assignment has a lower maximum.
        closed: [group, member], the set that proves the bound.
    """

    level: Doubles
    bound: Doubles
    closed: Bools


def find_levels(weight: Doubles, eligible: Bools, capacity: Doubles) -> Levels:
    """Pour class after class to equal level over its subscribers, until levels prove themselves.

    Args:
        weight: [group, class].
        eligible: [group, class, member].
        capacity: [group, member].
    """
    groups, classes, members = eligible.shape
    poured_weight = np.zeros(eligible.shape)
    level, bound = np.zeros((groups, members)), np.zeros(groups)
    closed = np.zeros((groups, members), bool)
    open_ = np.arange(groups)
    for _ in range(_MAX_SWEEPS):
        open_eligible, part_weight, room = eligible[open_], weight[open_], capacity[open_]
        poured = poured_weight[open_]
        load = np.cumsum(poured, axis=1)[:, -1] if classes else np.zeros(room.shape)
        for k in range(classes):
            load -= poured[:, k]
            poured[:, k] = _pour(part_weight[:, k], open_eligible[:, k], load, room)
            load += poured[:, k]
        poured_weight[open_], level[open_] = poured, load / room
        threshold, members_of = _threshold(part_weight, open_eligible, room, level[open_])
        better = threshold > bound[open_]
        bound[open_[better]], closed[open_[better]] = threshold[better], members_of[better]
        open_ = open_[level[open_].max(axis=1) > bound[open_] * _CLOSE]
        if classes == 1 or not len(open_):
            break
    return Levels(level, bound, closed)


def _pour(weight: Doubles, eligible: Bools, load: Doubles, capacity: Doubles) -> Doubles:
    """Return how much of its class each member takes so that the lowest levels rise evenly."""
    level = np.where(eligible, load / capacity, FAR)
    order = np.argsort(level, axis=1, kind="stable")
    level = np.take_along_axis(level, order, 1)
    room = np.take_along_axis(np.where(eligible, capacity, 0.0), order, 1)
    filled = np.cumsum(room, axis=1)
    stood = np.cumsum(np.where(room > 0, level * room, 0.0), axis=1)
    heights = (weight[:, None] + stood) / np.maximum(filled, 1e-300)
    above = np.concatenate([level[:, 1:], np.full((len(level), 1), FAR)], axis=1)
    last = np.argmax(heights <= above, axis=1)
    height = np.take_along_axis(heights, last[:, None], 1)
    taken = np.where(room > 0, np.maximum(height - level, 0.0) * room, 0.0)
    taken *= weight[:, None] > 0
    result = np.empty_like(taken)
    np.put_along_axis(result, order, taken, 1)
    return result


def _threshold(
    weight: Doubles, eligible: Bools, capacity: Doubles, level: Doubles
) -> tuple[Doubles, Bools]:
    """Return the best bound over the sets of members above some level, and that set."""
    highest = np.maximum(level.max(axis=1, initial=0.0), 1e-300)[:, None]
    step = np.rint(level / highest * _STEPS)
    lowest = np.where(eligible, step[:, None, :], FAR).min(axis=2, initial=FAR)
    weight = np.where(lowest < FAR, weight, 0.0)
    used = eligible.any(axis=1)
    inside = np.zeros(step.shape)
    for k in range(weight.shape[1]):
        inside += np.where(lowest[:, k, None] >= step, weight[:, k, None], 0.0)
    room = _room_above(step, np.where(used, capacity, 0.0))
    ratio = np.where(room > 0, inside / np.maximum(room, 1e-300), 0.0)
    best = np.argmax(ratio, axis=1)[:, None]
    bound = np.take_along_axis(ratio, best, 1)[:, 0]
    return bound, (step >= np.take_along_axis(step, best, 1)) & used


def _room_above(step: Doubles, capacity: Doubles) -> Doubles:
    """Return [group, member]: the capacity of all members at least as high as this one."""
    order = np.argsort(-step, axis=1, kind="stable")
    descending = np.take_along_axis(step, order, 1)
    sums = np.cumsum(np.take_along_axis(capacity, order, 1), axis=1)
    places = np.broadcast_to(np.arange(step.shape[1]), step.shape)
    is_last = np.ones(step.shape, bool)
    is_last[:, :-1] = descending[:, :-1] != descending[:, 1:]
    last = np.where(is_last, places, step.shape[1])
    last = np.minimum.accumulate(last[:, ::-1], axis=1)[:, ::-1]
    result = np.empty_like(sums)
    np.put_along_axis(result, order, np.take_along_axis(sums, last, 1), 1)
    return result


def same_level(level: Doubles) -> Longs:
    """Return [group, member]: the part of its group that a member is in; each level is one part."""
    order = np.argsort(level, axis=1, kind="stable")
    ascending = np.take_along_axis(level, order, 1)
    rises = ascending[:, 1:] > ascending[:, :-1] * (1 + 1e-6)
    number = np.zeros(level.shape, np.int64)
    number[:, 1:] = np.cumsum(rises, axis=1)
    result = np.empty_like(number)
    np.put_along_axis(result, order, number, 1)
    return result
