"""Lists of numbers, one behind the other, compared by their elements."""

import numpy as np
import numpy.typing as npt

from kassign_spark.coordinator.orders import inverse
from kassign_spark.groups.numbers import Longs, ranges, starts


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
