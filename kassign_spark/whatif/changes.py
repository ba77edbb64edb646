"""Changed copies of groups: what a person could change, as arrays over a batch.

A change makes a copy of a group; the copies are a batch of their own, which any assignor answers.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kassign_spark.coordinator.orders import inverse
from kassign_spark.groups.batch import Batch, Claims
from kassign_spark.groups.group_names import member_ids
from kassign_spark.groups.numbers import (
    Flags,
    Longs,
    key,
    names,
    place_in_run,
    ranges,
    same_lists,
    starts,
)

NOTHING: Longs = np.zeros(0, np.int64)
ADDED = "+{}"
"""Suffix of the id of a new member that resembles an existing one."""


class Changes(NamedTuple):
    """Copies of groups and what is changed in each; members and topics are those of the batch.

    Attributes:
        group: of each copy, the group that it is of.
        assignor: of each copy a number of ``KAFKAS``.
        dropped, dropped_member: which copies lack which members.
        added, added_like: which copies have a further member, that subscribes like this one.
        reads, reading_member, read_topic: which copies' members subscribe to a further topic.
        grown, grown_topic, grown_size: which copies' topics have more partitions.
        led_by_java: which copies run Java's client in all members.
    """

    group: Longs
    assignor: Longs
    dropped: Longs = NOTHING
    dropped_member: Longs = NOTHING
    added: Longs = NOTHING
    added_like: Longs = NOTHING
    reads: Longs = NOTHING
    reading_member: Longs = NOTHING
    read_topic: Longs = NOTHING
    grown: Longs = NOTHING
    grown_topic: Longs = NOTHING
    grown_size: Longs = NOTHING
    led_by_java: Longs = NOTHING


_OF_COPIES = ("dropped", "added", "reads", "grown", "led_by_java")


def together(parts: list[Changes]) -> Changes:
    """Concatenate changes."""
    offsets = np.cumsum([0, *(len(part.group) for part in parts)])
    columns = {}
    for name in Changes._fields:
        values = [getattr(part, name) for part in parts]
        if name in _OF_COPIES:
            values = [v + offset for v, offset in zip(values, offsets[:-1], strict=True)]
        columns[name] = np.concatenate([NOTHING, *values])
    return Changes(**columns)


def pieces(changes: Changes, weight: Longs, most: int) -> Iterator[Changes]:
    """Cut changes, whose rows are by copy, into pieces of copies that follow each other.

    A piece weighs at most ``most``, or is a single copy: ``weight`` is that of each.
    """
    piece = np.cumsum(weight) // most
    for number in np.unique(piece):
        first, end = np.searchsorted(piece, [number, number + 1]).tolist()
        rows = slice(first, end)  # of the copies themselves, or as the column before it has them
        columns: dict[str, Longs] = {}
        for name, values in changes._asdict().items():
            is_of_copies = name in _OF_COPIES
            if is_of_copies:
                rows = slice(*np.searchsorted(values, [first, end]).tolist())
            columns[name] = values[rows] - first if is_of_copies else values[rows]
        yield Changes(**columns)


def apply_changes(batch: Batch, claims: Claims, changes: Changes) -> tuple[Batch, Claims, Flags]:
    """Make the copies: a batch with a group for each, and what its members own.

    Racks are left out: of new members and partitions nobody knows them. A new member owns nothing,
    and what a dropped one owned has no member. Each copy keeps a reader of every topic.

    Returns:
        The batch, its claims, and of each member whether it is only like one of the group's.
    """
    copies = _Copies(batch, changes)
    topics_of = np.diff(batch.first_topic)[changes.group]
    topic = ranges(batch.first_topic[:-1][changes.group], topics_of)
    topic_copy = np.repeat(np.arange(len(changes.group)), topics_of)
    size = batch.size[topic].copy()
    size[copies.find_topic(changes.grown, changes.grown_topic)] = changes.grown_size

    # What each member's source subscribes to, in the numbers of the copies.
    of_set = batch.member_set[copies.like]
    counts = np.diff(batch.set_start)[of_set]
    read = batch.set_topic[ranges(batch.set_start[of_set], counts)]
    reader = np.repeat(np.arange(len(of_set)), counts)
    pairs = key(reader, copies.find_topic(copies.copy[reader], read))
    if len(changes.reads):
        reading = copies.find(changes.reads, changes.reading_member)
        more = key(reading, copies.find_topic(changes.reads, changes.read_topic))
        # Pairs are in order, and stay so: a sort would cost more than all else here.
        more = np.unique(more[reading >= 0])
        place = np.searchsorted(pairs, more)
        is_new = np.append(pairs, -1)[place] != more
        pairs = np.insert(pairs, place[is_new], more[is_new])
    reader, read = pairs >> 32, pairs & 0xFFFF_FFFF
    counts = np.bincount(reader, minlength=len(copies.copy))
    first, set_of_member = same_lists(copies.copy, counts, read)
    set_topic = read[ranges(starts(counts)[:-1][first], counts[first])]
    set_start = starts(counts[first])
    changed = replace(
        batch,
        member_names=copies.strings,
        cluster=batch.cluster[changes.group],
        group=batch.group[changes.group],
        member_group=copies.copy,
        member_name=copies.name,
        generation=np.where(copies.is_new, -1, batch.generation[copies.like]),
        member_seq=np.where(copies.is_new, -1, batch.member_seq[copies.like]),
        instance=np.where(copies.is_new, 0, batch.instance[copies.like]),
        rack=np.zeros(len(copies.like), np.int64),
        assignor=batch.assignor[copies.like],
        regex=batch.regex[copies.like],
        client=np.where(np.isin(copies.copy, changes.led_by_java), 0, batch.client[copies.like]),
        is_leader=batch.is_leader[copies.like],
        subscription=set_of_member,
        list_topics=batch.topic_name[topic][set_topic],
        list_start=set_start,
        subscribed=np.arange(len(first)),
        set_topic=set_topic,
        set_start=set_start,
        topic_group=topic_copy,
        topic_name=batch.topic_name[topic],
        size=size,
        racks=None,
    )
    return changed, copies.claims(claims, changed), copies.is_new


class _Copies:
    """The members of all copies, by copy and Java's order of ids; and where all is in the copies.

    Attributes:
        copy: of each.
        like: the member of the batch that it is, or is like.
        is_new: whether it is only like it.
        name: code of its id.
        strings: ids by code - 1.
    """

    def __init__(self, batch: Batch, changes: Changes) -> None:
        counts = np.diff(batch.first_member)[changes.group]
        copy = np.repeat(np.arange(len(changes.group)), counts)
        like = ranges(batch.first_member[:-1][changes.group], counts)
        stays = np.ones(len(copy), bool)
        self._batch, self._group = batch, changes.group
        self._member_shift = starts(counts)[:-1] - batch.first_member[:-1][changes.group]
        first_topic = starts(np.diff(batch.first_topic)[changes.group])[:-1]
        self._topic_shift = first_topic - batch.first_topic[:-1][changes.group]
        stays[changes.dropped_member + self._member_shift[changes.dropped]] = False
        order = np.lexsort((changes.added_like, changes.added))
        added, added_like = changes.added[order], changes.added_like[order]
        nth = place_in_run(key(added, added_like)) + 1
        code_of_old, code_of_new, self.strings = _names(batch, added_like, nth)
        old = np.flatnonzero(stays)
        self.copy = np.concatenate((copy[old], added))
        self.like = np.concatenate((like[old], added_like))
        self.is_new: Flags = np.arange(len(self.copy)) >= len(old)
        self.name = np.concatenate((code_of_old[batch.member_name[like[old]] - 1], code_of_new))
        by_name = np.lexsort((self.name, self.copy))
        self._place = np.full(len(copy), -1)
        self._place[old] = inverse(by_name)[: len(old)]
        self.copy, self.like = self.copy[by_name], self.like[by_name]
        self.is_new, self.name = self.is_new[by_name], self.name[by_name]

    def find(self, copy: Longs, member: Longs) -> Longs:
        """Return the position of a batch's member in a copy; -1: the copy does not have it."""
        return self._place[member + self._member_shift[copy]]

    def find_topic(self, copy: Longs, topic: Longs) -> Longs:
        """Return the position of a batch's topic in a copy."""
        return topic + self._topic_shift[copy]

    def claims(self, claims: Claims, made: Batch) -> Claims:
        """Return the batch's claims in all copies, which are ``made``."""
        group = self._group
        by_group = np.argsort(claims.group, kind="stable")
        first = starts(np.bincount(claims.group, minlength=self._batch.group_count))
        counts = np.diff(first)[group]
        row = by_group[ranges(first[:-1][group], counts)]
        copy = np.repeat(np.arange(len(group)), counts)
        member = np.full(len(row), -1)
        claimed = claims.member[row] >= 0
        member[claimed] = self.find(copy[claimed], claims.member[row][claimed])
        exists = claims.slot[row] >= 0
        topic = self.find_topic(copy[exists], self._batch.slot_topic[claims.slot[row][exists]])
        slot = np.full(len(row), -1)
        slot[exists] = made.first_slot[topic] + claims.partition[row][exists]
        name, partition = claims.name[row], claims.partition[row]
        return Claims(member, name, copy, claims.topic[row], partition, slot)


def _names(batch: Batch, like: Longs, nth: Longs) -> tuple[Longs, Longs, pa.Array]:
    """Name new members after those that they are like; codes of old names, of new, and strings."""
    if not len(like):
        return np.arange(1, len(batch.member_names) + 1), NOTHING, batch.member_names
    suffix = pa.array([ADDED.format(number) for number in range(int(nth.max()) + 1)])
    new = pc.binary_join_element_wise(member_ids(batch, like), suffix.take(pa.array(nth)), "")
    both = names(pa.chunked_array([batch.member_names, new]), java_order=True)
    old, added = both.split(len(batch.member_names), len(new))
    return old.code, added.code, both.strings
