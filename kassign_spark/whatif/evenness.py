"""What an answer means for each group of a batch: how even it is, and what it disturbs."""

from typing import NamedTuple

import numpy as np

from kassign_spark.assignors.answer import Answer
from kassign_spark.assignors.in_tasks import COOPERATIVE_STICKY, answer
from kassign_spark.groups.batch import Batch, Claims
from kassign_spark.groups.numbers import Longs


class Evenness(NamedTuple):
    """Of each group; and ``load`` of each member.

    Attributes:
        load: partitions of each member.
        most: the largest load; 0 without members.
        least: the least.
        idle: members without any partition.
        moved: partitions that somebody had, and that nobody who had them has now.
        paused: partitions that a member which is still there stops reading for a while: all that
            it had with an eager assignor, those that it loses with `cooperative-sticky`.
        rounds: how many rebalances in a row.
    """

    load: Longs
    most: Longs
    least: Longs
    idle: Longs
    moved: Longs
    paused: Longs
    rounds: Longs

    @property
    def spread(self) -> Longs:
        """Between the largest and the least load."""
        return self.most - self.least


def evaluate(batch: Batch, claims: Claims, assignor: Longs) -> tuple[Evenness, Answer]:
    """Let each group's assignor answer, and measure what follows."""
    found = answer(batch, claims, batch.generation, assignor)
    return measure(batch, claims, assignor, found), found


def measure(batch: Batch, claims: Claims, assignor: Longs, found: Answer) -> Evenness:
    """Measure an answer, when all its rounds are over."""
    count = batch.group_count
    group = batch.member_group
    load = np.bincount(found.owner, minlength=len(group))
    most, least = np.zeros(count, np.int64), np.full(count, np.iinfo(np.int64).max)
    np.maximum.at(most, group, load)
    np.minimum.at(least, group, load)
    idle = np.bincount(group[load == 0], minlength=count)
    claimed = claims.slot >= 0
    slot, member = claims.slot[claimed], claims.member[claimed]
    had = np.zeros(len(found.owner), bool)
    had[slot] = True
    had[slot[found.owner[slot] == member]] = False
    moved = np.bincount(batch.slot_group[had], minlength=count)
    is_cooperative = assignor == COOPERATIVE_STICKY
    of_slot = batch.slot_group[slot]
    stops = (member >= 0) & (~is_cooperative[of_slot] | (found.owner[slot] != member))
    paused = np.bincount(of_slot[stops], minlength=count)
    waits = np.zeros(count, bool)
    waits[batch.slot_group[found.is_moving]] = True
    least = np.where(least == np.iinfo(np.int64).max, 0, least)
    rounds = 1 + (is_cooperative & waits)
    return Evenness(load, most, least, idle, moved, paused, rounds)
