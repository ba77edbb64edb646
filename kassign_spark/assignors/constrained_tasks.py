"""The constrained pass of the sticky assignors inside single tasks, for groups that fit into one.

Exactly what Kafka's client does (``AbstractStickyAssignor.ConstrainedAssignmentBuilder``, clients
3.7.1 and later, without racks): every member keeps of what it owns up to its quota, and the rest is
handed out one by one to those below. Where Kafka loops, this counts, in numpy over thousands of
groups side by side. ``constrained_slices`` cuts larger groups into slices.
"""

from typing import NamedTuple

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame

from kassign_spark.assignors.segments import Longs
from kassign_spark.assignors.task_claims import claimed_slots, hash_order, resolve
from kassign_spark.assignors.task_tables import (
    ASSIGNED,
    Encoded,
    Slots,
    assigned_table,
    encode,
    in_tasks,
    joined_rows,
    lay_out,
    place_in_run,
    rows,
)
from kassign_spark.eligibility.groups import Eligible
from kassign_spark.settings import Settings

TOPIC, MEMBER, CLAIM = range(3)
"""Kinds of rows: a subscribed topic, a member, what a member says it owns."""

_AFTER_ALL_LAPS = np.iinfo(np.int32).max


def assign_constrained_in_tasks(
    topics: DataFrame, eligible: Eligible, settings: Settings
) -> DataFrame:
    """Assign whole groups, many of them in each task; runs no job.

    Args:
        topics: what the groups to assign subscribe to, as ``claims.subscribed_topics`` gives it.
        eligible: these groups; others do no harm. ``owned`` must be there.
        settings: ``batches``, ``max_partitions_per_task``.

    Returns:
        The columns of ``schemas.ASSIGNMENT`` and is_moving boolean: another member owns the
        partition now, or several dispute it, so that a cooperative rebalance withholds it.
    """
    assert eligible.owned is not None
    table = (
        rows(topics, TOPIC, topic="topic", number="num_partitions")
        .unionByName(joined_rows(eligible.members, MEMBER))
        .unionByName(
            rows(eligible.owned, CLAIM, topic="topic", member_id="member_id", number="partition")
        )
    )
    tasks = eligible.about_partitions // max(settings.max_partitions_per_task, 1)
    return in_tasks(table, assign_arrow, ASSIGNED, max(settings.batches, tasks))


def assign_arrow(table: pa.Table) -> pa.Table:
    """Assign all partitions of the groups whose topics are in the table."""
    read = encode(table, topics_in_java_order=True)
    held = hold_claims(read)
    group, slots = read.group[held.members], held.slots
    group_count = int(group.max(initial=-1)) + 1
    partition_count = np.bincount(read.group[slots.topics], slots.size, group_count)
    owned = np.bincount(held.claimant, minlength=len(group))
    quota = quotas(group, partition_count.astype(np.int64), owned, held.visit)

    keeps = place_in_run(held.claimant) < quota.quota[held.claimant]
    owner = np.full(len(slots.topic), -1)
    owner[held.claimed[keeps]] = held.claimant[keeps]
    moving = np.zeros(len(owner), bool)
    moving[held.disputed] = True
    moving[held.claimed[~keeps]] = True
    missing = quota.least - np.bincount(held.claimant[keeps], minlength=len(group))
    owner[owner < 0] = _takers(group, missing, quota.extras)
    return assigned_table(read, slots, held.members[owner], moving)


class Held(NamedTuple):
    """What members own, a claim a row; each keeps its first ones, as far as its quota goes.

    Attributes:
        members: rows of the table, by (group, member id).
        visit: their rank in ``hash_order``.
        slots: the partitions, by (group, topic, partition).
        claimed: of each claim the slot.
        claimant: of each claim an index into ``members``; claims are by claimant, and then by
            partition number, and by topic where that is equal.
        disputed: slots that several members of one generation claim, so that nobody owns them.
    """

    members: Longs
    visit: Longs
    slots: Slots
    claimed: Longs
    claimant: Longs
    disputed: Longs


def hold_claims(table: Encoded) -> Held:
    """Resolve the claims of the groups whose topics are in the table to one owner a partition."""
    topics = np.flatnonzero(table.kind == TOPIC)
    topics = topics[np.lexsort((table.topic_name.code[topics], table.group[topics]))]
    subscribed = np.zeros(int(table.group.max(initial=-1)) + 1, bool)
    subscribed[table.group[topics]] = True
    members = np.flatnonzero((table.kind == MEMBER) & subscribed[table.group])
    members = members[np.lexsort((table.member_name.code[members], table.group[members]))]
    claims = np.flatnonzero((table.kind == CLAIM) & subscribed[table.group])
    slots = lay_out(table, topics)
    visit = hash_order(table, members, table.member[members])
    claimed, claimant = claimed_slots(table, slots, members, claims)
    prevails, disputed = resolve(claimed, visit[claimant], table.number[members][claimant])
    claimed, claimant = claimed[prevails], claimant[prevails]
    order = np.lexsort((claimed, slots.partition[claimed], claimant))
    return Held(members, visit, slots, claimed[order], claimant[order], disputed)


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

    Args:
        group: of each member.
        partition_count: of each group.
        owned: of each member.
        visit: of each member its rank in ``hash_order``.
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


def _takers(group: Longs, missing: Longs, extras: Longs) -> Longs:
    """Who takes the free partitions, group by group, in the order of the partitions.

    Members below the least get one each a lap, by id. Then one more goes to each of the first
    ``extras`` of those that have just the least: by the lap in which they got there, and id.
    """
    lacks = np.maximum(missing, 0)
    taker = np.repeat(np.arange(len(group)), lacks)
    lap = place_in_run(taker)
    may = np.flatnonzero(missing >= 0)
    may = may[np.lexsort((missing[may], group[may]))]
    more = may[place_in_run(group[may]) < extras[group[may]]]
    taker = np.concatenate((taker, more))
    lap = np.concatenate((lap, np.full(len(more), _AFTER_ALL_LAPS)))
    # Stable: those with one more stay in their order, the others in that of their ids.
    return taker[np.lexsort((lap, group[taker]))]
