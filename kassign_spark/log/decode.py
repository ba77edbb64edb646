"""Raw records of ``__consumer_offsets`` as tables: a batch at once, no Python a record.

Whatever the bytes are, nothing is raised: a record that cannot be read is counted in ``unread``.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from kassign_spark.log import classic, consumer, schemas
from kassign_spark.log.cursor import FINE, REASONS, SHORT, Bools, Cursors, distinct
from kassign_spark.log.messages import KINDS, OTHER_KINDS
from kassign_spark.log.records import Batch, Part, Records, arrow_schemas, ordered
from kassign_spark.log.versions import Unread, read_keys, read_versioned

_MOST_BYTES = 1 << 24
"""Of values decoded at once: what comes out of them may take some times as much memory."""

NO_KEY = "the record has no key"
OTHER_TYPE = "groups of this type are not read"
UNKNOWN_TYPE = "no such type of record is known"

COLUMNS = ("key", "value", "timestamp", "partition", "offset")
"""Of raw records, those that are decoded."""
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


def decode(
    key: pa.Array,
    value: pa.Array,
    timestamp: pa.Array,
    partition: pa.Array,
    offset: pa.Array,
    *,
    owned: bool = False,
) -> Decoded:
    """Decode records, with columns as in ``schemas.RECORDS``; rows come out in their order.

    With ``owned`` ``log_assignment`` has also what members claimed when they joined.
    """
    arrays = [_whole(each) for each in (key, value, timestamp, partition, offset)]
    parts = [_decode(Batch.of(piece), owned=owned) for piece in _pieces(arrays)]
    return parts[0] if len(parts) == 1 else _joined(parts)


def decode_table(table: pa.Table | pa.RecordBatch, *, owned: bool = False) -> Decoded:
    """Decode records that have ``COLUMNS``."""
    return decode(*(table[name] for name in COLUMNS), owned=owned)


def _whole(values: pa.Array | pa.ChunkedArray) -> pa.Array:
    return values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values


def _pieces(arrays: Sequence[pa.Array]) -> list[Sequence[pa.Array]]:
    count = len(arrays[0])
    if count < 2 or arrays[0].nbytes + arrays[1].nbytes <= _MOST_BYTES:
        return [arrays]
    half = count // 2
    return [
        *_pieces([array.slice(0, half) for array in arrays]),
        *_pieces([array.slice(half) for array in arrays]),
    ]


def _joined(parts: Sequence[Decoded]) -> Decoded:
    tables = [pa.concat_tables(tables) for tables in zip(*parts, strict=True)]
    unread = tables[-1].group_by(["kind", "version", "reason"], use_threads=False)
    counted = unread.aggregate([("count", "sum")]).rename_columns({"count_sum": "count"})
    return Decoded._make([*tables[:-1], counted.cast(tables[-1].schema)])


def _decode(batch: Batch, *, owned: bool) -> Decoded:
    keys = Cursors(batch.keys, batch.keys.start, batch.keys.end)
    types = keys.number(2)
    known = keys.wrong == FINE
    unread = _without_type(batch, known)
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
    tables = [ordered(name, parts) for name in Decoded._fields[:-1]]
    return Decoded._make([*tables, _added_up(unread)])


def _without_type(batch: Batch, known: Bools) -> list[Unread]:
    without = int(batch.without_key.sum())
    short = int((~known).sum()) - without
    found = [Unread("unknown", None, NO_KEY, without)] if without else []
    return found + ([Unread("unknown", None, REASONS[SHORT], short)] if short else [])


def _other(number: int, count: int) -> Unread:
    if number in OTHER_KINDS:
        return Unread(OTHER_KINDS[number], None, OTHER_TYPE, count)
    return Unread("unknown", number, UNKNOWN_TYPE, count)


def _added_up(unread: Sequence[Unread]) -> pa.Table:
    counts: Counter[tuple[str, int | None, str]] = Counter()
    for row in unread:
        counts[row.kind, row.version, row.reason] += row.count
    rows = [(*what, count) for what, count in counts.items() if count]
    schema = arrow_schemas()[schemas.UNREAD.name]
    return pa.Table.from_pylist([dict(zip(schema.names, row, strict=True)) for row in rows], schema)
