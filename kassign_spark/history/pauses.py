"""How long partitions stopped being read around a rebalance, as far as their commits tell."""

from typing import NamedTuple

import numpy as np

from kassign_spark.groups.numbers import Longs
from kassign_spark.history.log_arrays import View

PAUSE_WITHIN = 600_000_000
"""Microseconds after a rebalance in which the first commit has to come to end a pause."""


class Pauses(NamedTuple):
    """Of each record the longest pause in microseconds (-1: none is known), and of what."""

    longest: Longs
    topic: Longs
    partition: Longs


def pauses(seen: View) -> Pauses:
    """Find the longest pause of each record.

    A pause is from the last commit of a partition before the record to its first after it, and
    belongs to the last record between the two: each counts once.
    """
    commits, records = seen.committed, seen.records
    size = len(records.group)
    order = np.lexsort((commits.offset, commits.partition, commits.topic, commits.group))
    group, topic, partition = (
        column[order] for column in (commits.group, commits.topic, commits.partition)
    )
    record, at = commits.record[order], commits.at[order]
    same = (group[1:] == group[:-1]) & (topic[1:] == topic[:-1]) & (partition[1:] == partition[:-1])
    after = np.flatnonzero(same & (record[1:] > record[:-1])) + 1
    ended = record[after]
    after = after[~records.is_first[ended] & (at[after] - records.at[ended] <= PAUSE_WITHIN)]
    ended, length = record[after], np.maximum(at[after] - at[after - 1], 0)
    best = np.lexsort((partition[after], topic[after], -length, ended))
    best = best[np.diff(ended[best], prepend=-1) != 0]
    found = Pauses(np.full(size, -1), np.zeros(size, np.int64), np.zeros(size, np.int64))
    found.longest[ended[best]] = length[best]
    found.topic[ended[best]] = topic[after[best]]
    found.partition[ended[best]] = partition[after[best]]
    return found
