"""The tables of the group log as arrays: each generation beside those who were in it.

A record of the classic protocol says everything of a generation. Of the new protocol records say
what changes: a member's holds from the next epoch until its next record, a target from the epoch at
which it was computed.
"""

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kassign_spark.coordinator.choice import ASSIGNORS
from kassign_spark.groups.numbers import Longs, Names, key, ranges, starts
from kassign_spark.history.holdings import Owners, assigned_in, present_in
from kassign_spark.history.log_arrays import (
    NOTHING,
    Before,
    Committed,
    Leaves,
    Log,
    Members,
    Present,
    Records,
    View,
    equals,
    flags,
    longs,
    repeats,
    times,
    together,
    whole,
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
    lists = whole(members["topics"])
    topics = together(
        given, log.commits["topic"], owners["topic"], pa.chunked_array([lists.flatten()])
    )
    records = _records(log.generations, groups[0], texts[0])
    subscription, listed = _subscriptions(lists, topics[3], texts[4].code)
    static = len(member.strings) + 1
    columns = Members(
        groups[1].code,
        member.code,
        np.where(instance.code > 0, static + instance.code, member.code),
        subscription,
        instance.code,
        texts[2].code,
        texts[3].code,
    )
    present, spans = present_in(records, members, columns)
    before = Owners(
        groups[4].code,
        topics[2].code,
        longs(owners["partition"]),
        np.where(flags(owners["is_static"]), static + owner.code, owner.code),
    )
    held = assigned_in(
        records, assigned, (groups[2].code, assignee.code, topics[0].code), before, columns, spans
    )
    return View(
        groups[0],
        texts[0],
        member,
        topics[0],
        static,
        _counted(records, present, texts[1].code, *texts[5].code.tolist()),
        present,
        held,
        _committed(records, log.commits, groups[3].code, topics[1].code),
        Leaves(groups[5].code, texts[6].code, texts[7].code, times(leaves["at"])),
        listed,
    )


def _records(table: pa.Table, group: Names, assignor: Names) -> Records:
    offset, generation = longs(table["offset"]), longs(table["generation"])
    order = np.lexsort((offset, group.code))
    gone = flags(table["is_tombstone"])[order]
    kept = order[~gone]
    of, number, at = group.code[kept], generation[kept], offset[kept]
    consumer = equals(table["group_type"], "consumer")[kept]
    # How many tombstones stand before, to see whether one lies between two records.
    deleted = np.cumsum(gone)[~gone]
    same = repeats(of)
    switches = same & ~repeats(consumer)
    lower = np.diff(number, prepend=0) < 0
    # A group that goes to the other protocol leaves a tombstone too, and its epochs go on.
    first = ~same | lower | ((np.diff(deleted, prepend=0) > 0) & ~switches)
    place = np.arange(len(kept))
    again = ~first & repeats(number) & ~switches
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
        is_head=~again,
        previous=np.where(first, -1, place - 1),
        head=np.maximum.accumulate(np.where(again, -1, place)) if len(kept) else place,
    )


def _subscriptions(lists: pa.ListArray, topic: Names, regex: Longs) -> tuple[Longs, pa.ListArray]:
    """Number what members subscribe to: equal sets of topics, and regexes, are one."""
    lengths = pc.fill_null(lists.value_lengths(), 0)
    start = starts(np.asarray(lengths, np.int64))
    numbers = topic.code.astype("<i4")
    as_said = _encoded(numbers, start)
    first = np.unique(as_said, return_index=True)[1]
    count = np.diff(start)[first]
    row = np.repeat(np.arange(len(first)), count)
    listed = numbers[ranges(start[:-1][first], count)]
    order = np.lexsort((listed, row))
    row, listed = row[order], listed[order]
    once = ~repeats(row, listed)
    row, listed = row[once], listed[once]
    begin = starts(np.bincount(row, minlength=len(first)))
    code = _encoded(listed, begin)
    of_code = np.unique(code, return_index=True)[1]
    shown = pa.ListArray.from_arrays(pa.array(begin.astype(np.int32)), pa.array(listed.astype(int)))
    return key(code[as_said], regex), shown.take(pa.array(of_code))


def _encoded(numbers: npt.NDArray[np.int32], start: Longs) -> Longs:
    """Number lists of 32-bit numbers: as strings of bytes, Arrow knows which are equal."""
    texts = pa.LargeBinaryArray.from_buffers(
        pa.large_binary(),
        len(start) - 1,
        [None, pa.py_buffer((start * 4).tobytes()), pa.py_buffer(numbers.tobytes())],
    )
    return np.asarray(texts.dictionary_encode().indices, np.int64)


def _committed(records: Records, table: pa.Table, group: Longs, topic: Longs) -> Committed:
    offset = longs(table["offset"])
    rows = np.flatnonzero(~flags(table["is_tombstone"]))
    rows = rows[np.lexsort((offset[rows], group[rows]))]
    record = records.after(group[rows], offset[rows]) - 1
    known = record >= np.searchsorted(records.group, group[rows])
    return Committed(
        group[rows],
        np.where(known, np.append(records.head, -1)[record], -1),
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
