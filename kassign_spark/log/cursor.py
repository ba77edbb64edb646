"""Kafka's primitive types read from many messages at once: cursors that step in lockstep.

A ``Cursors`` holds one position a message over one array of bytes; each read moves all of them by
the same kind of field, in a handful of numpy operations. No read goes behind a message's end: a
message that would is marked with what is wrong with it, and stays where it is.
"""

from copy import copy
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

FINE, SHORT, WRONG_LENGTH, WRONG_NULL = range(4)
REASONS = {
    SHORT: "the bytes end early",
    WRONG_LENGTH: "a length or a count cannot be",
    WRONG_NULL: "a value that must be there is null",
}
"""The possible faults of a message, by the number in ``Cursors.wrong``."""

_INT16 = 1 << 15
_PADDING = 8
"""Zeros behind all bytes, so that the widest number may be looked up at every position."""


def distinct(numbers: Ints) -> list[int]:
    """Return the different numbers of 16 bits, ascending."""
    values: list[int] = (np.flatnonzero(np.bincount(numbers + _INT16)) - _INT16).tolist()
    return values


class Span(NamedTuple):
    """Positions of values of variable length: texts, bytes, ids. A length of -1 is null."""

    start: Ints
    length: Ints


class Bytes:
    """The bytes of an Arrow array, to be looked up as numbers at any position."""

    def __init__(self, values: pa.Array) -> None:
        """Take a ``binary`` or ``large_binary`` array; copies its bytes once."""
        width = np.int64 if pa.types.is_large_binary(values.type) else np.int32
        _, offsets, data = values.buffers()
        count = len(values)
        bounds = (
            np.zeros(1, dtype=width) if offsets is None else np.frombuffer(offsets, dtype=width)
        )
        bounds = bounds[values.offset : values.offset + count + 1].astype(np.int64)
        first, last = (int(bounds[0]), int(bounds[-1])) if len(bounds) else (0, 0)
        self.data = np.zeros(last - first + _PADDING, dtype=np.uint8)
        if last > first:
            self.data[: last - first] = np.frombuffer(data, dtype=np.uint8)[first:last]
        self.start: Ints = np.asarray(bounds[:-1] - first, dtype=np.int64)
        self.end: Ints = np.asarray(bounds[1:] - first, dtype=np.int64)
        # One number a byte position, each overlapping the next.
        self.numbers = {
            size: np.ndarray(
                (len(self.data) - size + 1,), f">i{size}", self.data.data, strides=(1,)
            )
            for size in (2, 4, 8)
        }

    def within(self, span: Span) -> "Bytes":
        """Return the same bytes, of which each row is a span; an absent one is empty."""
        inner = copy(self)
        inner.start = span.start
        inner.end = span.start + np.maximum(span.length, 0)
        return inner


class Cursors:
    """Positions in messages of one shape; rows are messages, in the order of their bytes."""

    def __init__(self, source: Bytes, position: Ints, end: Ints) -> None:
        self.source = source
        self.position = position.copy()
        self.end = end
        self.wrong = np.zeros(len(position), dtype=np.int8)

    def at(self, rows: Ints) -> "Cursors":
        """Return cursors of some rows, to be put back by ``back``."""
        subset = Cursors(self.source, self.position[rows], self.end[rows])
        subset.wrong = self.wrong[rows]
        return subset

    def back(self, rows: Ints, subset: "Cursors") -> None:
        """Return to where the cursors of some rows stood."""
        self.position[rows] = subset.position
        self.wrong[rows] = subset.wrong

    def remaining(self) -> Ints:
        """Count the bytes not read yet."""
        return self.end - self.position

    def fail(self, rows: Bools, reason: int) -> None:
        """Mark rows; the first reason stays."""
        self.wrong[rows & (self.wrong == FINE)] = reason

    def number(self, size: int) -> Ints:
        """Read a signed big-endian number of 1, 2, 4 or 8 bytes; 0 where it is missing."""
        if size == 1:
            values = self.source.data[self.position].astype(np.int8).astype(np.int64)
        else:
            values = self.source.numbers[size][self.position].astype(np.int64)
        return self._past(values, size)

    def unsigned_varint(self) -> Ints:
        """Read a number of 32 bits, seven a byte, the lowest first.

        As Kafka's it ends as a signed one: of the fifth byte's bits all but four are lost.
        """
        byte = self.source.data[self.position].astype(np.int64)
        values = self._past(byte & 0x7F, 1)
        rows = np.flatnonzero((byte > 0x7F) & (self.wrong == FINE))
        for shift in (7, 14, 21, 28):
            if not len(rows):
                return values
            subset = self.at(rows)
            byte = self.source.data[subset.position].astype(np.int64)
            values[rows] |= subset._past(byte & 0x7F, 1) << shift
            if shift == 28:
                values[rows] = values[rows].astype(np.int32)
            self.back(rows, subset)
            rows = rows[(byte > 0x7F) & (subset.wrong == FINE)]
        unending = np.zeros(len(values), dtype=bool)
        unending[rows] = True
        self.fail(unending, WRONG_LENGTH)
        return np.where(unending, 0, values)

    def span(self, length: Ints, *, nullable: bool) -> Span:
        """Skip ``length`` bytes; a negative length is null."""
        if not nullable and (length < 0).any():
            self.fail(length < 0, WRONG_NULL)
        length = np.where(self.wrong == FINE, np.maximum(length, -1), 0)
        steps = np.maximum(length, 0)
        short = steps > self.remaining()
        if short.any():
            self.fail(short, SHORT)
            steps[short] = 0
            length = np.where(short, 0, length)
        start = self.position.copy()
        self.position += steps
        return Span(start, length)

    def count(self, count: Ints, least: int) -> Ints:
        """Check counts of elements of at least ``least`` bytes; mark rows too short for them."""
        impossible = (count < 0) | (count * least > self.remaining())
        if impossible.any():
            self.fail(impossible, WRONG_LENGTH)
        return np.where(self.wrong == FINE, count, 0)

    def _past(self, values: Ints, size: int) -> Ints:
        short = self.position + size > self.end
        if not short.any():
            self.position += size
            return values
        self.fail(short, SHORT)
        self.position += np.where(short, 0, size)
        return np.where(short, 0, values)
