"""The constrained pass over slices: some partition numbers of all topics of a group.

Members keep their lowest partition numbers first, so a slice must know only how many each member
owns in the slices before it; and free partitions are handed out by topic, so it must know how many
are free of each topic in the other slices. So there are three supersteps, and between them such
counts alone travel.
"""

from itertools import groupby

import numpy as np

from kassign_spark.assignors.equal import Held, quotas
from kassign_spark.engine.commands import Answer, Command, Engine, PerBlock
from kassign_spark.groups.numbers import Flags, Longs, place_in_run


class Slice:
    """A slice of a group.

    Attributes:
        owner: of each partition the member, by topic and then by partition; -1: nobody yet.
        is_moving: of each partition whether another member owns it now, or several dispute it.
    """

    def __init__(self, key: tuple[str, str, int], sizes: Longs, visit: Longs, held: Held) -> None:
        """Take a slice up.

        Args:
            key: cluster_id, group_id, and the first partition of the slice.
            sizes: partitions of each topic in this slice.
            visit: of each member its rank in the order of a Java hash map.
            held: claims, in numbers of this slice.
        """
        self._key, self._sizes, self._visit, self._held = key, sizes, visit, held
        self.owner = np.full(int(sizes.sum()), -1)
        self.is_moving: Flags = np.zeros(len(self.owner), bool)

    @property
    def open_count(self) -> int:
        """How many partitions nobody has yet."""
        return int((self.owner < 0).sum())

    @property
    def unsettled_count(self) -> int:
        """How many partitions nobody has yet."""
        return self.open_count

    @property
    def topic(self) -> Longs:
        """Of each partition the number of its topic."""
        return np.repeat(np.arange(len(self._sizes)), self._sizes)

    def owns(self) -> Answer:
        """Answer key, sizes, visit, and how many partitions each member owns here."""
        owned = np.bincount(self._held.claimant, minlength=len(self._visit))
        return np.array(self._key, object), self._sizes, self._visit, owned

    def keep(self, limit: Longs) -> Answer:
        """Let members keep as many of their first claims; answer what is free of each topic."""
        claimed, claimant, disputed = self._held
        keeps = place_in_run(claimant) < limit[claimant]
        self.owner[claimed[keeps]] = claimant[keeps]
        self.is_moving[disputed] = True
        self.is_moving[claimed[~keeps]] = True
        return (np.bincount(self.topic[self.owner < 0], minlength=len(self._sizes)),)

    def take(self, first: Longs, missing: Longs, extras: int) -> Answer:
        """Hand out what is free; of each topic it begins at ``first`` of all that is free.

        ``missing`` and ``extras`` are as of ``takers``.
        """
        free = np.flatnonzero(self.owner < 0)
        topic = self.topic[free]
        self.owner[free] = takers(first[topic] + place_in_run(topic), missing, extras)
        return ()


def settle_slices(engine: Engine) -> None:
    """Assign all partitions of groups whose members subscribe alike, as ``equal`` does."""
    replies = engine.step([Command("owns")])
    keys = [tuple(key) for key, _, _, _ in replies]
    order = sorted(range(len(keys)), key=keys.__getitem__)
    groups = [[*of] for _, of in groupby(order, key=lambda number: keys[number][:2])]
    keep: list[Longs] = [np.zeros(0, np.int64)] * len(keys)
    missing, extras, first = keep.copy(), [0] * len(keys), keep.copy()
    for slices in groups:
        owned = np.array([replies[number][3] for number in slices])
        total = owned.sum(axis=0)
        partition_count = sum(int(replies[number][1].sum()) for number in slices)
        one_group = np.zeros(len(total), np.int64)
        quota = quotas(one_group, np.array([partition_count]), total, replies[slices[0]][2])
        limits = np.clip(quota.quota - (np.cumsum(owned, axis=0) - owned), 0, owned)
        lacks = quota.least - limits.sum(axis=0)
        for number, limit in zip(slices, limits, strict=True):
            keep[number], missing[number], extras[number] = limit, lacks, int(quota.extras[0])
    free = engine.step([Command("keep", (PerBlock(keep),))])
    for slices in groups:
        # Free partitions of a group are numbered by topic, then by partition, from 0.
        by_topic = np.array([free[number][0] for number in slices]).T
        firsts = (np.cumsum(by_topic) - by_topic.ravel()).reshape(by_topic.shape).T
        for number, of_slice in zip(slices, firsts, strict=True):
            first[number] = of_slice
    engine.step([Command("take", (PerBlock(first), PerBlock(missing), PerBlock(extras)))])


def takers(place: Longs, missing: Longs, extras: int) -> Longs:
    """Who takes the free partitions at ``place`` in the order in which ``equal.takers`` hands out.

    Args:
        place: any places, from 0.
        missing: of each member, by id, how many it is below the least; negative: above it.
        extras: how many places come after all laps.
    """
    lacks = np.maximum(missing, 0)
    in_need = np.bincount(lacks)[::-1].cumsum()[::-1][1:]
    before_lap = np.concatenate(([0], np.cumsum(in_need)))
    lap = np.searchsorted(before_lap, place, side="right") - 1
    in_lap = place - before_lap[lap]
    at_least = np.flatnonzero(missing >= 0)
    more = at_least[np.argsort(missing[at_least], kind="stable")][:extras]
    taker = np.empty(len(place), np.int64)
    is_extra = lap == len(in_need)
    taker[is_extra] = more[in_lap[is_extra]]
    # Those in need are the same from one number that somebody lacks to the next one.
    levels = np.unique(lacks[lacks > 0])
    level = np.searchsorted(levels, lap, side="right")
    for number in np.unique(level[~is_extra]):
        at_level = ~is_extra & (level == number)
        taker[at_level] = np.flatnonzero(lacks >= levels[number])[in_lap[at_level]]
    return taker
