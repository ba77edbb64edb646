"""The small form in which a block travels from round to round: only counts that are not 0."""

from typing import NamedTuple

import numpy as np

from kassign_spark.engine.segments import Integers


class _Sparse(NamedTuple):
    length: int
    rows: Integers
    values: Integers


def pack(values: Integers) -> Integers | _Sparse:
    """Keep only what is not 0, with its rows, where that takes less."""
    rows = np.flatnonzero(values)
    if 2 * len(rows) >= len(values):
        return values
    return _Sparse(len(values), rows.astype(np.int32), values[rows])


def unpack(packed: Integers | _Sparse) -> Integers:
    """Return what was packed."""
    if not isinstance(packed, _Sparse):
        return packed
    values = np.zeros(packed.length, packed.values.dtype)
    values[packed.rows] = packed.values
    return values
