"""The general pass inside single tasks: from the tables of whole groups to their assignment.

Many groups come in one Arrow table and are settled and named side by side. The names follow the
same rules as in ``general_naming``, which does it for groups too large for this.
"""

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame

from kassign_spark.assignors.general_arrays import settle
from kassign_spark.assignors.segments import Longs
from kassign_spark.assignors.task_claims import claimed_slots, hash_order, resolve
from kassign_spark.assignors.task_tables import (
    ASSIGNED,
    assigned_table,
    encode,
    find,
    find_by_name,
    in_tasks,
    joined_rows,
    key,
    lay_out,
    place_in_run,
    rows,
)
from kassign_spark.eligibility.classes import Classes
from kassign_spark.eligibility.groups import Eligible
from kassign_spark.settings import Settings

_EDGE, _TOPIC, _MEMBER, _JOINED, _CLAIM = range(5)


def assign_in_tasks(classes: Classes, eligible: Eligible, settings: Settings) -> DataFrame:
    """Resolve the claims of whole groups, settle and name, many groups a task; runs no job.

    Args:
        classes: of groups that fit.
        eligible: the same groups; what is claimed and not valid is left aside.
        settings: ``batches``.

    Returns:
        The columns of ``schemas.ASSIGNMENT`` and is_moving boolean: others claim the partition
        now, so that a cooperative rebalance withholds it.
    """
    table = (
        rows(classes.edges, _EDGE, class_="class", member="member", number="supply")
        .unionByName(
            rows(classes.topics, _TOPIC, class_="class", topic="topic", number="num_partitions")
        )
        .unionByName(rows(classes.members, _MEMBER, member="member", member_id="member_id"))
    )
    if eligible.owned is not None:
        table = table.unionByName(joined_rows(eligible.members, _JOINED)).unionByName(
            rows(eligible.owned, _CLAIM, topic="topic", member_id="member_id", number="partition")
        )
    return in_tasks(table, assign_arrow, ASSIGNED, settings.batches)


def assign_arrow(table: pa.Table) -> pa.Table:
    """Assign all partitions of the groups whose rows are in the table (see ``assign_in_tasks``)."""
    read = encode(table, topics_in_java_order=False)
    group, kind, class_, member = read.group, read.kind, read.class_, read.member

    # Topics in the order of (group, class, name), members of (group, number), edges of both.
    topics = np.flatnonzero(kind == _TOPIC)
    topics = topics[np.lexsort((read.topic_name.code[topics], class_[topics], group[topics]))]
    members = np.flatnonzero(kind == _MEMBER)
    members = members[np.lexsort((member[members], group[members]))]
    edges = np.flatnonzero(kind == _EDGE)
    edges = edges[np.lexsort((member[edges], class_[edges], group[edges]))]
    class_keys, class_of_topic = np.unique(key(group, class_)[topics], return_inverse=True)
    class_of_edge = find(class_keys, key(group, class_)[edges])
    member_of_edge = find(key(group, member)[members], key(group, member)[edges])
    first_edge = np.flatnonzero(np.diff(class_of_edge, prepend=-1))

    slots = lay_out(read, topics)
    claimed, claimant = claimed_slots(read, slots, members, np.flatnonzero(kind == _CLAIM))
    prevails = np.ones(len(claimed), bool)
    if len(claimed):
        joined = np.flatnonzero(kind == _JOINED)
        joined = joined[find_by_name(group, read.member_name.code, joined, members)]
        visit = hash_order(read, members, member[joined])
        prevails, _ = resolve(claimed, visit[claimant], read.number[joined][claimant])
    edge = find(
        key(class_of_edge, member_of_edge), key(class_of_topic[slots.topic[claimed]], claimant)
    )
    may_stay = prevails & (edge >= 0)
    edge, slot = edge[may_stay], claimed[may_stay]

    owned = np.bincount(edge, minlength=len(edges)).astype(np.int64)
    assigned = settle(
        class_of_edge,
        member_of_edge,
        owned,
        read.number[edges][first_edge],
        class_[edges][first_edge],
    )
    owner = np.full(len(slots.topic), -1)
    kept = kept_claims(edge, slots.partition[slot], slots.topic[slot], assigned)
    owner[slot[kept]] = member_of_edge[edge[kept]]
    owner[owner < 0] = member_of_edge[deal_in_turn(class_of_edge, assigned - owned)]
    # What a member sent as owned counts here, also where its claim did not prevail.
    moving = np.zeros(len(owner), bool)
    moving[claimed] = True
    moving[claimed[owner[claimed] == claimant]] = False
    return assigned_table(read, slots, members[owner], moving)


def kept_claims(edge: Longs, partition: Longs, topic: Longs, assigned: Longs) -> Longs:
    """Claims that stay: of each edge as many as assigned, the lowest (partition, topic) first."""
    order = np.lexsort((topic, partition, edge))
    return order[place_in_run(edge[order]) < assigned[edge[order]]]


def deal_in_turn(class_of_edge: Longs, missing: Longs) -> Longs:
    """Who gets the free partitions, class by class: one to each edge in turn that lacks any.

    Who lacks most comes first, then the lower member.
    """
    lacks = np.maximum(missing, 0)
    edge = np.repeat(np.arange(len(lacks)), lacks)
    turn = place_in_run(edge)
    return edge[np.lexsort((edge, -lacks[edge], turn, class_of_edge[edge]))]
