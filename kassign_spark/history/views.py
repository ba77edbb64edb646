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

from kassign_spark.client_libraries import COORDINATOR_ASSIGNORS
from kassign_spark.groups.numbers import Longs, Names, find, key, ranges, starts
from kassign_spark.history.log_arrays import (
    NOTHING,
    Assigned,
    Committed,
    EarlierLog,
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
    rows_at,
    run_ends,
    times,
    together,
)
from kassign_spark.log.values import whole


class Spans(NamedTuple):
    """Rows of ``log_members`` of a kind of the new protocol, and the records they hold for."""

    row: Longs
    offset: Longs
    first: Longs
    size: Longs


class EarlierOwners(NamedTuple):
    """The last owner of each partition before the log begins, as codes."""

    group: Longs
    topic: Longs
    partition: Longs
    owner: Longs


def build_view(log: Log, earlier: EarlierLog = NOTHING) -> View:
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
        pa.chunked_array([pa.array(COORDINATOR_ASSIGNORS)]),
        leaves["client_id"],
        leaves["client_host"],
    )
    topics_or_ids = pc.coalesce(assigned["topic"], assigned["topic_id"])
    lists = whole(members["topics"])
    topics = together(
        topics_or_ids, log.commits["topic"], owners["topic"], pa.chunked_array([lists.flatten()])
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
    present, spans = _present_in(records, members, columns)
    before = EarlierOwners(
        groups[4].code,
        topics[2].code,
        longs(owners["partition"]),
        np.where(flags(owners["is_static"]), static + owner.code, owner.code),
    )
    assignments = _assigned_in(
        records, assigned, (groups[2].code, assignee.code, topics[0].code), before, columns, spans
    )
    return View(
        groups[0],
        texts[0],
        member,
        topics[0],
        static,
        _count_members(records, present, texts[1].code, *texts[5].code.tolist()),
        present,
        assignments,
        _select_committed(records, log.commits, groups[3].code, topics[1].code),
        Leaves(groups[5].code, texts[6].code, texts[7].code, times(leaves["at"])),
        listed,
    )


def _records(table: pa.Table, group: Names, assignor: Names) -> Records:
    offset, generation = longs(table["offset"]), longs(table["generation"])
    order = np.lexsort((offset, group.code))
    gone = flags(table["is_tombstone"])[order]
    kept = order[~gone]
    group_code, number, at = group.code[kept], generation[kept], offset[kept]
    consumer = equals(table["group_type"], "consumer")[kept]
    # How many tombstones stand before, to see whether one lies between two records.
    deleted = np.cumsum(gone)[~gone]
    same = repeats(group_code)
    switches = same & ~repeats(consumer)
    lower = np.diff(number, prepend=0) < 0
    # A group that goes to the other protocol leaves a tombstone too, and its epochs go on.
    first = ~same | lower | ((np.diff(deleted, prepend=0) > 0) & ~switches)
    place = np.arange(len(kept))
    again = ~first & repeats(number) & ~switches
    return Records(
        group=group_code,
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
    as_sent = _encode_lists(numbers, start)
    first = np.unique(as_sent, return_index=True)[1]
    count = np.diff(start)[first]
    row = np.repeat(np.arange(len(first)), count)
    topics = numbers[ranges(start[:-1][first], count)]
    order = np.lexsort((topics, row))
    row, topics = row[order], topics[order]
    once = ~repeats(row, topics)
    row, topics = row[once], topics[once]
    begin = starts(np.bincount(row, minlength=len(first)))
    code = _encode_lists(topics, begin)
    of_code = np.unique(code, return_index=True)[1]
    shown = pa.ListArray.from_arrays(pa.array(begin.astype(np.int32)), pa.array(topics.astype(int)))
    return key(code[as_sent], regex), shown.take(pa.array(of_code))


def _encode_lists(numbers: npt.NDArray[np.int32], start: Longs) -> Longs:
    """Number lists of 32-bit numbers: as strings of bytes, Arrow knows which are equal."""
    texts = pa.LargeBinaryArray.from_buffers(
        pa.large_binary(),
        len(start) - 1,
        [None, pa.py_buffer((start * 4).tobytes()), pa.py_buffer(numbers.tobytes())],
    )
    return np.asarray(texts.dictionary_encode().indices, np.int64)


def _present_in(records: Records, table: pa.Table, members: Members) -> tuple[Present, Spans]:
    """Return the members of each record, and the targets of the new protocol with their records."""
    in_group = np.flatnonzero(equals(table["record"], "group"))
    offset = longs(table["offset"])[in_group]
    record_of_row = rows_at((records.group, records.offset), members.group[in_group], offset)
    in_group, record_of_row = in_group[record_of_row >= 0], record_of_row[record_of_row >= 0]
    spans = _spans(records, table, "member", members)
    row = np.concatenate((in_group, np.repeat(spans.row, spans.size)))
    record = np.concatenate((record_of_row, ranges(spans.first, spans.size)))
    columns = {name: column[row] for name, column in vars(members).items()}
    return Present(record=record, row=row, **columns), _spans(records, table, "target", members)


def _spans(records: Records, table: pa.Table, kind: str, members: Members) -> Spans:
    offset, gone = longs(table["offset"]), flags(table["is_tombstone"])
    rows = np.flatnonzero(equals(table["record"], kind))
    rows = rows[np.lexsort((offset[rows], members.member[rows], members.group[rows]))]
    group, member = members.group[rows], members.member[rows]
    first = records.after(group, offset[rows])
    begin = np.searchsorted(records.group, group)
    end = np.searchsorted(records.group, group, side="right")
    if kind == "target":
        # It is written after the epoch that it is computed for; that it goes, before the next.
        first = np.where(gone[rows], first, np.maximum(first - 1, begin))
    last = np.where(run_ends(group, member), end, np.append(first[1:], 0)[: len(rows)])
    kept = ~gone[rows]
    return Spans(rows[kept], offset[rows[kept]], first[kept], np.maximum(last - first, 0)[kept])


def _assigned_in(
    records: Records,
    table: pa.Table,
    codes: tuple[Longs, Longs, Longs],
    before: EarlierOwners,
    members: Members,
    spans: Spans,
) -> Assigned:
    """Return the partitions of each record with their owners, those from before with record -1.

    ``codes`` are of the groups, members and topics of ``table``, which is ``log_assignment``.
    """
    group, member, topic = codes
    offset, partition = longs(table["offset"]), longs(table["partition"])
    owner_of = _identities(group, member, members)
    rows = np.flatnonzero(equals(table["role"], "assigned"))
    record_of_row = rows_at((records.group, records.offset), group[rows], offset[rows])
    is_head = record_of_row >= 0
    is_head[is_head] = (
        ~records.is_consumer[record_of_row[is_head]] & records.is_head[record_of_row[is_head]]
    )
    rows, record_of_row = rows[is_head], record_of_row[is_head]

    target = np.flatnonzero(equals(table["role"], "target"))
    span = rows_at((members.group[spans.row], spans.offset), group[target], offset[target])
    target, span = target[span >= 0], span[span >= 0]
    count = spans.size[span]
    row = np.concatenate((rows, np.repeat(target, count)))
    record = np.concatenate((record_of_row, ranges(spans.first[span], count)))
    in_era = np.searchsorted(records.group, before.group)
    in_log = in_era < np.searchsorted(records.group, before.group, side="right")
    return Assigned(
        np.concatenate((record, np.full(int(in_log.sum()), -1))),
        np.concatenate((records.era[record], records.era[in_era[in_log]])),
        np.concatenate((topic[row], before.topic[in_log])),
        np.concatenate((partition[row], before.partition[in_log])),
        np.concatenate((owner_of[row], before.owner[in_log])),
    )


def _identities(group: Longs, member: Longs, members: Members) -> Longs:
    """Return the identity of each member that is named beside its group."""
    static = np.flatnonzero(members.instance)
    if not len(static):
        return member
    static_keys, first = np.unique(
        key(members.group[static], members.member[static]), return_index=True
    )
    place = find(static_keys, key(group, member))
    return np.where(place >= 0, members.identity[static[first]][place], member)


def _select_committed(records: Records, table: pa.Table, group: Longs, topic: Longs) -> Committed:
    offset = longs(table["offset"])
    rows = np.flatnonzero(~flags(table["is_tombstone"]))
    rows = rows[np.lexsort((offset[rows], group[rows]))]
    record = records.after(group[rows], offset[rows]) - 1
    has_record = record >= np.searchsorted(records.group, group[rows])
    return Committed(
        group[rows],
        np.where(has_record, np.append(records.head, -1)[record], -1),
        topic[rows],
        longs(table["partition"])[rows],
        offset[rows],
        times(table["at"])[rows],
    )


def _count_members(
    records: Records, present: Present, vote: Longs, uniform: int, range_: int
) -> Records:
    """Return epochs with their member count and assignor: most votes, `uniform` of none."""
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
