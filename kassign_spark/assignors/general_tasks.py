"""The general pass inside single tasks: from the tables of whole groups to their assignment.

Many groups come in one Arrow table and are settled and named side by side. The names follow the
same rules as in ``general_naming``, which does it for groups too large for this.
"""

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame

from kassign_spark.assignors.general_arrays import settle
from kassign_spark.assignors.task_claims import hash_order, resolve
from kassign_spark.assignors.task_tables import (
    Longs,
    dense,
    find,
    find_by_name,
    in_tasks,
    java_hash_codes,
    joined_rows,
    key,
    names,
    place_in_run,
    rows,
)
from kassign_spark.eligibility.classes import Classes
from kassign_spark.eligibility.groups import Eligible
from kassign_spark.settings import Settings

_EDGE, _TOPIC, _MEMBER, _JOINED, _CLAIM = range(5)
_ASSIGNED = (
    "cluster_id string, group_id string, member_id string, topic string, partition int, "
    "is_moving boolean"
)


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
    return in_tasks(table, assign_arrow, _ASSIGNED, settings.batches)


def assign_arrow(table: pa.Table) -> pa.Table:
    """Assign all partitions of the groups whose rows are in the table (see ``assign_in_tasks``)."""
    cluster, group_name = names(table["cluster_id"]), names(table["group_id"])
    member_name = names(table["member_id"], java_order=True)
    topic_name = names(table["topic"])
    group = dense(cluster.code, group_name.code)
    kind, number = table["kind"].to_numpy(), table["number"].to_numpy()
    class_, member = (table[name].to_numpy().astype(np.int64) for name in ("class", "member"))

    # Topics in the order of (group, class, name), members of (group, number), edges of both.
    topics = np.flatnonzero(kind == _TOPIC)
    topics = topics[np.lexsort((topic_name.code[topics], class_[topics], group[topics]))]
    members = np.flatnonzero(kind == _MEMBER)
    members = members[np.lexsort((member[members], group[members]))]
    edges = np.flatnonzero(kind == _EDGE)
    edges = edges[np.lexsort((member[edges], class_[edges], group[edges]))]
    class_keys, class_of_topic = np.unique(key(group, class_)[topics], return_inverse=True)
    class_of_edge = find(class_keys, key(group, class_)[edges])
    member_of_edge = find(key(group, member)[members], key(group, member)[edges])
    first_edge = np.flatnonzero(np.diff(class_of_edge, prepend=-1))

    # Slots: the partitions of the first topic, then of the second, and so on.
    size = number[topics]
    first_slot = np.cumsum(size) - size
    topic_of_slot = np.repeat(np.arange(len(topics)), size)
    partition_of_slot = np.arange(len(topic_of_slot)) - first_slot[topic_of_slot]

    claims = np.flatnonzero(kind == _CLAIM)
    topic_of_claim = find_by_name(group, topic_name.code, topics, claims)
    claimant = find_by_name(group, member_name.code, members, claims)
    partition = number[claims]
    exists = (topic_of_claim >= 0) & (claimant >= 0)
    exists &= partition < np.append(size, 0)[topic_of_claim]
    claimed = first_slot[topic_of_claim[exists]] + partition[exists]
    claimant = claimant[exists]

    prevails = np.ones(len(claimed), bool)
    if len(claimed):
        joined = np.flatnonzero(kind == _JOINED)
        joined = joined[find_by_name(group, member_name.code, joined, members)]
        visit = hash_order(
            group[members],
            java_hash_codes(member_name.strings)[member_name.code[members] - 1],
            member[joined],
            member_name.code[members],
        )
        prevails, _ = resolve(claimed, visit[claimant], number[joined][claimant])
    edge = find(
        key(class_of_edge, member_of_edge), key(class_of_topic[topic_of_slot[claimed]], claimant)
    )
    may_stay = prevails & (edge >= 0)
    edge, slot = edge[may_stay], claimed[may_stay]

    owned = np.bincount(edge, minlength=len(edges)).astype(np.int64)
    assigned = settle(
        class_of_edge, member_of_edge, owned, number[edges][first_edge], class_[edges][first_edge]
    )
    owner = np.full(len(topic_of_slot), -1)
    kept = kept_claims(edge, partition_of_slot[slot], topic_of_slot[slot], assigned)
    owner[slot[kept]] = member_of_edge[edge[kept]]
    owner[owner < 0] = member_of_edge[deal_in_turn(class_of_edge, assigned - owned)]
    # What a member sent as owned counts here, also where its claim did not prevail.
    moving = np.zeros(len(owner), bool)
    moving[claimed] = True
    moving[claimed[owner[claimed] == claimant]] = False

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
