"""The parts of a group: members with a fair level of their own, so that each is held to its own.

A partition that outweighs the fair level of every member that may take it is dominant, and gets a
member for itself. The balanced fractional loads of the rest give levels; members of one level are
a part. Parts only set limits, each the caller's by its level; a partition may stay outside of its
part.
"""

from typing import NamedTuple

import numpy as np

from kassign_spark.assignors.weighted.bounds import LoadBounds
from kassign_spark.assignors.weighted.fair_levels import find_levels, same_level
from kassign_spark.assignors.weighted.options import Limit
from kassign_spark.assignors.weighted.problem import Bools, Doubles, Longs, PaddedGroups, loads
from kassign_spark.assignors.weighted.reach import CLOSE, BestLoads, find_reach, keep_better

_ABOVE = 1 + 1e-9
_NEARLY_LARGEST = 0.95
_ROUNDING = 1 + 1e-12
"""A limit times a capacity is rounded; what was meant to fit still fits."""
_LEAST_LEVEL = 1e-4


class Parts(NamedTuple):
    """The level that each member is measured against.

    Attributes:
        level: [group, member], the fair relative load.
        part: [group, member]; a member with a dominant partition is a part of its own.
        dominant: [group, partition].
        alone: [group, member], whether it has a dominant partition.
    """

    level: Doubles
    part: Longs
    dominant: Bools
    alone: Bools

    def as_one(self, groups: Bools, level: Doubles) -> "Parts":
        """Hold all members of some groups to one ``level``, [group], as one part."""
        flat = groups[:, None]
        return Parts(
            np.where(flat, level[:, None], self.level),
            np.where(flat, 0, self.part),
            self.dominant & ~flat,
            self.alone & ~flat,
        )


def find_parts(batch: PaddedGroups, *, many_at_once: bool = False) -> Parts:
    """Peel the dominant partitions off, heaviest first; then take the levels of the rest.

    ``many_at_once``, for a single large group: peel all above the present levels before new ones.
    """
    dominant = np.zeros(batch.weight.shape, bool)
    alone = np.zeros(batch.capacity.shape, bool)
    level = np.zeros(batch.capacity.shape)
    own_level = np.zeros(batch.capacity.shape)
    open_ = np.arange(len(dominant))
    while len(open_):
        subset, closed, peeled = batch.take(open_), alone[open_], dominant[open_]
        eligible = subset.eligible & ~closed[:, None, :]
        weight = _rest(subset, peeled)
        level[open_] = find_levels(weight, eligible, subset.capacity).level
        fair = np.where(eligible, (level[open_] * subset.capacity)[:, None, :], 0.0).max(axis=2)
        fair = np.take_along_axis(np.where(eligible.any(axis=2), fair, np.inf), subset.class_, 1)
        above = subset.is_there & ~peeled & (subset.weight > fair * _ABOVE) & (subset.weight > 0)
        if many_at_once and above.any():
            _peel_many(
                subset, weight, eligible, np.flatnonzero(above[0]), dominant, alone, own_level
            )
            if dominant[0, above[0]].all():
                continue
            break
        first = np.argmax(above, axis=1)
        member = _member_for(subset, eligible, first)
        may_close = above.any(axis=1) & _may_close(weight, subset, eligible, first, member)
        open_, first, member = open_[may_close], first[may_close], member[may_close]
        dominant[open_, first] = True
        alone[open_, member] = True
        level[open_, member] = 0.0
        own_level[open_, member] = batch.weight[open_, first] / batch.capacity[open_, member]
    level = np.where(alone, 0.0, level)
    members = batch.capacity.shape[1]
    part = np.where(alone, members + np.arange(members), same_level(level))
    return Parts(np.where(alone, own_level, level), part, dominant, alone)


def reach_parts(
    batch: PaddedGroups, bounds: LoadBounds, parts: Parts, kicks: int
) -> tuple[BestLoads, Parts]:
    """Search the best loads part by part; where parts cost the maximum anything, as one part."""
    serves = batch.eligible.any(axis=1)
    first = np.argmax(serves, axis=1)[:, None]
    several = (serves & (parts.part != np.take_along_axis(parts.part, first, 1))).any(axis=1)
    level = np.maximum(parts.level, parts.level.max(axis=1)[:, None] * _LEAST_LEVEL)
    measured = np.where(several[:, None], level, bounds.load[:, None])
    reached = find_reach(batch, measured, bounds.load, kicks)
    one = ~several
    again = np.flatnonzero(several & (reached.most > bounds.load * CLOSE))
    if len(again):
        subset = batch.take(again)
        as_one = np.broadcast_to(bounds.load[again][:, None], subset.capacity.shape)
        whole = find_reach(subset, as_one, bounds.load[again], kicks)
        lower = whole.most < reached.most[again]
        one[again[lower]] = True
        keep_better(reached, again[lower], whole.take(np.flatnonzero(lower)))
    return reached, parts.as_one(one, bounds.fractional)


