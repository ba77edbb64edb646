"""Rows of Arrow lists: what one task tells another of a slice, a row each."""

from collections.abc import Callable, Iterable, Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kassign_spark.groups.numbers import Longs


def each_row(
    function: Callable[[pa.RecordBatch], pa.RecordBatch],
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Call ``function`` with one slice, a row, after the other."""

    def slice_by_slice(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in range(len(batch)):
                yield function(batch.slice(number, 1))

    return slice_by_slice


def one_row(keys: pa.RecordBatch, **lists: pa.Array | Longs) -> pa.RecordBatch:
    """One row: ``keys``, itself one, and each list as a value."""
    for name, values in lists.items():
        flat = pa.array(values)
        keys = keys.append_column(
            name, pa.ListArray.from_arrays(pa.array([0, len(flat)], pa.int32()), flat)
        )
    return keys


def numbers_in(rows: pa.RecordBatch | pa.Table, name: str) -> Longs:
    """The numbers of a row's list, or of those of several, one after the other."""
    numbers: Longs = np.asarray(pc.list_flatten(rows[name]))
    return numbers


def matrix_of(slices: pa.Table, name: str) -> Longs:
    """Lists of one length, a row each."""
    return numbers_in(slices, name).reshape(len(slices), -1)


def lists_of(matrix: Longs) -> pa.ListArray:
    """A list for each row."""
    count, length = matrix.shape
    ends = pa.array(np.arange(count + 1) * length, pa.int32())
    return pa.ListArray.from_arrays(ends, pa.array(matrix.ravel()))
