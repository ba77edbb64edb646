"""The constrained pass of the sticky assignors inside single tasks, for groups that fit into one.

The same steps and the same answer as ``eligibility.claims`` and ``assignors.constrained``, which
spread one giant group over all tasks, here in numpy over thousands of small groups side by side:
there, the many small joins cost more than the work.
"""

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame

from kassign_spark.assignors.segments import Longs
from kassign_spark.assignors.task_claims import claimed_slots, hash_order, resolve
from kassign_spark.assignors.task_tables import (
    ASSIGNED,
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

_TOPIC, _MEMBER, _CLAIM = range(3)
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
        rows(topics, _TOPIC, topic="topic", number="num_partitions")
        .unionByName(joined_rows(eligible.members, _MEMBER))
        .unionByName(
            rows(eligible.owned, _CLAIM, topic="topic", member_id="member_id", number="partition")
        )
    )
    tasks = eligible.about_partitions // max(settings.max_partitions_per_task, 1)
    return in_tasks(table, assign_arrow, ASSIGNED, max(settings.batches, tasks))


def assign_arrow(table: pa.Table) -> pa.Table:
    """Assign all partitions of the groups whose topics are in the table."""
    read = encode(table, topics_in_java_order=True)
    group, group_count = read.group, int(read.group.max(initial=-1)) + 1

    # Topics in the order of (group, topic), members of (group, member id).
    topics = np.flatnonzero(read.kind == _TOPIC)
    topics = topics[np.lexsort((read.topic_name.code[topics], group[topics]))]
    subscribed = np.zeros(group_count, bool)
    subscribed[group[topics]] = True
    members = np.flatnonzero((read.kind == _MEMBER) & subscribed[group])
    members = members[np.lexsort((read.member_name.code[members], group[members]))]
    claims = np.flatnonzero((read.kind == _CLAIM) & subscribed[group])
    slots = lay_out(read, topics)
    claimed, claimant = claimed_slots(read, slots, members, claims)

    group_of_member = group[members]
    member_count = np.bincount(group_of_member, minlength=group_count)
    visit = hash_order(read, members, read.member[members])
    moving = np.zeros(len(slots.topic), bool)
    prevails, disputed = resolve(claimed, visit[claimant], read.number[members][claimant])
    moving[disputed] = True
    claimed, claimant = claimed[prevails], claimant[prevails]

    partition_count = np.bincount(group[topics], slots.size, group_count).astype(np.int64)
    least, places_at_max = np.divmod(partition_count, np.maximum(member_count, 1))
    owned = np.bincount(claimant, minlength=len(members))
    over = places_at_max[group_of_member]
    quota = least[group_of_member]
    owns_max = (owned > quota) & (over > 0)
    # The first in hash order that own so much may keep one more than the least.
    by_visit = np.flatnonzero(owns_max)
    by_visit = by_visit[np.argsort(visit[by_visit])]
    quota[by_visit] += place_in_run(group_of_member[by_visit]) < over[by_visit]

    # Members keep the lowest partition numbers, by topic where those are equal.
    order = np.lexsort((claimed, slots.partition[claimed], claimant))
    claimed, claimant = claimed[order], claimant[order]
    keeps = place_in_run(claimant) < quota[claimant]
    owner = np.full(len(slots.topic), -1)
    owner[claimed[keeps]] = claimant[keeps]
    moving[claimed[~keeps]] = True

    extras = np.maximum(
        places_at_max - np.bincount(group_of_member[owns_max], minlength=group_count), 0
    )
    missing = least[group_of_member] - np.bincount(claimant[keeps], minlength=len(members))
    owner[owner < 0] = _takers(group_of_member, missing, extras)
    return assigned_table(read, slots, members[owner], moving)


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
