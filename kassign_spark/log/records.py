"""A batch of raw records, those of one kind in it as they were read, and rows made of them."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kassign_spark.log import log_schemas
from kassign_spark.log.cursor import Bools, Bytes, Ints, Span
from kassign_spark.log.value_columns import Columns, Items, items, spans, take
from kassign_spark.log.values import texts, whole
from kassign_spark.log.versions import ReadMessages
from kassign_spark.schemas import Table
from kassign_spark.spark.spark_versions import arrow_schema

_MICROSECONDS = 1000
_LAST_MS = 253_402_300_799_999
"""The end of the year 9999, the last that Spark and Python know."""


ARROW_SCHEMAS = {
    table.name: arrow_schema(table.columns)
    for table in (*log_schemas.DECODED, log_schemas.SUBSCRIPTIONS, log_schemas.EACH_UNREAD)
}
"""The columns of every table as Arrow's, by its name."""
COLUMNS = ("key", "value", "timestamp", "partition", "offset")
"""The columns of raw records that are decoded."""


class RawRecords(NamedTuple):
    """Raw records by columns."""

    keys: Bytes
    values: Bytes
    without_key: Bools
    tombstone: Bools
    at: Ints
    """Microseconds of UTC."""
    partition: pa.Array
    offset: pa.Array

    @staticmethod
    def of(records: pa.Table | pa.RecordBatch) -> "RawRecords":
        """Take ``COLUMNS``."""
        key, value, timestamp, partition, offset = (whole(records[name]) for name in COLUMNS)
        at = timestamp.cast(pa.timestamp("us", timestamp.type.tz)).cast(pa.int64())
        return RawRecords(
            Bytes(key),
            Bytes(value),
            np.asarray(pc.is_null(key)),
            np.asarray(pc.is_null(value)),
            np.asarray(at),
            partition,
            offset,
        )


class Part(NamedTuple):
    """Some rows of a table, and the record of the batch that each is from, ascending."""

    table: str
    record: Ints
    rows: pa.Table


class Rows(NamedTuple):
    """Records of one kind: where they are in the batch, and what their keys say."""

    batch: RawRecords
    record: Ints
    key: Columns
    is_tombstone: bool

    def text(self, name: str) -> pa.Array:
        """Return a text column of the keys."""
        return texts(self.batch.keys, spans(self.key[name]))

    def times(self, milliseconds: Ints | None = None) -> pa.Array:
        """Return these times, or the records' own where these are none."""
        at = self.batch.at[self.record]
        if milliseconds is not None:
            is_time = (milliseconds >= 0) & (milliseconds <= _LAST_MS)
            at = np.where(is_time, milliseconds * _MICROSECONDS, at)
        return pa.array(at).cast(pa.timestamp("us", "UTC"))

    def offsets(self) -> pa.Array:
        """Return the offsets of the records in their partition."""
        return self.batch.offset.take(pa.array(self.record))

    def place(self) -> dict[str, Any]:
        """Return the columns that say where a record stands."""
        return {
            "partition": self.batch.partition.take(pa.array(self.record)),
            "offset": self.offsets(),
            "at": self.times(),
            "is_tombstone": self.is_tombstone,
        }

    def part(self, table: Table, **columns: Any) -> Part:
        """Return a row of ``table`` per record: its key, its place, and these columns."""
        of_key = {
            name: self.text(name) if isinstance(value, Span) else value
            for name, value in self.key.items()
            if name not in columns
        }
        return part(table, self.record, **self.place() | of_key | columns)


class Records(NamedTuple):
    """Records of one kind that could be read: with values, and tombstones."""

    present: Rows
    values: Columns
    tombstones: Rows

    def parts(self, table: Table, of_all: Mapping[str, str], /, **of_present: Any) -> list[Part]:
        """Return rows of ``table``, one per record; those of tombstones lack ``of_present``."""
        return [
            self.present.part(table, **of_all, **of_present),
            self.tombstones.part(table, **of_all),
        ]

    @staticmethod
    def of(batch: RawRecords, rows: Ints, key: Columns, read: ReadMessages) -> "Records":
        """Sort records by whether they have a value; those that could not be read are left out.

        ``rows`` are those of the kind, ascending, and ``key`` is of them; ``read`` has the values.
        """
        gone = np.flatnonzero(batch.tombstone[rows])
        places = np.searchsorted(rows, read.rows)
        return Records(
            Rows(batch, read.rows, take(key, places), False),
            read.columns,
            Rows(batch, rows[gone], take(key, gone), True),
        )


def part(table: Table, record: Ints, /, **columns: Any) -> Part:
    """Return rows of ``table``, by column an array or one value for all; other columns are null."""
    schema = ARROW_SCHEMAS[table.name]
    assert columns.keys() <= set(schema.names)
    arrays = [_array(columns.get(field.name), field.type, len(record)) for field in schema]
    return Part(table.name, record, pa.Table.from_arrays(arrays, schema=schema))


def expand_assigned(
    record: Ints, lists: Items, topics: Mapping[str, pa.Array], role: str, **of_row: pa.Array
) -> Part:
    """Return rows of ``log_assignment`` from lists of topics, each with its partitions.

    Args:
        record: the record of each list.
        lists: the partitions of each topic.
        topics: by the name of its column what names the topics of all lists.
        role: of all rows.
        of_row: columns with one value per list, which its partitions repeat.
    """
    partitions = items(lists["partitions"])
    topic = partitions.rows()
    row = lists.rows()[topic]
    return part(
        log_schemas.LOG_ASSIGNMENT,
        record[row],
        **repeat_columns(topics, topic),
        **repeat_columns(of_row, row),
        role=role,
        partition=partitions[""],
    )


def repeat_columns(columns: Mapping[str, Any], row: Ints) -> dict[str, Any]:
    """Repeat columns for the elements of these rows' lists; one value for all stays."""
    rows = pa.array(row)
    return {
        name: column.take(rows) if isinstance(column, pa.Array) else column
        for name, column in columns.items()
    }


def sort_parts(table: str, parts: list[Part]) -> pa.Table:
    """Sort the rows of all parts of a table into the order of their records."""
    of_table = [part for part in parts if part.table == table and len(part.record)]
    if not of_table:
        return ARROW_SCHEMAS[table].empty_table()
    if len(of_table) == 1:
        return of_table[0].rows
    order = np.argsort(np.concatenate([part.record for part in of_table]), kind="stable")
    return pa.concat_tables([part.rows for part in of_table]).take(pa.array(order))


def _array(values: Any, kind: pa.DataType, count: int) -> pa.Array:
    if values is None:
        return pa.nulls(count, kind)
    if isinstance(values, np.ndarray):
        return pa.array(values).cast(kind)
    if isinstance(values, pa.Array):
        return values if values.type == kind else values.cast(kind)
    return pa.repeat(pa.scalar(values, kind), count)
