"""Claims inside a task: ``eligibility.claims`` in numpy, over the members of many groups."""

import numpy as np
import numpy.typing as npt

from kassign_spark.assignors.segments import Longs
from kassign_spark.assignors.task_tables import (
    Encoded,
    Slots,
    find_by_name,
    java_hash_codes,
    key,
)


def claimed_slots(
    table: Encoded, slots: Slots, members: Longs, claims: Longs
) -> tuple[Longs, Longs]:
    """Find what the rows ``claims`` are about; those that are about nothing that exists are left.

    Returns:
        of each claim the slot, and the claimant as an index into the rows ``members``.
    """
    topic = find_by_name(table.group, table.topic_name.code, slots.topics, claims)
    claimant = find_by_name(table.group, table.member_name.code, members, claims)
    partition = table.number[claims]
    exists = (topic >= 0) & (claimant >= 0) & (partition < np.append(slots.size, 0)[topic])
    return slots.first[topic[exists]] + partition[exists], claimant[exists]


def hash_order(table: Encoded, members: Longs, member_seq: Longs) -> Longs:
    """Rank members, all of their groups, as Java's hash map of their ids iterates.

    Args:
        table: where the members are.
        members: their rows.
        member_seq: of each its place in the JoinGroup response; where that is unknown, -1.
    """
    group, name = table.group[members], table.member_name.code[members]
    hash_code = java_hash_codes(table.member_name.strings)[name - 1]
    member_count = np.bincount(group)
    capacity = np.full(len(member_count), 16)
    while (too_small := member_count * 4 > capacity * 3).any():
        capacity[too_small] *= 2
    bucket = (hash_code ^ hash_code >> 16) & (capacity[group] - 1)
    rank = np.empty(len(group), np.int64)
    rank[np.lexsort((name, member_seq, bucket, group))] = np.arange(len(group))
    return rank


def resolve(slot: Longs, visit: Longs, generation: Longs) -> tuple[npt.NDArray[np.bool_], Longs]:
    """Let the highest generation win; equal ones dispute, and nobody has what is disputed.

    A dispute is remembered, also where a newer generation is visited afterwards.

    Args:
        slot: which partition each claim is on, from 0.
        visit: the claimant's rank in ``hash_order``.
        generation: the claimant's, or -1.

    Returns:
        which claims prevail, and the slots in dispute.
    """
    prevails = np.ones(len(slot), bool)
    contested = np.flatnonzero(np.bincount(slot)[slot] > 1)
    if not len(contested):
        return prevails, contested
    contested = contested[np.lexsort((visit[contested], slot[contested]))]
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
