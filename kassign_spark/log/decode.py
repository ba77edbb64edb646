"""Raw records of ``__consumer_offsets`` as tables: a batch at once, no Python a record.

Whatever the bytes are, nothing is raised: a record that cannot be read is counted in ``unread``.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from kassign_spark.log import classic, consumer, schemas
from kassign_spark.log.cursor import FINE, REASONS, SHORT, Cursors, distinct
from kassign_spark.log.messages import KINDS, OTHER_KINDS
from kassign_spark.log.records import ARROW_SCHEMAS, Batch, Part, Records, ordered
from kassign_spark.log.versions import Unread, read_keys, read_versioned

_MOST_BYTES = 1 << 24
"""Of values decoded at once: what comes out of them may take some times as much memory."""

NO_KEY = "the record has no key"
OTHER_TYPE = "groups of this type are not read"
UNKNOWN_TYPE = "no such type of record is known"

_GROUP_METADATA = 2
_ROWS: dict[int, Callable[[Records], list[Part]]] = {
    0: classic.commits,
    1: classic.commits,
    3: consumer.epochs,
    4: consumer.topics,
    5: consumer.members,
    6: consumer.targets,
    7: consumer.target_members,
    8: consumer.current_members,
    16: consumer.regexes,
}
"""What makes the rows of the kinds of records, by their number."""


class Decoded(NamedTuple):
    """What a batch of records says; the columns are those of ``schemas``."""

    generations: pa.Table
    log_members: pa.Table
    log_assignment: pa.Table
    commits: pa.Table
    log_targets: pa.Table
    log_regexes: pa.Table
    log_topics: pa.Table
    unread: pa.Table


def decode_table(table: pa.Table | pa.RecordBatch, *, owned: bool = False) -> Decoded:
    """Decode records, with columns as in ``schemas.RECORDS``; rows come out in their order.

    With ``owned`` ``log_assignment`` has also what members claimed when they joined.
    """
    made = [_decode(Batch.of(piece), owned=owned) for piece in _pieces(table)]
    tables = zip(*(tables for tables, _ in made), strict=True)
    unread = [row for _, rows in made for row in rows]
    return Decoded._make([*map(pa.concat_tables, tables), _added_up(unread)])


def _pieces(table: pa.Table | pa.RecordBatch) -> list[pa.Table | pa.RecordBatch]:
    if len(table) < 2 or table["key"].nbytes + table["value"].nbytes <= _MOST_BYTES:
        return [table]
    half = len(table) // 2
    return [*_pieces(table.slice(0, half)), *_pieces(table.slice(half))]


def _decode(batch: Batch, *, owned: bool) -> tuple[list[pa.Table], list[Unread]]:
    keys = Cursors(batch.keys, batch.keys.start, batch.keys.end)
    types = keys.number(2)
    known = keys.wrong == FINE
    without = int(batch.without_key.sum())
    unread = [
        Unread("unknown", None, NO_KEY, without),
        Unread("unknown", None, REASONS[SHORT], int((~known).sum()) - without),
    ]
    parts: list[Part] = []
    for number in distinct(types[known]):
        rows = np.flatnonzero(known & (types == number))
        if number not in KINDS:
            unread.append(_other(number, len(rows)))
            continue
        kind = KINDS[number]
        fine, columns, broken = read_keys(kind.name, kind.key, keys.at(rows))
        rows = rows[fine]
        there = rows[~batch.tombstone[rows]]
        read = read_versioned(kind.name, kind.value, batch.values, there, kind.newest)
        records = Records.of(batch, rows, columns, read)
        unread += [*broken, *read.unread]
        if number == _GROUP_METADATA:
            made, not_decoded = classic.generations(records, owned=owned)
            unread += not_decoded
        else:
            made = _ROWS[number](records)
        parts += made
    return [ordered(name, parts) for name in Decoded._fields[:-1]], unread


def _other(number: int, count: int) -> Unread:
    if number in OTHER_KINDS:
        return Unread(OTHER_KINDS[number], None, OTHER_TYPE, count)
    return Unread("unknown", number, UNKNOWN_TYPE, count)


def _added_up(unread: Sequence[Unread]) -> pa.Table:
    counts: Counter[tuple[str, int | None, str]] = Counter()
    for row in unread:
        if row.count:
            counts[row.kind, row.version, row.reason] += row.count
    rows = [(*what, count) for what, count in counts.items()]
    schema = ARROW_SCHEMAS[schemas.UNREAD.name]
    return pa.Table.from_pylist([dict(zip(schema.names, row, strict=True)) for row in rows], schema)
