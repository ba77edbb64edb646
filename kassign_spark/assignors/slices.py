"""The constrained pass of the sticky assignors, over slices of groups; subscriptions are equal.

Exactly what Kafka's client does (``AbstractStickyAssignor.ConstrainedAssignmentBuilder``, clients
3.7.1 and later, without racks): every member keeps its partitions up to its quota, and the rest is
handed out one by one to those below. Where Kafka loops, this counts.

A slice is some partition numbers of all topics of its groups: all of many groups inside a task, or
a part of one large group. Members keep their lowest partition numbers first, so a slice must know
only how many each member owns in the slices before it; and free partitions are handed out by topic,
so it must know how many are free of each topic in the other slices. So there are three supersteps,
and between them such counts alone travel.
"""

from itertools import groupby
from typing import NamedTuple

import numpy as np

from kassign_spark.engine.commands import Answer, Command, Engine, PerBlock
from kassign_spark.groups.numbers import Flags, Longs, dense, place_in_run, ranges, rows_by, starts


class SliceClaims(NamedTuple):
    """The claims of members, one per row; each member keeps its first ones up to its quota.

    Attributes:
        claimed: of each claim the slot.
        claimant: of each claim the member; claims are by claimant, and then by partition number,
            and by topic where that is equal.
        disputed: slots that several members of one generation claim, so that nobody owns them.
    """

    claimed: Longs
    claimant: Longs
    disputed: Longs


class SliceGroups(NamedTuple):
    """The groups of a slice; another slice of them has the same, but for ``sizes``.

    Attributes:
        member: of each member its group; members are sorted by group and Java's order of ids.
        visit: of each member its rank in the order of its group's Java hash map.
        topic: of each topic its group; topics are sorted by group and Java's order of names.
        sizes: of each topic how many partitions the slice has.
    """

    member: Longs
    visit: Longs
    topic: Longs
    sizes: Longs


class Slice:
    """A slice of groups.

    Attributes:
        owner: of each partition the member, by topic and then by partition; -1: nobody yet.
        is_moving: of each partition whether another member owns it now, or several dispute it.
    """

    def __init__(
        self, groups: SliceGroups, claims: SliceClaims, key: tuple[str | int, ...] = ()
    ) -> None:
        """Take a slice up.

        Args:
            groups: the groups, without racks.
            claims: the claims, in numbers of this slice.
            key: a number at its end puts slices of the same groups, which have the same key
                otherwise, in order.
        """
        self._groups, self._claims, self._key = groups, claims, key
        self.owner = np.full(int(groups.sizes.sum()), -1)
        self.is_moving: Flags = np.zeros(len(self.owner), bool)

    @property
    def open_count(self) -> int:
        """Return the number of partitions that have no owner yet."""
        return int((self.owner < 0).sum())

    @property
    def unsettled_count(self) -> int:
        """Return the number of partitions that have no owner yet."""
        return self.open_count

    @property
    def topic(self) -> Longs:
        """Return the number of each partition's topic."""
        return np.repeat(np.arange(len(self._groups.sizes)), self._groups.sizes)

    def owns(self) -> Answer:
        """Return key, columns of ``SliceGroups``, and how many partitions each member owns here."""
        owned = np.bincount(self._claims.claimant, minlength=len(self._groups.member))
        return np.array(self._key, object), *self._groups, owned

    def keep(self, limit: Longs) -> Answer:
        """Keep that many of each member's first claims; return what is free of each topic."""
        claimed, claimant, disputed = self._claims
        keeps = place_in_run(claimant) < limit[claimant]
        self.owner[claimed[keeps]] = claimant[keeps]
        self.is_moving[disputed] = True
        self.is_moving[claimed[~keeps]] = True
        return (np.bincount(self.topic[self.owner < 0], minlength=len(self._groups.sizes)),)

    def take(self, first: Longs, missing: Longs, extras: Longs) -> Answer:
        """Hand out what is free; of each topic it begins at ``first`` of all that is free.

        ``missing`` and ``extras`` are as in ``takers``.
        """
        free = np.flatnonzero(self.owner < 0)
        topic = self.topic[free]
        place = first[topic] + place_in_run(topic)
        self.owner[free] = takers(place, self._groups.member, missing, extras)
        return ()


