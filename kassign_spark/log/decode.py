"""Raw records of ``__consumer_offsets`` as tables: a batch at once, no Python a record.

Whatever the bytes are, nothing is raised: a record that cannot be read is counted in ``unread``.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from kassign_spark.log import classic_records, consumer_records, log_schemas
from kassign_spark.log.classic_records import OTHER_PROTOCOL
from kassign_spark.log.cursor import FINE, REASONS, SHORT, Cursors, Ints, Span, distinct
from kassign_spark.log.messages import KINDS, OF_GROUP, OTHER_KINDS
from kassign_spark.log.records import ARROW_SCHEMAS, Part, RawRecords, Records, part, sort_parts
from kassign_spark.log.value_columns import spans
from kassign_spark.log.values import texts
from kassign_spark.log.versions import UnreadMessages, read_keys, read_versioned

_MOST_BYTES = 1 << 24
"""Bytes of values that are decoded together: the result may take several times as much memory."""

NO_KEY = "the record has no key"
OTHER_TYPE = "groups of this type are not read"
UNKNOWN_TYPE = "no such type of record is known"

NO_DAMAGE = (OTHER_TYPE, OTHER_PROTOCOL)
"""Reasons for valid records that this package does not read."""

_GROUP_METADATA = 2
_ROWS: dict[int, Callable[[Records], list[Part]]] = {
    0: classic_records.commits,
    1: classic_records.commits,
    3: consumer_records.epochs,
    4: consumer_records.topics,
    5: consumer_records.members,
    6: consumer_records.targets,
    7: consumer_records.target_members,
    8: consumer_records.current_members,
    16: consumer_records.regexes,
}
"""The functions that make the rows of each kind of record, by its number."""


class DecodedTables(NamedTuple):
    """The content of a batch of records; the columns are those of ``log_schemas``."""

    generations: pa.Table
    log_members: pa.Table
    log_assignment: pa.Table
    commits: pa.Table
    log_targets: pa.Table
    log_regexes: pa.Table
    log_topics: pa.Table
    unread: pa.Table


def decode_table(table: pa.Table | pa.RecordBatch, *, owned: bool = False) -> DecodedTables:
    """Decode records, with columns as in ``log_schemas.RECORDS``; rows come out in their order.

    With ``owned`` ``log_assignment`` has also what members claimed when they joined.
    """
    decoded = [_decode(RawRecords.of(piece), owned=owned) for piece in _pieces(table)]
    tables = zip(*decoded, strict=True)
    return DecodedTables._make(map(pa.concat_tables, tables))


def decode_subscriptions(table: pa.RecordBatch) -> pa.Table:
    """Return what members sent, by the records of classic groups: ``log_schemas.SUBSCRIPTIONS``."""
    parts = []
    for piece in _pieces(table):
        batch = RawRecords.of(piece)
        keys = Cursors(batch.keys, batch.keys.start, batch.keys.end)
        rows = np.flatnonzero((keys.number(2) == _GROUP_METADATA) & (keys.wrong == FINE))
        records, _ = _read(batch, keys, _GROUP_METADATA, rows)
        parts.append(classic_records.subscriptions(records).rows)
    return pa.concat_tables(parts)


def _pieces(table: pa.Table | pa.RecordBatch) -> list[pa.Table | pa.RecordBatch]:
    if len(table) < 2 or table["key"].nbytes + table["value"].nbytes <= _MOST_BYTES:
        return [table]
    half = len(table) // 2
    return [*_pieces(table.slice(0, half)), *_pieces(table.slice(half))]


def _decode(batch: RawRecords, *, owned: bool) -> list[pa.Table]:
    keys = Cursors(batch.keys, batch.keys.start, batch.keys.end)
    types = keys.number(2)
    has_key = keys.wrong == FINE
    unread = [
        UnreadMessages("unknown", None, NO_KEY, np.flatnonzero(batch.without_key)),
        UnreadMessages(
            "unknown", None, REASONS[SHORT], np.flatnonzero(~has_key & ~batch.without_key)
        ),
    ]
    parts: list[Part] = []
    for number in distinct(types[has_key]):
        rows = np.flatnonzero(has_key & (types == number))
        if number not in KINDS:
            unread.append(_other(number, rows))
            continue
        records, broken = _read(batch, keys, number, rows)
        unread += broken
        if number == _GROUP_METADATA:
            parts_of_kind, not_decoded = classic_records.generations(records, owned=owned)
            unread += not_decoded
        else:
            parts_of_kind = _ROWS[number](records)
        parts += parts_of_kind
    tables = [sort_parts(name, parts) for name in DecodedTables._fields[:-1]]
    return [*tables, pa.concat_tables([_unread(batch, messages) for messages in unread])]


def _read(
    batch: RawRecords, keys: Cursors, number: int, rows: Ints
) -> tuple[Records, list[UnreadMessages]]:
    """Read the records of a kind: those that can be, and the others."""
    kind = KINDS[number]
    fine, columns, broken = read_keys(kind.name, kind.key, keys.at(rows), rows)
    rows = rows[fine]
    rows_with_value = rows[~batch.tombstone[rows]]
    read = read_versioned(kind.name, kind.value, batch.values, rows_with_value, kind.newest)
    return Records.of(batch, rows, columns, read), [*broken, *read.unread]


def _other(number: int, rows: Ints) -> UnreadMessages:
    if number in OTHER_KINDS:
        return UnreadMessages(OTHER_KINDS[number], None, OTHER_TYPE, rows)
    return UnreadMessages("unknown", number, UNKNOWN_TYPE, rows)


def _unread(batch: RawRecords, unread: UnreadMessages) -> pa.Table:
    """Return a row per key, with the group, with which all keys begin."""
    schema = ARROW_SCHEMAS[log_schemas.EACH_UNREAD.name]
    rows = unread.rows
    if not len(rows):
        return schema.empty_table()
    keys = Cursors(batch.keys, batch.keys.start[rows], batch.keys.end[rows])
    keys.number(2)
    name = spans(OF_GROUP.read(keys, 0)["group_id"])
    groups = texts(batch.keys, Span(name.start, np.where(keys.wrong == FINE, name.length, -1)))
    of_all = {"kind": unread.kind, "version": unread.version, "reason": unread.reason, "count": 1}
    of_each = {"group_id": groups, "offset": batch.offset.take(pa.array(rows))}
    return part(log_schemas.EACH_UNREAD, rows, **of_all, **of_each).rows
