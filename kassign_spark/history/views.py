"""The tables of the group log as arrays: each generation beside those who were in it.

A record of the classic protocol says everything of a generation. Of the new protocol records say
what changes: a member's holds from the next epoch until its next record, a target from the epoch at
which it was computed.
"""

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kassign_spark.coordinator.choice import ASSIGNORS
from kassign_spark.groups.numbers import Flags, Longs, Names, find, key, ranges, starts
from kassign_spark.history.log_arrays import (
    NOTHING,
    Assigned,
    Before,
    Committed,
    Leaves,
    Log,
    Present,
    Records,
    View,
    equals,
    flags,
    longs,
    times,
    together,
)


def view(log: Log, earlier: Before = NOTHING) -> View:
    """Read a log, after what came before it."""
    owners, leaves = earlier
    tables = (*log, owners, leaves)
    groups = together(*(table["group_id"] for table in tables))
    members, assigned = log.log_members, log.log_assignment
    member, assignee, owner, instance = together(
        members["member_id"], assigned["member_id"], owners["owner"], members["group_instance_id"]
    )
    texts = together(
        log.generations["assignor"],
        members["assignor"],
        members["client_id"],
        members["client_host"],
        members["topics_regex"],
        pa.chunked_array([pa.array(ASSIGNORS)]),
        leaves["client_id"],
        leaves["client_host"],
    )
    given = pc.coalesce(assigned["topic"], assigned["topic_id"])
    lists = members["topics"].combine_chunks()
    if isinstance(lists, pa.ChunkedArray):
        lists = pa.array([], pa.list_(pa.string()))
    topics = together(
        given, log.commits["topic"], owners["topic"], pa.chunked_array([lists.flatten()])
    )
    records = _records(log.generations, groups[0], texts[0])
    subscription, listed = _subscriptions(lists, topics[3], texts[4].code)
    static = len(member.strings) + 1
    columns = _Members(
        groups[1].code,
        member.code,
        instance.code,
        np.where(instance.code > 0, static + instance.code, member.code),
        subscription,
        texts[2].code,
        texts[3].code,
    )
    present, spans = _present(records, members, columns)
    before = _Owners(
        groups[4].code,
        topics[2].code,
        longs(owners["partition"]),
        np.where(flags(owners["is_static"]), static + owner.code, owner.code),
    )
    held = _assigned(
        records, assigned, (groups[2].code, assignee.code, topics[0].code), before, columns, spans
    )
    return View(
        groups[0].strings,
        texts[0].strings,
        member.strings,
        topics[0].strings,
        static,
        _counted(records, present, texts[1].code, *texts[5].code.tolist()),
        present,
        held,
        _committed(records, log.commits, groups[3].code, topics[1].code),
        Leaves(groups[5].code, texts[6].code, texts[7].code, times(leaves["at"])),
        listed,
    )


class _Members(NamedTuple):
    """Columns of ``log_members`` as codes."""

    group: Longs
    member: Longs
    instance: Longs
    identity: Longs
    subscription: Longs
    client: Longs
    host: Longs


class _Owners(NamedTuple):
    group: Longs
    topic: Longs
    partition: Longs
    owner: Longs


class _Spans(NamedTuple):
    """Rows of ``log_members`` of kind target, and the records that they hold for."""

    row: Longs
    offset: Longs
    first: Longs
    size: Longs


def _records(table: pa.Table, group: Names, assignor: Names) -> Records:
    offset, generation = longs(table["offset"]), longs(table["generation"])
    order = np.lexsort((offset, group.code))
    gone = flags(table["is_tombstone"])[order]
    kept = order[~gone]
    of, number, at = group.code[kept], generation[kept], offset[kept]
    consumer = equals(table["group_type"], "consumer")[kept]
    # How many tombstones stand before, to see whether one lies between two records.
    deleted = np.cumsum(gone)[~gone]
    same = np.diff(of, prepend=-1) == 0
    switches = same & (np.diff(consumer.astype(np.int64), prepend=0) != 0)
    lower = np.diff(number, prepend=0) < 0
    # A group that goes to the other protocol leaves a tombstone too, and its epochs go on.
    first = ~same | lower | ((np.diff(deleted, prepend=0) > 0) & ~switches)
    place = np.arange(len(kept))
    repeats = ~first & (np.diff(number, prepend=-1) == 0) & ~switches
    return Records(
        group=of,
        era=np.cumsum(first),
        offset=at,
        at=times(table["at"])[kept],
        generation=number,
        assignor=assignor.code[kept],
        member_count=longs(table["member_count"], 0)[kept],
        is_consumer=consumer,
        is_first=first,
        is_head=~repeats,
        previous=np.where(first, -1, place - 1),
        head=np.maximum.accumulate(np.where(repeats, -1, place)) if len(kept) else place,
    )


