"""Who is in each generation of a log: the rows of ``log_members`` and the records they hold for."""

from typing import NamedTuple

import numpy as np
import pyarrow as pa

from kassign_spark.groups.numbers import Flags, Longs, ranges
from kassign_spark.history.log_arrays import Present, Records, equals, flags, longs


class Members(NamedTuple):
    """Columns of ``log_members`` as codes."""

    group: Longs
    member: Longs
    instance: Longs
    identity: Longs
    subscription: Longs
    client: Longs
    host: Longs


class Spans(NamedTuple):
    """Rows of ``log_members`` of kind target, and the records that they hold for."""

    row: Longs
    offset: Longs
    first: Longs
    size: Longs


def present_in(records: Records, table: pa.Table, of: Members) -> tuple[Present, Spans]:
    """Give the members of each record, and the targets of the new protocol with their records."""
    offset, gone = longs(table["offset"]), flags(table["is_tombstone"])
    in_group = np.flatnonzero(equals(table["record"], "group"))
    at = record_at(records, of.group[in_group], offset[in_group])
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
    return present, Spans(row, offset[row], first, count)


def record_at(records: Records, group: Longs, offset: Longs) -> Longs:
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
    goes_on = np.append((group[1:] == group[:-1]) & (member[1:] == member[:-1]), False)[: len(rows)]
    last = np.where(goes_on, np.append(first[1:], 0)[: len(rows)], end)
    kept = ~gone[rows]
    return rows[kept], first[kept], np.maximum(last - first, 0)[kept]
