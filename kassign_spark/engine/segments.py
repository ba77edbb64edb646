"""Sums, minima and running sums over the rows of each key, in numpy."""

from typing import Any

import numpy as np
import numpy.typing as npt

from kassign_spark.engine.costs import UNREACHABLE

Longs = npt.NDArray[np.int64]
Integers = npt.NDArray[np.integer[Any]]
"""Whole numbers of 32 bits each, or of 64."""


class Segments:
    """Rows gathered by a dense key: sums, minima and running sums in row order for each key."""

    def __init__(self, key: Longs, key_count: int) -> None:
        self.key = key
        self.key_count = key_count
        self._order = np.argsort(key, kind="stable")
        ordered = key[self._order]
        self._starts = np.flatnonzero(np.diff(ordered, prepend=-1))
        self._keys = ordered[self._starts]
        self._start_of_row = np.repeat(self._starts, np.diff(self._starts, append=len(key)))

    def sum(self, values: Longs) -> Longs:
        """Return the total for each key."""
        totals = np.zeros(self.key_count, np.int64)
        if len(self._keys):
            totals[self._keys] = np.add.reduceat(values[self._order], self._starts)
        return totals

    def least(self, values: Longs) -> Longs:
        """Return the minimum for each key; ``UNREACHABLE`` for a key without rows."""
        minima = np.full(self.key_count, UNREACHABLE)
        if len(self._keys):
            minima[self._keys] = np.minimum.reduceat(values[self._order], self._starts)
        return minima

    def before(self, values: Longs) -> Longs:
        """Return for each row the total of the earlier rows of its key."""
        ordered = values[self._order]
        running = np.cumsum(ordered) - ordered
        totals = np.empty_like(values)
        totals[self._order] = running - running[self._start_of_row]
        return totals


def totals(key: Integers, values: Integers, key_count: int) -> Longs:
    """Return the total for each key; exact up to 2 ** 53."""
    return np.bincount(key, values, key_count).astype(np.int64)


def shares_in_order(key: Integers, demand: Integers, limit: Longs) -> Integers:
    """Grant each row what it wants while the limit of its key lasts, in the order of rows."""
    total = totals(key, demand, len(limit))
    granted: Integers = demand * (limit >= total)[key]
    # Only keys whose limit ends between their first row and their last need an order.
    is_contested = (limit > 0) & (limit < total)
    if is_contested.any():
        rows = is_contested[key].nonzero()[0]
        rows = rows[np.argsort(key[rows], kind="stable")]
        key, demand = key[rows], demand[rows]
        first = np.cumsum(total * is_contested) - total
        left = (limit + first)[key] - (np.cumsum(demand) - demand)
        granted[rows] = np.minimum(np.maximum(left, 0), demand)
    return granted
