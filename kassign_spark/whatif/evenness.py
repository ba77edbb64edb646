"""Measure an answer for each group of a batch: its evenness, and what it disturbs.

It says of a rebalance what ``outcome`` does, in counts and without following its steps: many
changes are tried for each group, and few are of any use.
"""

from typing import NamedTuple

import numpy as np

from kassign_spark.assignors.in_tasks import COOPERATIVE_STICKY, assign_batch
from kassign_spark.groups.batch import Batch, BatchAssignment, Claims
from kassign_spark.groups.numbers import Flags, Longs, key
from kassign_spark.whatif.outcome import extremes


class Evenness(NamedTuple):
    """Measures of each group; and ``load`` of each member.

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
        """Return the difference between the largest and the smallest load."""
        return self.most - self.least


def evaluate(batch: Batch, claims: Claims, assignor: Longs) -> tuple[Evenness, Longs]:
    """Run each group's assignor, and measure the result.

    With `cooperative-sticky` a member gives up partitions of topics that it has dropped before it
    joins (``ConsumerCoordinator.onJoinPrepare``), so the assignor does not see them.

    Claims are also those of members that left, and on what does not exist; ``assignor`` is of each
    group a number of ``KAFKAS``. Returns the measures, and who is to have each partition.
    """
    is_cooperative = assignor == COOPERATIVE_STICKY
    reported = claims.where(claims.member >= 0)
    dropped = ~batch.subscribes(reported.member, reported.topic)
    reported = reported.where(~(is_cooperative[reported.group] & dropped))
    assignment = assign_batch(batch, reported, batch.generation, assignor)
    return _measure(batch, claims, reported, is_cooperative, assignment), assignment.owner


def _measure(
    batch: Batch,
    claims: Claims,
    reported: Claims,
    is_cooperative: Flags,
    assignment: BatchAssignment,
) -> Evenness:
    """Measure an answer, when all its rounds are over."""
    count, group = batch.group_count, batch.member_group
    load = np.bincount(assignment.owner, minlength=len(group))
    least, most = extremes(group, load, count)
    least = np.minimum(least, most)  # without members there is none
    idle = np.bincount(group[load == 0], minlength=count)

    exists = claims.slot >= 0
    slot, keeps = claims.slot[exists], _keeps(claims, assignment)
    moves = np.zeros(len(assignment.owner), bool)
    moves[slot] = True
    moves[slot[keeps[exists]]] = False
    moved = np.bincount(batch.slot_group[moves], minlength=count)

    stops = (claims.member >= 0) & ~(is_cooperative[claims.group] & keeps)
    by_topic = np.unique(key(claims.group, claims.topic), return_inverse=True)[1].reshape(-1)
    stopped = key(by_topic, claims.partition)[stops]
    paused = np.bincount(
        claims.group[stops][np.unique(stopped, return_index=True)[1]], minlength=count
    )

    waits = np.zeros(count, bool)
    waits[batch.slot_group[assignment.is_moving]] = True
    waits[reported.group[~_keeps(reported, assignment)]] = True
    return Evenness(load, most, least, idle, moved, paused, 1 + (is_cooperative & waits))


def _keeps(claims: Claims, assignment: BatchAssignment) -> Flags:
    """Return whether the claimant of a partition is to have it."""
    keeps: Flags = np.append(assignment.owner, -1)[claims.slot] == claims.member
    return keeps & (claims.slot >= 0) & (claims.member >= 0)
