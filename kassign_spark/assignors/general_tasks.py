"""The general pass inside single tasks: from the tables of whole groups to their assignment.

Many groups come in one Arrow table and are settled and named side by side. The names follow the
same rules as in ``general_naming``, which does it for groups too large for this.
"""

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame

from kassign_spark.assignors.general_arrays import settle
from kassign_spark.assignors.task_tables import (
    Longs,
    dense,
    find,
    find_by_name,
    in_tasks,
    key,
    names,
    place_in_run,
    rows,
)
from kassign_spark.eligibility.classes import Classes
from kassign_spark.settings import Settings

_EDGE, _TOPIC, _MEMBER, _CLAIM = range(4)
_ASSIGNED = "cluster_id string, group_id string, member_id string, topic string, partition int"


def assign_in_tasks(classes: Classes, owned: DataFrame | None, settings: Settings) -> DataFrame:
    """Settle and name whole groups, many of them in each of ``batches`` tasks; runs no job.

    Args:
        classes: of groups that fit.
        owned: of the same groups: group key, member_id string, topic string, partition; at most
            one owner a partition; what is not valid is left aside.
        settings: ``batches``.

    Returns:
        The columns of ``schemas.ASSIGNMENT``.
    """
    table = (
        rows(classes.edges, _EDGE, class_="class", member="member", number="supply")
        .unionByName(
            rows(classes.topics, _TOPIC, class_="class", topic="topic", number="num_partitions")
        )
        .unionByName(rows(classes.members, _MEMBER, member="member", member_id="member_id"))
    )
    if owned is not None:
        table = table.unionByName(
            rows(owned, _CLAIM, topic="topic", member_id="member_id", number="partition")
        )
    return in_tasks(table, assign_arrow, _ASSIGNED, settings.batches)


def assign_arrow(table: pa.Table) -> pa.Table:
    """Assign all partitions of the groups whose rows are in the table (see ``assign_in_tasks``)."""
    cluster, group_name = names(table["cluster_id"]), names(table["group_id"])
    member_name, topic_name = names(table["member_id"]), names(table["topic"])
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
    claims = np.flatnonzero(kind == _CLAIM)

    class_keys, class_of_topic = np.unique(key(group, class_)[topics], return_inverse=True)
    class_of_edge = find(class_keys, key(group, class_)[edges])
    member_of_edge = find(key(group, member)[members], key(group, member)[edges])
    first_edge = np.flatnonzero(np.diff(class_of_edge, prepend=-1))

    topic_of_claim = find_by_name(group, topic_name.code, topics, claims)
    member_of_claim = find_by_name(group, member_name.code, members, claims)
    size = number[topics]
    partition = number[claims]
    exists = (topic_of_claim >= 0) & (member_of_claim >= 0)
    exists &= (partition >= 0) & (partition < np.append(size, 0)[topic_of_claim])
    edge_of_claim = find(
        key(class_of_edge, member_of_edge),
        key(np.append(class_of_topic, -1)[topic_of_claim], member_of_claim),
    )
    valid = exists & (edge_of_claim >= 0)
    topic_of_claim, edge_of_claim, partition = (
        column[valid] for column in (topic_of_claim, edge_of_claim, partition)
    )

    owned = np.bincount(edge_of_claim, minlength=len(edges)).astype(np.int64)
    assigned = settle(
        class_of_edge, member_of_edge, owned, number[edges][first_edge], class_[edges][first_edge]
    )
    # Slots: the partitions of the first topic, then of the second, and so on.
    first_slot = np.cumsum(size) - size
    owner = np.full(size.sum(), -1)
    kept = kept_claims(edge_of_claim, partition, topic_of_claim, assigned)
    owner[(first_slot[topic_of_claim] + partition)[kept]] = member_of_edge[edge_of_claim[kept]]
    owner[owner < 0] = member_of_edge[deal_in_turn(class_of_edge, assigned - owned)]

    topic_of_slot = np.repeat(np.arange(len(topics)), size)
    of_topic = topics[topic_of_slot]
    return pa.table(
        {
            "cluster_id": cluster.take(cluster.code[of_topic]),
            "group_id": group_name.take(group_name.code[of_topic]),
            "member_id": member_name.take(member_name.code[members[owner]]),
            "topic": topic_name.take(topic_name.code[of_topic]),
            "partition": pa.array(
                (np.arange(len(of_topic)) - first_slot[topic_of_slot]).astype(np.int32)
            ),
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