def _subscriptions(lists: pa.ListArray, topic: Names, regex: Longs) -> tuple[Longs, pa.ListArray]:
    """Number what members subscribe to: equal sets of topics, and regexes, are one."""
    lengths = pc.fill_null(lists.value_lengths(), 0)
    start = starts(np.asarray(lengths, np.int64))
    numbers = topic.code.astype("<i4")
    as_said = _encoded(numbers, start)
    said, first = np.unique(as_said, return_index=True)
    count = np.diff(start)[first]
    row = np.repeat(np.arange(len(first)), count)
    listed = numbers[ranges(start[:-1][first], count)]
    order = np.lexsort((listed, row))
    row, listed = row[order], listed[order]
    once = (np.diff(row, prepend=-1) != 0) | (np.diff(listed, prepend=-1) != 0)
    row, listed = row[once], listed[once]
    begin = starts(np.bincount(row, minlength=len(first)))
    code = _encoded(listed, begin)[np.searchsorted(said, as_said)]
    of_code = np.full(code.max(initial=-1) + 1, 0)
    of_code[_encoded(listed, begin)] = np.arange(len(first))
    shown = pa.ListArray.from_arrays(pa.array(begin.astype(np.int32)), pa.array(listed.astype(int)))
    return key(code, regex), shown.take(pa.array(of_code))


def _encoded(numbers: npt.NDArray[np.int32], start: Longs) -> Longs:
    """Number lists of 32-bit numbers: as strings of bytes, Arrow knows which are equal."""
    texts = pa.LargeBinaryArray.from_buffers(
        pa.large_binary(),
        len(start) - 1,
        [None, pa.py_buffer((start * 4).tobytes()), pa.py_buffer(numbers.tobytes())],
    )
    return np.asarray(texts.dictionary_encode().indices, np.int64)


def _present(records: Records, table: pa.Table, of: _Members) -> tuple[Present, _Spans]:
    offset, gone = longs(table["offset"]), flags(table["is_tombstone"])
    in_group = np.flatnonzero(equals(table["record"], "group"))
    at = _record_at(records, of.group[in_group], offset[in_group])
    in_group, at = in_group[at >= 0], at[at >= 0]
    rows, first, count = _spans(records, table, "member", of, offset, gone)
    row = np.concatenate((in_group, np.repeat(rows, count)))
    record = np.concatenate((at, ranges(first, count)))
    present = Present(
        record,
        row,
        of.member[row],
        of.identity[row],
        of.subscription[row],
        of.instance[row],
        of.client[row],
        of.host[row],
    )
    row, first, count = _spans(records, table, "target", of, offset, gone)
    return present, _Spans(row, offset[row], first, count)


def _record_at(records: Records, group: Longs, offset: Longs) -> Longs:
    """The record of a group that stands at an offset; -1: none."""
    if not len(records.group):
        return np.full(len(group), -1)
    place = np.minimum(records.after(group, offset), len(records.group) - 1)
    found = (records.group[place] == group) & (records.offset[place] == offset)
    return np.where(found, place, -1)


def _spans(
    records: Records, table: pa.Table, kind: str, of: _Members, offset: Longs, gone: Flags
) -> tuple[Longs, Longs, Longs]:
    """The rows of a kind of the new protocol, the first record each holds for, and how many."""
    rows = np.flatnonzero(equals(table["record"], kind))
    rows = rows[np.lexsort((offset[rows], of.member[rows], of.group[rows]))]
    group, member = of.group[rows], of.member[rows]
    first = records.after(group, offset[rows])
    begin = np.searchsorted(records.group, group)
    end = np.searchsorted(records.group, group, side="right")
    if kind == "target":
        # It is written after the epoch that it is computed for; that it goes, before the next.
        first = np.where(gone[rows], first, np.maximum(first - 1, begin))
    goes_on = np.append((group[1:] == group[:-1]) & (member[1:] == member[:-1]), False)[: len(rows)]
    last = np.where(goes_on, np.append(first[1:], 0)[: len(rows)], end)
    kept = ~gone[rows]
    return rows[kept], first[kept], np.maximum(last - first, 0)[kept]


