"""The constrained pass of the sticky assignors inside a task: subscriptions are equal.

Exactly what Kafka's client does (``AbstractStickyAssignor.ConstrainedAssignmentBuilder``, clients
3.7.1 and later, without racks): every member keeps of what it owns up to its quota, and the rest is
handed out one by one to those below. Where Kafka loops, this counts, in numpy over thousands of
groups side by side. ``slices`` does the same for larger groups, in slices.
"""

from typing import NamedTuple

import numpy as np

from kassign_spark.groups.batch import Answer, Batch, Claims
from kassign_spark.groups.claims import resolve
from kassign_spark.groups.numbers import Longs, place_in_run, rows_by

_AFTER_ALL_LAPS = np.iinfo(np.int32).max


def assign_equal(batch: Batch, claims: Claims, generation: Longs) -> Answer:
    """Assign all partitions of groups whose members subscribe alike.

    Claims are on partitions that exist; ``generation`` is of each member, in which it owned those.
    """
    group = batch.member_group
    slot_count, member_count = int(batch.first_slot[-1]), len(group)
    claimed, claimant, disputed = hold_claims(batch, claims, generation)
    partition_count = np.bincount(batch.slot_group, minlength=batch.group_count)
    owned = np.bincount(claimant, minlength=member_count)
    quota = quotas(group, partition_count, owned, batch.hash_rank)

    keeps = place_in_run(claimant) < quota.quota[claimant]
    owner = np.full(slot_count, -1)
    owner[claimed[keeps]] = claimant[keeps]
    moving = np.zeros(slot_count, bool)
    moving[disputed] = True
    moving[claimed[~keeps]] = True
    missing = quota.least - np.bincount(claimant[keeps], minlength=member_count)
    has_topics = partition_count > 0
    missing[~has_topics[group]] = -1
    owner[owner < 0] = takers(group, missing, quota.extras)
    return Answer(owner, moving)


class Held(NamedTuple):
    """What members own, a claim a row; each keeps its first ones, as far as its quota goes.

    Attributes:
        claimed: of each claim the slot.
        claimant: of each claim the member; claims are by claimant, and then by partition number,
            and by topic where that is equal.
        disputed: slots that several members of one generation claim, so that nobody owns them.
    """

    claimed: Longs
    claimant: Longs
    disputed: Longs


def hold_claims(batch: Batch, claims: Claims, generation: Longs) -> Held:
    """Resolve claims on partitions that exist to one owner a partition."""
    prevails, disputed = resolve(
        claims.slot, batch.hash_rank[claims.member], generation[claims.member]
    )
    claimed, claimant = claims.slot[prevails], claims.member[prevails]
    by_member = rows_by(claimant, batch.slot_partition[claimed], claimed)
    return Held(claimed[by_member], claimant[by_member], disputed)


class Quotas(NamedTuple):
    """How many partitions members may keep.

    Attributes:
        least: of each member what every member of its group gets at least.
        quota: of each member how many of its own it may keep.
        extras: of each group how many members may yet get one more than the least.
    """

    least: Longs
    quota: Longs
    extras: Longs


def quotas(group: Longs, partition_count: Longs, owned: Longs, visit: Longs) -> Quotas:
    """Let members keep the least number, and as many as may have one more keep that one.

    Partitions are counted by group, the rest by member; ``visit`` is its rank in ``hash_rank``.
    """
    member_count = np.bincount(group, minlength=len(partition_count))
    least, places_at_max = np.divmod(partition_count, np.maximum(member_count, 1))
    least, places = least[group], places_at_max[group]
    owns_max = (owned > least) & (places > 0)
    # The first in hash order that own so much may keep it.
    by_visit = np.flatnonzero(owns_max)
    by_visit = by_visit[np.argsort(visit[by_visit])]
    quota = least.copy()
    quota[by_visit] += place_in_run(group[by_visit]) < places[by_visit]
    at_max = np.bincount(group[owns_max], minlength=len(partition_count))
    return Quotas(least, quota, np.maximum(places_at_max - at_max, 0))


def takers(group: Longs, missing: Longs, extras: Longs) -> Longs:
    """Who takes the free partitions, group by group, in the order of the partitions.

    Members below the least get one each a lap, by id. Then one more goes to each of the first
    ``extras`` of those that have just the least: by the lap in which they got there, and id.
    """
    lacks = np.maximum(missing, 0)
    taker = np.repeat(np.arange(len(group)), lacks)
    lap = place_in_run(taker)
    may = np.flatnonzero(missing >= 0)
    may = may[rows_by(group[may], missing[may])]
    more = may[place_in_run(group[may]) < extras[group[may]]]
    taker = np.concatenate((taker, more))
    lap = np.concatenate((lap, np.full(len(more), _AFTER_ALL_LAPS)))
    # Stable: those with one more stay in their order, the others in that of their ids.
    return taker[rows_by(group[taker], lap)]
