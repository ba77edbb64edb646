"""A batch of raw records, and those of one kind in it as they were read."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kassign_spark.log.columns import Columns, spans, take
from kassign_spark.log.cursor import Bools, Bytes, Ints
from kassign_spark.log.values import texts
from kassign_spark.log.versions import Read

_MICROSECONDS = 1000
_LAST_MS = 253_402_300_799_999
"""The end of the year 9999, the last that Spark and Python know."""


class Batch(NamedTuple):
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
    def of(columns: Sequence[pa.Array]) -> "Batch":
        """Take arrays of key, value, timestamp, partition and offset."""
        key, value, timestamp, partition, offset = columns
        at = timestamp.cast(pa.timestamp("us", timestamp.type.tz)).cast(pa.int64())
        return Batch(
            Bytes(key),
            Bytes(value),
            np.asarray(pc.is_null(key)),
            np.asarray(pc.is_null(value)),
            np.asarray(at),
            partition,
            offset,
        )


class Rows(NamedTuple):
    """Records of one kind: where they are in the batch, and what their keys say."""

    batch: Batch
    record: Ints
    key: Columns
    is_tombstone: bool

    def text(self, name: str) -> pa.Array:
        """A text of the keys."""
        return texts(self.batch.keys, spans(self.key[name]))

    def times(self, milliseconds: Ints | None = None) -> pa.Array:
        """Times of the records' own, or these where they are ones."""
        at = self.batch.at[self.record]
        if milliseconds is not None:
            given = (milliseconds >= 0) & (milliseconds <= _LAST_MS)
            at = np.where(given, milliseconds * _MICROSECONDS, at)
        return pa.array(at).cast(pa.timestamp("us", "UTC"))

    def place(self) -> dict[str, Any]:
        """The columns that say where a record stands."""
        return {
            "partition": self.batch.partition.take(pa.array(self.record)),
            "offset": self.batch.offset.take(pa.array(self.record)),
            "at": self.times(),
            "is_tombstone": self.is_tombstone,
        }


class Records(NamedTuple):
    """Records of one kind that could be read: with values, and tombstones."""

    said: Rows
    values: Columns
    gone: Rows

    @staticmethod
    def of(batch: Batch, rows: Ints, key: Columns, read: Read) -> "Records":
        """Sort records by whether they have a value; those that could not be read are left out.

        Args:
            batch: all records.
            rows: the kind's, ascending.
            key: what their keys say.
            read: of those that have a value.
        """
        gone = np.flatnonzero(batch.tombstone[rows])
        there = np.searchsorted(rows, read.rows)
        return Records(
            Rows(batch, read.rows, take(key, there), False),
            read.columns,
            Rows(batch, rows[gone], take(key, gone), True),
        )