def _assigned(
    records: Records,
    table: pa.Table,
    codes: tuple[Longs, Longs, Longs],
    before: _Owners,
    members: _Members,
    spans: _Spans,
) -> Assigned:
    group, member, topic = codes
    offset, partition = longs(table["offset"]), longs(table["partition"])
    owner_of = _identities(group, member, members)
    given = np.flatnonzero(equals(table["role"], "assigned"))
    at = _record_at(records, group[given], offset[given])
    known = at >= 0
    known[known] = ~records.is_consumer[at[known]] & records.is_head[at[known]]
    given, at = given[known], at[known]

    target = np.flatnonzero(equals(table["role"], "target"))
    said = members.group[spans.row], members.member[spans.row], spans.offset
    wanted = group[target], member[target], offset[target]
    places, count = _targets_of(said, wanted, spans)
    row = np.concatenate((given, np.repeat(target, count)))
    record = np.concatenate((at, ranges(places, count)))
    in_era = np.searchsorted(records.group, before.group)
    known = in_era < np.searchsorted(records.group, before.group, side="right")
    return Assigned(
        np.concatenate((record, np.full(int(known.sum()), -1))),
        np.concatenate((records.era[record], records.era[in_era[known]])),
        np.concatenate((topic[row], before.topic[known])),
        np.concatenate((partition[row], before.partition[known])),
        np.concatenate((owner_of[row], before.owner[known])),
    )


def _targets_of(
    said: tuple[Longs, Longs, Longs], wanted: tuple[Longs, Longs, Longs], spans: _Spans
) -> tuple[Longs, Longs]:
    """The first record that each partition of a target holds for, and how many.

    Args:
        said: group, member and offset of the rows of ``spans``.
        wanted: the same of the partitions.
        spans: the records that the rows hold for.
    """
    if not len(spans.row):
        return np.zeros(len(wanted[0]), np.int64), np.zeros(len(wanted[0]), np.int64)
    offsets = np.unique(said[2])
    members = np.unique(key(said[0], said[1]))

    def keys(group: Longs, member: Longs, offset: Longs) -> Longs:
        who, at = find(members, key(group, member)), find(offsets, offset)
        return np.where((who < 0) | (at < 0), -1, key(who, at))

    known = keys(*said)
    order = np.argsort(known)
    place = find(known[order], keys(*wanted))
    span = order[place]
    return spans.first[span], np.where(place >= 0, spans.size[span], 0)


def _identities(group: Longs, member: Longs, members: _Members) -> Longs:
    """The identity of each member that is named beside its group."""
    static = np.flatnonzero(members.instance)
    if not len(static):
        return member
    known, first = np.unique(key(members.group[static], members.member[static]), return_index=True)
    place = find(known, key(group, member))
    return np.where(place >= 0, members.identity[static[first]][place], member)


def _committed(records: Records, table: pa.Table, group: Longs, topic: Longs) -> Committed:
    offset = longs(table["offset"])
    rows = np.flatnonzero(~flags(table["is_tombstone"]))
    rows = rows[np.lexsort((offset[rows], group[rows]))]
    record = records.after(group[rows], offset[rows]) - 1
    known = record >= np.searchsorted(records.group, group[rows])
    heads = records.head[record] if len(records.head) else record
    return Committed(
        group[rows],
        np.where(known, heads, -1),
        topic[rows],
        longs(table["partition"])[rows],
        offset[rows],
        times(table["at"])[rows],
    )


def _counted(records: Records, present: Present, vote: Longs, uniform: int, range_: int) -> Records:
    """Give epochs their members' count and assignor: the one of most votes, `uniform` of none."""
    size = len(records.group)
    consumer = records.is_consumer
    count = np.bincount(present.record, minlength=size)
    votes = vote[present.row]
    for_range = np.bincount(present.record, votes == range_, size)
    for_uniform = np.bincount(present.record, votes == uniform, size)
    chosen = np.where(count == 0, 0, np.where(for_range > for_uniform, range_, uniform))
    return replace(
        records,
        member_count=np.where(consumer, count, records.member_count),
        assignor=np.where(consumer, chosen, records.assignor),
    )
