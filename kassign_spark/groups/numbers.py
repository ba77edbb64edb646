"""Names as numbers, and searches among numbers: what the kernels do instead of joins."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kassign_spark.coordinator.orders import inverse

Longs = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

_BITS = 63
_KEY_BITS = 32
_MOST_UNUSED = 4
"""Numbers there may be for each row, to be counted and not sorted: counting takes room for all."""
_FIRST_BYTE_OF_E000 = 0xEE
"""UTF-8 sorts as UTF-16 does as long as no character is in U+E000 or above."""


class Names(NamedTuple):
    """A string column in numbers that are in the order of its strings; 0 stands for null."""

    code: Longs
    strings: pa.Array

    def take(self, codes: Longs) -> pa.Array:
        """Return the strings of ``codes``; null for 0."""
        return self.strings.take(pa.array(codes - 1, mask=codes == 0))

    def split(self, *lengths: int) -> "list[Names]":
        """Cut the rows into parts of these lengths, which share the strings."""
        parts = np.split(self.code, np.cumsum(lengths)[:-1])
        return [Names(part, self.strings) for part in parts]


def names(column: pa.ChunkedArray, *, java_order: bool = False) -> Names:
    """Encode a string column; by UTF-8 bytes, or as Java's ``String.compareTo`` orders."""
    encoded = pc.dictionary_encode(column).combine_chunks()
    if isinstance(encoded, pa.ChunkedArray):  # of no chunk at all
        encoded = pa.array([], pa.string()).dictionary_encode()
    strings = encoded.dictionary
    order = pc.sort_indices(_utf_16(strings) if java_order else strings).to_numpy()
    rank = np.append(inverse(order) + 1, 0)
    indices = pc.fill_null(encoded.indices, -1).to_numpy(zero_copy_only=False).astype(np.int64)
    return Names(rank[indices], strings.take(pa.array(order)))


def utf_8_rank(strings: pa.Array) -> Longs:
    """Rank strings that are in Java's order by their bytes, as Spark orders them."""
    if _utf_16(strings) is strings:
        return np.arange(len(strings))
    return inverse(pc.sort_indices(strings).to_numpy())


def key(high: Longs, low: Longs) -> Longs:
    """Combine two small numbers in one that sorts by the first, then by the second."""
    return high << _KEY_BITS | low


def rows_by(*columns: npt.NDArray[np.integer | np.bool_]) -> Longs:
    """Sort rows by the first column, those equal in it by the next one, and so on; stable."""
    packed = np.arange(len(columns[0]))
    shift = of_row = len(packed).bit_length()
    for column in reversed(columns if len(packed) else ()):
        least, most = int(column.min()), int(column.max())
        bits = (most - least).bit_length()
        if shift + bits >= _BITS:
            return np.lexsort(columns[::-1])
        packed = packed | column.astype(np.int64) - least << shift
        shift += bits
    # To sort numbers takes a fifth of the time of sorting rows by several columns.
    by: Longs = np.sort(packed, kind="stable") & (1 << of_row) - 1
    return by


def dense(high: Longs, low: Longs) -> tuple[Longs, Longs]:
    """Number the different pairs of two columns of small numbers, from 0, in their order.

    Returns:
        where each different pair is first, and the number of each row's pair.
    """
    low = low - low.min(initial=0)
    pair = (high - high.min(initial=0)) * (low.max(initial=0) + 1) + low
    count = int(pair.max(initial=-1)) + 1
    if count > _MOST_UNUSED * len(pair):
        _, first, number = np.unique(pair, return_index=True, return_inverse=True)
        return first, number
    first = np.full(count, -1)
    first[pair[::-1]] = np.arange(len(pair))[::-1]
    is_used = first >= 0
    return first[is_used], (np.cumsum(is_used) - 1)[pair]


def find(keys: Longs, values: Longs) -> Longs:
    """Return the position of each value among sorted distinct keys; -1: not among them."""
    if not len(keys):
        return np.full(len(values), -1)
    place = np.minimum(np.searchsorted(keys, values), len(keys) - 1)
    return np.where(keys[place] == values, place, -1)


def place_in_run(run: Longs) -> Longs:
    """Return for each row of runs of equal numbers its place in its run, from 0."""
    begins = np.flatnonzero(np.diff(run, prepend=-1))
    return np.arange(len(run)) - np.repeat(begins, np.diff(begins, append=len(run)))


def starts(counts: Longs) -> Longs:
    """Return the start of each run when runs of these lengths follow each other, and the end."""
    return np.concatenate((np.zeros(1, np.int64), np.cumsum(counts)))


def ranges(first: Longs, count: Longs) -> Longs:
    """Return the numbers first, first + 1, ... of each range, one range after the other."""
    return np.repeat(first - starts(count)[:-1], count) + np.arange(count.sum())


def _utf_16(strings: pa.Array) -> pa.Array:
    """Return keys that sort by UTF-16 code units; the strings themselves where those sort alike."""
    data = strings.buffers()[2]
    if data is None or np.frombuffer(data, np.uint8).max(initial=0) < _FIRST_BYTE_OF_E000:
        return strings
    return pa.array([text.encode("utf-16-be") for text in strings.to_pylist()], pa.binary())


def same_lists(group: Longs, count: Longs, item: Longs) -> tuple[Longs, Longs]:
    """Find the lists of one group that hold the same; lists come one behind the other.

    Args:
        group: of each list.
        count: how long each is.
        item: what is in the first list, in the second, and so on; in one order in all.

    Returns:
        the first of each kind of list, ascending, and of each list its kind.
    """
    bounds = starts(count)
    begin, end = bounds[:-1], bounds[1:]
    sums = np.concatenate((np.zeros(1, np.uint64), np.cumsum(_scatter(item))))
    mark = sums[end] - sums[begin]
    order = np.lexsort((mark, count, group))
    is_new = np.ones(len(order), bool)
    is_new[1:] = np.any([np.diff(values[order]) != 0 for values in (group, count, mark)], axis=0)
    kind = (np.cumsum(is_new) - 1)[inverse(order)]
    first = order[is_new]
    # The marks of different lists may be the same by chance: so the lists themselves are compared.
    if not (item[ranges(begin[first[kind]], count)] == item).all():
        lists = [(g, item[b:e].tobytes()) for g, b, e in zip(group, begin, end, strict=True)]
        numbers: dict[tuple[int, bytes], int] = {}
        kind = np.array([numbers.setdefault(each, len(numbers)) for each in lists])
        first = np.unique(kind, return_index=True)[1]
    return np.sort(first), inverse(np.argsort(first))[kind]


def _scatter(numbers: Longs) -> npt.NDArray[np.uint64]:
    """Scatter numbers over 64 bits, so that sums of different sets differ (SplitMix64)."""
    word = (numbers.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return word ^ (word >> np.uint64(31))
