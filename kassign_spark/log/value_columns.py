"""Columns of values from many messages: numbers, spans, and lists of records of these."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np

from kassign_spark.groups.numbers import ranges
from kassign_spark.log.cursor import Ints, Span


@dataclass(frozen=True)
class Items:
    """A list a row: how long it is, and the columns of all elements, row after row."""

    counts: Ints
    columns: "Columns"

    def rows(self) -> Ints:
        """Return the row that each element belongs to."""
        return np.repeat(np.arange(len(self.counts)), self.counts)

    def __getitem__(self, name: str) -> "Column":
        return self.columns[name]


Column = Ints | Span | Items
Columns = Mapping[str, Column]


def numbers(column: Column) -> Ints:
    """Take a column that holds numbers."""
    return cast(Ints, column)


def spans(column: Column) -> Span:
    """Take a column that holds spans."""
    return cast(Span, column)


def items(column: Column) -> Items:
    """Take a column that holds lists."""
    return cast(Items, column)


def take(columns: Columns, rows: Ints) -> Columns:
    """Take rows, each with its lists."""
    return {name: _take(column, rows) for name, column in columns.items()}


def concatenate(parts: Sequence[Columns]) -> Columns:
    """Concatenate rows of the same columns."""
    return {name: _concatenate([part[name] for part in parts]) for name in parts[0]}


def spread(columns: Columns, rows: Ints, count: int) -> Columns:
    """Spread values over ``count`` rows: -1, null or an empty list elsewhere."""
    return {name: _spread(column, rows, count) for name, column in columns.items()}


def _spread(column: Column, rows: Ints, count: int) -> Column:
    if isinstance(column, Items):
        return Items(_fill_values(0, column.counts, rows, count), column.columns)
    if isinstance(column, Span):
        # A start stays within the bytes, whatever is looked up there.
        start = _fill_values(0, column.start, rows, count)
        return Span(start, _fill_values(-1, column.length, rows, count))
    return _fill_values(-1, column, rows, count)


def _fill_values(elsewhere: int, values: Ints, rows: Ints, count: int) -> Ints:
    whole = np.full(count, elsewhere, dtype=np.int64)
    whole[rows] = values
    return whole


def _take(column: Column, rows: Ints) -> Column:
    if isinstance(column, Items):
        starts = np.cumsum(column.counts) - column.counts
        counts = column.counts[rows]
        return Items(counts, take(column.columns, ranges(starts[rows], counts)))
    if isinstance(column, Span):
        return Span(column.start[rows], column.length[rows])
    return column[rows]


def _concatenate(parts: Sequence[Column]) -> Column:
    if isinstance(parts[0], Items):
        lists = [items(part) for part in parts]
        counts = np.concatenate([part.counts for part in lists])
        return Items(counts, concatenate([part.columns for part in lists]))
    if isinstance(parts[0], Span):
        return Span(*map(np.concatenate, zip(*map(spans, parts), strict=True)))
    return np.concatenate([numbers(part) for part in parts])
