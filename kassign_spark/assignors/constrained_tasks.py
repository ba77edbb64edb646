"""The constrained pass of the sticky assignors inside single tasks, for groups that fit into one.

The same steps and the same answer as ``eligibility.claims`` and ``assignors.constrained``, which
spread one giant group over all tasks, here in numpy over thousands of small groups side by side:
there, the many small joins cost more than the work.
"""

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame

from kassign_spark.assignors.task_claims import hash_order, resolve
from kassign_spark.assignors.task_tables import (
    Longs,
    dense,
    find_by_name,
    in_tasks,
    java_hash_codes,
    joined_rows,
    names,
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
    assigned = (
        "cluster_id string, group_id string, member_id string, topic string, partition int, "
        "is_moving boolean"
    )
    tasks = eligible.about_partitions // max(settings.max_partitions_per_task, 1)
    return in_tasks(table, assign_arrow, assigned, max(settings.batches, tasks))


def assign_arrow(table: pa.Table) -> pa.Table:
    """Assign all partitions of the groups whose topics are in the table."""
    cluster, group_name = names(table["cluster_id"]), names(table["group_id"])
    member_name = names(table["member_id"], java_order=True)
    topic_name = names(table["topic"], java_order=True)
    group = dense(cluster.code, group_name.code)
    group_count = int(group.max(initial=-1)) + 1
    kind, number = table["kind"].to_numpy(), table["number"].to_numpy()
    member_seq = table["member"].to_numpy()

    # Topics in the order of (group, topic), members of (group, member id).
    topics = np.flatnonzero(kind == _TOPIC)
    topics = topics[np.lexsort((topic_name.code[topics], group[topics]))]
    subscribed = np.zeros(group_count, bool)
    subscribed[group[topics]] = True
    members = np.flatnonzero((kind == _MEMBER) & subscribed[group])
    members = members[np.lexsort((member_name.code[members], group[members]))]
    claims = np.flatnonzero((kind == _CLAIM) & subscribed[group])

    # Slots: the partitions of the first topic, then of the second, and so on.
    size = number[topics]
    first_slot = np.cumsum(size) - size
    topic_of_claim = find_by_name(group, topic_name.code, topics, claims)
    member_of_claim = find_by_name(group, member_name.code, members, claims)
    partition = number[claims]
    exists = (topic_of_claim >= 0) & (member_of_claim >= 0)
    exists &= partition < np.append(size, 0)[topic_of_claim]
    claimant = member_of_claim[exists]
    claimed = first_slot[topic_of_claim[exists]] + partition[exists]

    group_of_member = group[members]
    member_count = np.bincount(group_of_member, minlength=group_count)
    visit = hash_order(
        group_of_member,
        java_hash_codes(member_name.strings)[member_name.code[members] - 1],
        member_seq[members],
        member_name.code[members],
    )
    moving = np.zeros(size.sum(), bool)
    prevails, disputed = resolve(claimed, visit[claimant], number[members][claimant])
    moving[disputed] = True
    claimed, claimant = claimed[prevails], claimant[prevails]

    partition_count = np.bincount(group[topics], size, group_count).astype(np.int64)
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
    topic_of_slot = np.repeat(np.arange(len(topics)), size)
    partition_of_slot = np.arange(len(topic_of_slot)) - first_slot[topic_of_slot]
    order = np.lexsort((claimed, partition_of_slot[claimed], claimant))
    claimed, claimant = claimed[order], claimant[order]
    keeps = place_in_run(claimant) < quota[claimant]
    owner = np.full(len(topic_of_slot), -1)
    owner[claimed[keeps]] = claimant[keeps]
    moving[claimed[~keeps]] = True

    extras = np.maximum(
        places_at_max - np.bincount(group_of_member[owns_max], minlength=group_count), 0
    )
    missing = least[group_of_member] - np.bincount(claimant[keeps], minlength=len(members))
    owner[owner < 0] = _takers(group_of_member, missing, extras)

    of_topic = topics[topic_of_slot]
    return pa.table(
        {
            "cluster_id": cluster.take(cluster.code[of_topic]),
            "group_id": group_name.take(group_name.code[of_topic]),
            "member_id": member_name.take(member_name.code[members[owner]]),
            "topic": topic_name.take(topic_name.code[of_topic]),
            "partition": pa.array(partition_of_slot.astype(np.int32)),
            "is_moving": pa.array(moving),
        }
    )


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
