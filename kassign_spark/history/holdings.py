"""Who is in each generation of a log, and who has which partition: as assigned, or aimed at."""

from typing import NamedTuple

import numpy as np
import pyarrow as pa

from kassign_spark.groups.numbers import Flags, Longs, find, key, ranges
from kassign_spark.history.log_arrays import (
    Assigned,
    Members,
    Present,
    Records,
    equals,
    flags,
    longs,
    rows_at,
    run_ends,
)


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
    at = rows_at((records.group, records.offset), of.group[in_group], offset[in_group])
    in_group, at = in_group[at >= 0], at[at >= 0]
    rows, first, count = _spans(records, table, "member", of, offset, gone)
    row = np.concatenate((in_group, np.repeat(rows, count)))
    record = np.concatenate((at, ranges(first, count)))
    columns = {name: column[row] for name, column in vars(of).items()}
    present = Present(record=record, row=row, **columns)
    row, first, count = _spans(records, table, "target", of, offset, gone)
    return present, Spans(row, offset[row], first, count)


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
    at = rows_at((records.group, records.offset), group[given], offset[given])
    known = at >= 0
    known[known] = ~records.is_consumer[at[known]] & records.is_head[at[known]]
    given, at = given[known], at[known]

    target = np.flatnonzero(equals(table["role"], "target"))
    span = rows_at((members.group[spans.row], spans.offset), group[target], offset[target])
    target, span = target[span >= 0], span[span >= 0]
    count = spans.size[span]
    row = np.concatenate((given, np.repeat(target, count)))
    record = np.concatenate((at, ranges(spans.first[span], count)))
    in_era = np.searchsorted(records.group, before.group)
    known = in_era < np.searchsorted(records.group, before.group, side="right")
    return Assigned(
        np.concatenate((record, np.full(int(known.sum()), -1))),
        np.concatenate((records.era[record], records.era[in_era[known]])),
        np.concatenate((topic[row], before.topic[known])),
        np.concatenate((partition[row], before.partition[known])),
        np.concatenate((owner_of[row], before.owner[known])),
    )


def _identities(group: Longs, member: Longs, members: Members) -> Longs:
    """The identity of each member that is named beside its group."""
    static = np.flatnonzero(members.instance)
    if not len(static):
        return member
    known, first = np.unique(key(members.group[static], members.member[static]), return_index=True)
    place = find(known, key(group, member))
    return np.where(place >= 0, members.identity[static[first]][place], member)