def settle_slices(engine: Engine) -> None:
    """Assign all partitions of all groups."""
    replies = engine.step([Command("owns")])
    keys = [tuple(key) for key, *_ in replies]
    order = sorted(range(len(keys)), key=keys.__getitem__)
    slices_of_groups = [[*run] for _, run in groupby(order, key=lambda number: keys[number][:-1])]
    keep: list[Longs] = [np.zeros(0, np.int64)] * len(keys)
    missing, extras, first = keep.copy(), keep.copy(), keep.copy()
    for slices in slices_of_groups:
        parts = [SliceGroups(*replies[number][1:-1]) for number in slices]
        owned = np.array([replies[number][-1] for number in slices])
        sizes = np.sum([part.sizes for part in parts], axis=0)
        quota = quotas(parts[0]._replace(sizes=sizes), owned.sum(axis=0))
        limits = np.clip(quota.quota - (np.cumsum(owned, axis=0) - owned), 0, owned)
        lacks = quota.least - limits.sum(axis=0)
        for number, limit in zip(slices, limits, strict=True):
            keep[number], missing[number], extras[number] = limit, lacks, quota.extras
    free = engine.step([Command("keep", (PerBlock(keep),))])
    for slices in slices_of_groups:
        # Free partitions are numbered by topic, which is by group, then by partition, from 0.
        by_topic = np.array([free[number][0] for number in slices]).T
        firsts = (np.cumsum(by_topic) - by_topic.ravel()).reshape(by_topic.shape).T
        for number, of_slice in zip(slices, firsts, strict=True):
            first[number] = of_slice
    engine.step([Command("take", (PerBlock(first), PerBlock(missing), PerBlock(extras)))])


class Quotas(NamedTuple):
    """The number of partitions that members may keep.

    Attributes:
        least: of each member what every member of its group gets at least.
        quota: of each member how many of its own it may keep.
        extras: of each group how many members may yet get one more than the least.
    """

    least: Longs
    quota: Longs
    extras: Longs


def quotas(groups: SliceGroups, owned: Longs) -> Quotas:
    """Return the quotas: the least number, and one more for as many members as may keep it.

    ``owned`` is of each member.
    """
    group, group_count = groups.member, int(groups.member.max(initial=-1)) + 1
    partition_count = np.bincount(np.repeat(groups.topic, groups.sizes), minlength=group_count)
    member_count = np.bincount(group, minlength=group_count)
    least, places_at_max = np.divmod(partition_count, np.maximum(member_count, 1))
    least, places = least[group], places_at_max[group]
    owns_max = (owned > least) & (places > 0)
    # The first in hash order that own so much may keep it.
    by_visit = np.flatnonzero(owns_max)
    by_visit = by_visit[rows_by(group[by_visit], groups.visit[by_visit])]
    quota = least.copy()
    quota[by_visit] += place_in_run(group[by_visit]) < places[by_visit]
    at_max = np.bincount(group[owns_max], minlength=group_count)
    return Quotas(least, quota, np.maximum(places_at_max - at_max, 0))


def takers(place: Longs, group: Longs, missing: Longs, extras: Longs) -> Longs:
    """Return the members that take the free partitions, which are handed out group by group.

    Members below the least get one each a lap, by id. Then one more goes to each of the first
    ``extras`` of those that have just the least: by the lap in which they got there, and id.

    Args:
        place: places among all free partitions, from 0.
        group: of each member.
        missing: of each member, by id, how many it is below the least; negative: above it.
        extras: of each group.
    """
    # The same members are in need from one number that somebody lacks to the next one: a level.
    # Each group has its levels one after the other, and a last one for those with one more.
    in_need = np.flatnonzero(missing > 0)
    one_of_level, level = dense(group[in_need], missing[in_need])
    one_of_level = in_need[one_of_level]
    lacks, of_group = missing[one_of_level], group[one_of_level]
    first = starts(np.bincount(of_group, minlength=len(extras)) + 1)
    laps = np.ones(first[-1], np.int64)
    number = np.arange(len(lacks)) + of_group
    laps[number] = np.where(number > first[of_group], np.diff(lacks, prepend=0), lacks)

    # Who lacks more than others is in need on all their levels too.
    count = number[level] - first[group[in_need]] + 1
    has_least = np.flatnonzero(missing >= 0)
    more = has_least[rows_by(group[has_least], missing[has_least])]
    more = more[place_in_run(group[more]) < extras[group[more]]]
    member = np.concatenate((np.repeat(in_need, count), more))
    of_member = np.concatenate((ranges(first[group[in_need]], count), first[group[more] + 1] - 1))
    by_level = member[rows_by(of_member)]

    width = np.bincount(of_member, minlength=len(laps))
    begin = starts(width * laps)
    part = np.searchsorted(begin, place, side="right") - 1
    return by_level[starts(width)[part] + (place - begin[part]) % width[part]]
