"""Claims of many groups resolved to one owner a partition, as Kafka's sticky assignors do.

A claim is what a member sent when it joined, in its subscription (CooperativeSticky) or in user
data (Sticky), with the generation in which it owned the partitions. Source:
``AbstractStickyAssignor`` of clients 3.7.1 and later (KAFKA-12984, KAFKA-15106), whose members are
visited in the order of a Java hash map.
"""

import numpy as np

from kassign_spark.groups.numbers import Flags, Longs, key, rows_by


def resolve(slot: Longs, visit: Longs, generation: Longs) -> tuple[Flags, Longs]:
    """Resolve claims: the highest generation wins; what equal ones dispute has no owner.

    A dispute is remembered, also where a newer generation is visited afterwards.

    Args:
        slot: which partition each claim is on, from 0.
        visit: the claimant's rank in ``Batch.hash_rank``.
        generation: the claimant's, or -1.

    Returns:
        which claims prevail, and the slots in dispute.
    """
    prevails = np.ones(len(slot), bool)
    contested = np.flatnonzero(np.bincount(slot)[slot] > 1)
    if not len(contested):
        return prevails, contested
    contested = contested[rows_by(slot[contested], visit[contested])]
    slot, generation = slot[contested], generation[contested]
    is_first = np.diff(slot, prepend=-1) != 0
    begins = np.flatnonzero(is_first)
    run = np.cumsum(is_first) - 1
    by_run = key(run, generation + 1)
    disputes = np.zeros(len(slot), bool)
    disputes[1:] = np.maximum.accumulate(by_run)[:-1] == by_run[1:]
    disputed = np.logical_or.reduceat(disputes, begins)
    highest = np.maximum.reduceat(generation, begins)
    prevails[contested] = ~disputed[run] & (generation == highest[run])
    return prevails, slot[begins][disputed]
