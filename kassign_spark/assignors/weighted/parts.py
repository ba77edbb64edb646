"""The parts of a group: members with a fair level of their own, so that each is held to its own.

A partition that outweighs the fair level of every member that may take it is dominant, and gets a
member for itself. The balanced fractional loads of the rest give levels; members of one level are
a part. Parts only set limits; a partition may stay outside of its part.
"""

from typing import NamedTuple

import numpy as np

from kassign_spark.assignors.weighted.levels import find_levels, same_level
from kassign_spark.assignors.weighted.problem import Batch, Bools, Doubles, Longs, loads

_ABOVE = 1 + 1e-9
_NEARLY_LARGEST = 0.95


class Parts(NamedTuple):
    """What each member is measured by.

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


def find_parts(batch: Batch, *, many_at_once: bool = False) -> Parts:
    """Peel the dominant partitions off, heaviest first; then take the levels of the rest.

    Args:
        batch: groups.
        many_at_once: peel all that are above the present levels before new levels are taken; for
            a single large group.
    """
    dominant = np.zeros(batch.weight.shape, bool)
    alone = np.zeros(batch.capacity.shape, bool)
    level = np.zeros(batch.capacity.shape)
    own_level = np.zeros(batch.capacity.shape)
    open_ = np.arange(len(dominant))
    while len(open_):
        some, closed, peeled = batch.take(open_), alone[open_], dominant[open_]
        eligible = some.eligible & ~closed[:, None, :]
        weight = _rest(some, peeled)
        level[open_] = find_levels(weight, eligible, some.capacity).level
        fair = np.where(eligible, (level[open_] * some.capacity)[:, None, :], 0.0).max(axis=2)
        fair = np.take_along_axis(np.where(eligible.any(axis=2), fair, np.inf), some.class_, 1)
        above = some.is_there & ~peeled & (some.weight > fair * _ABOVE) & (some.weight > 0)
        if many_at_once and above.any():
            _peel_many(some, weight, eligible, np.flatnonzero(above[0]), dominant, alone, own_level)
            if dominant[0, above[0]].all():
                continue
            break
        first = np.argmax(above, axis=1)
        member = _member_for(some, eligible, first)
        found = above.any(axis=1) & _may_close(weight, some, eligible, first, member)
        open_, first, member = open_[found], first[found], member[found]
        dominant[open_, first] = True
        alone[open_, member] = True
        level[open_, member] = 0.0
        own_level[open_, member] = batch.weight[open_, first] / batch.capacity[open_, member]
    level = np.where(alone, 0.0, level)
    members = batch.capacity.shape[1]
    part = np.where(alone, members + np.arange(members), same_level(level))
    return Parts(np.where(alone, own_level, level), part, dominant, alone)


def _peel_many(
    batch: Batch,
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


def _rest(batch: Batch, dominant: Bools) -> Doubles:
    """[group, class]: the weight without the dominant partitions; exact, as weights are whole."""
    weight = batch.class_weight.copy()
    group, partition = np.nonzero(dominant)
    np.subtract.at(weight, (group, batch.class_[group, partition]), batch.weight[group, partition])
    return weight


def _member_for(batch: Batch, eligible: Bools, partition: Longs) -> Longs:
    """Who gets a dominant partition: its owner if that is about as large as any, else the largest.

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
    weight: Doubles, batch: Batch, eligible: Bools, partition: Longs, member: Longs
) -> Bools:
    """Whether everything else of the member's classes still finds somebody without it."""
    groups = np.arange(len(partition))
    left = weight.copy()
    left[groups, batch.class_[groups, partition]] -= batch.weight[groups, partition]
    serves = eligible[groups, :, member]
    result: Bools = ~(serves & (left > 0) & (eligible.sum(axis=2) < 2)).any(axis=1)
    result &= eligible.any(axis=1).sum(axis=1) > 1
    return result
