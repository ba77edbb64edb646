"""Who is in each generation of a log, and who has which partition: as assigned, or aimed at."""

from typing import NamedTuple

import numpy as np
import pyarrow as pa

from kassign_spark.groups.numbers import Flags, Longs, find, key, ranges
from kassign_spark.history.log_arrays import (
    Assigned,
    Present,
    Records,
    equals,
    flags,
    longs,
    run_ends,
)


class Members(NamedTuple):
    """Columns of ``log_members`` as codes, after the group those of ``Present``."""

    group: Longs
    member: Longs
    identity: Longs
    subscription: Longs
    instance: Longs
    client: Longs
    host: Longs


class Spans(NamedTuple):
    """Rows of ``log_members`` of kind target, and the records that they hold for."""

    row: Longs
    offset: Longs
    first: Longs
    size: Longs


class Owners(NamedTuple):
    """Who had each partition last, before the log begins, as codes."""

    group: Longs
    topic: Longs
    partition: Longs
    owner: Longs


def present_in(records: Records, table: pa.Table, of: Members) -> tuple[Present, Spans]:
    """Give the members of each record, and the targets of the new protocol with their records."""
    offset, gone = longs(table["offset"]), flags(table["is_tombstone"])
    in_group = np.flatnonzero(equals(table["record"], "group"))
    at = _record_at(records, of.group[in_group], offset[in_group])
    in_group, at = in_group[at >= 0], at[at >= 0]
    rows, first, count = _spans(records, table, "member", of, offset, gone)
    row = np.concatenate((in_group, np.repeat(rows, count)))
    record = np.concatenate((at, ranges(first, count)))
    present = Present(record, row, *(column[row] for column in of[1:]))
    row, first, count = _spans(records, table, "target", of, offset, gone)
    return present, Spans(row, offset[row], first, count)


def _record_at(records: Records, group: Longs, offset: Longs) -> Longs:
    """The record of a group that stands at an offset; -1: none."""
    if not len(records.group):
        return np.full(len(group), -1)
    place = np.minimum(records.after(group, offset), len(records.group) - 1)
    found = (records.group[place] == group) & (records.offset[place] == offset)
    return np.where(found, place, -1)


def _spans(
    records: Records, table: pa.Table, kind: str, of: Members, offset: Longs, gone: Flags
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
    last = np.where(run_ends(group, member), end, np.append(first[1:], 0)[: len(rows)])
    kept = ~gone[rows]
    return rows[kept], first[kept], np.maximum(last - first, 0)[kept]


def assigned_in(
    records: Records,
    table: pa.Table,
    codes: tuple[Longs, Longs, Longs],
    before: Owners,
    members: Members,
    spans: Spans,
) -> Assigned:
    """Give the partitions of each record with their owners, those from before with record -1.

    ``codes`` are of the groups, members and topics of ``table``, which is ``log_assignment``.
    """
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
    said: tuple[Longs, Longs, Longs], wanted: tuple[Longs, Longs, Longs], spans: Spans
) -> tuple[Longs, Longs]:
    """The first record that each partition of a target holds for, and how many.

    ``said`` are group, member and offset of the rows of ``spans``, ``wanted`` of the partitions.
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


def _identities(group: Longs, member: Longs, members: Members) -> Longs:
    """The identity of each member that is named beside its group."""
    static = np.flatnonzero(members.instance)
    if not len(static):
        return member
    known, first = np.unique(key(members.group[static], members.member[static]), return_index=True)
    place = find(known, key(group, member))
    return np.where(place >= 0, members.identity[static[first]][place], member)