def limits_by_part(limit: Limit, parts: Parts, reached: Doubles, power: Doubles) -> Doubles:
    """Return [group, member]: the greatest relative load that each member may have.

    ``reached``, the best relative load found, is [group, member].
    """
    level, part = parts.level, parts.part
    if limit.max_load is not None:
        return np.broadcast_to((limit.max_load * power)[:, None], level.shape)
    if limit.max_skew is not None:
        skewed: Doubles = level * limit.max_skew
        return skewed
    assert limit.tolerance is not None
    groups, members = level.shape
    best = np.zeros((groups, 2 * members))
    rows = np.broadcast_to(np.arange(groups)[:, None], part.shape)
    np.maximum.at(best, (rows, part), reached)
    result: Doubles = np.maximum(best[rows, part], level) * (1 + limit.tolerance)
    return result


def weights_within(relative: Doubles, capacity: Doubles) -> Doubles:
    """Return [group, member]: the weight that fits under a relative limit; whole."""
    result: Doubles = np.floor(relative * capacity * _ROUNDING)
    return result


def shown_level(batch: PaddedGroups, parts: Parts, values: Doubles) -> Doubles:
    """Return [group]: the value of the highest part of members that have no dominant partition."""
    common = batch.eligible.any(axis=1) & ~parts.alone
    part = np.argmax(np.where(common, parts.level, -1.0), axis=1)[:, None]
    return np.take_along_axis(values, part, 1)[:, 0]


def _peel_many(
    batch: PaddedGroups,
    weight: Doubles,
    eligible: Bools,
    partitions: Longs,
    dominant: Bools,
    alone: Bools,
    own_level: Doubles,
) -> None:
    """Close a member for each partition, until one cannot be closed."""
    for partition in partitions.tolist():
        one = np.array([partition])
        member = _member_for(batch, eligible, one)
        if (
            not eligible[0, batch.class_[0, partition], member[0]]
            or not (_may_close(weight, batch, eligible, one, member)[0])
        ):
            return
        dominant[0, partition] = True
        alone[0, member] = True
        own_level[0, member] = batch.weight[0, partition] / batch.capacity[0, member]
        weight[0, batch.class_[0, partition]] -= batch.weight[0, partition]
        eligible[0, :, member] = False


def _rest(batch: PaddedGroups, dominant: Bools) -> Doubles:
    """Return [group, class]: the weight without dominant partitions; exact for whole weights."""
    weight = batch.class_weight.copy()
    group, partition = np.nonzero(dominant)
    np.subtract.at(weight, (group, batch.class_[group, partition]), batch.weight[group, partition])
    return weight


def _member_for(batch: PaddedGroups, eligible: Bools, partition: Longs) -> Longs:
    """Return who gets a dominant partition: its owner if about the largest, or the largest.

    Among the largest: few classes, little owned weight, then the name.
    """
    groups = np.arange(len(partition))
    takes = eligible[groups, batch.class_[groups, partition]]
    capacity = np.where(takes, batch.capacity, 0.0)
    largest = capacity.max(axis=1)
    home = batch.home[groups, partition]
    stays = (home >= 0) & takes[groups, home]
    stays &= capacity[groups, home] >= _NEARLY_LARGEST * largest
    candidates = takes & (capacity >= largest[:, None])
    for key in (eligible.sum(axis=1), loads(batch, batch.home)):
        least = np.where(candidates, key, np.inf).min(axis=1)
        candidates &= key <= least[:, None]
    return np.where(stays, home, np.argmax(candidates, axis=1))


def _may_close(
    weight: Doubles, batch: PaddedGroups, eligible: Bools, partition: Longs, member: Longs
) -> Bools:
    """Return whether the other partitions of the member's classes find a member without it."""
    groups = np.arange(len(partition))
    left = weight.copy()
    left[groups, batch.class_[groups, partition]] -= batch.weight[groups, partition]
    serves = eligible[groups, :, member]
    result: Bools = ~(serves & (left > 0) & (eligible.sum(axis=2) < 2)).any(axis=1)
    result &= eligible.any(axis=1).sum(axis=1) > 1
    return result
