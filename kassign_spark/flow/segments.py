"""Sums, minima and running sums over the rows of each key, in numpy."""

import numpy as np
import numpy.typing as npt

from kassign_spark.flow.costs import UNREACHABLE

Longs = npt.NDArray[np.int64]


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
        """Total for each key."""
        totals = np.zeros(self.key_count, np.int64)
        if len(self._keys):
            totals[self._keys] = np.add.reduceat(values[self._order], self._starts)
        return totals

    def least(self, values: Longs) -> Longs:
        """Minimum for each key; ``UNREACHABLE`` for a key without rows."""
        minima = np.full(self.key_count, UNREACHABLE)
        if len(self._keys):
            minima[self._keys] = np.minimum.reduceat(values[self._order], self._starts)
        return minima

    def before(self, values: Longs) -> Longs:
        """For each row the total of the earlier rows of its key."""
        ordered = values[self._order]
        running = np.cumsum(ordered) - ordered
        totals = np.empty_like(values)
        totals[self._order] = running - running[self._start_of_row]
        return totals
