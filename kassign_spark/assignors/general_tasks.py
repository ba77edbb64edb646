"""The general pass inside single tasks: from the tables of whole groups to their assignment.

Many groups come in one Arrow table and are settled and named side by side. The names follow the
same rules as in ``general_naming``, which does it for groups too large for this.
"""

from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from kassign_spark.assignors.general_arrays import settle
from kassign_spark.assignors.segments import Longs
from kassign_spark.eligibility.classes import Classes
from kassign_spark.schemas import GROUP_KEY
from kassign_spark.settings import Settings

_EDGE, _TOPIC, _MEMBER, _CLAIM = range(4)
_NAME_BITS = 32


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
    # One table for all, since a task can be given one: what a row is, says its kind.
    rows = (
        _rows(classes.edges, _EDGE, class_="class", member="member", number="supply")
        .unionByName(
            _rows(classes.topics, _TOPIC, class_="class", topic="topic", number="num_partitions")
        )
        .unionByName(_rows(classes.members, _MEMBER, member="member", member_id="member_id"))
    )
    if owned is not None:
        rows = rows.unionByName(
            _rows(owned, _CLAIM, topic="topic", member_id="member_id", number="partition")
        )
    batch = F.pmod(F.xxhash64(*GROUP_KEY), F.lit(settings.batches))
    return (
        rows.withColumn("batch", batch)
        .groupBy("batch")
        .applyInArrow(
            assign_arrow,
            "cluster_id string, group_id string, member_id string, topic string, partition int",
        )
    )


def _rows(
    frame: DataFrame,
    kind: int,
    class_: str | None = None,
    member: str | None = None,
    member_id: str | None = None,
    topic: str | None = None,
    number: str | None = None,
) -> DataFrame:
    def of(name: str | None, data_type: str) -> Column:
        return (F.lit(None) if name is None else F.col(name)).cast(data_type)

    return frame.select(
        *GROUP_KEY,
        F.lit(kind).alias("kind"),
        F.coalesce(of(class_, "int"), F.lit(0)).alias("class"),
        F.coalesce(of(member, "int"), F.lit(0)).alias("member"),
        F.coalesce(of(number, "bigint"), F.lit(0)).alias("number"),
        of(member_id, "string").alias("member_id"),
        of(topic, "string").alias("topic"),
    )


class _Names(NamedTuple):
    """A string column in numbers that are in the order of its strings; 0 stands for null."""

    code: Longs
    strings: pa.Array

    def take(self, codes: Longs) -> pa.Array:
        return self.strings.take(pa.array(codes - 1))


def _names(column: pa.ChunkedArray) -> _Names:
    encoded = pc.dictionary_encode(column).combine_chunks()
    order = pc.sort_indices(encoded.dictionary).to_numpy()
    rank = np.empty(len(order) + 1, np.int64)
    rank[order] = np.arange(1, len(order) + 1)
    rank[-1] = 0
    indices = pc.fill_null(encoded.indices, -1).to_numpy().astype(np.int64)
    return _Names(rank[indices], encoded.dictionary.take(pa.array(order)))


def _find(keys: Longs, wanted: Longs) -> Longs:
    """Where each wanted key is among sorted different keys; -1: it is not."""
    if not len(keys):
        return np.full(len(wanted), -1)
    place = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return np.where(keys[place] == wanted, place, -1)


def assign_arrow(table: pa.Table) -> pa.Table:
    """Assign all partitions of the groups whose rows are in the table (see ``_rows``)."""
    cluster, group_name = _names(table["cluster_id"]), _names(table["group_id"])
    member_name, topic_name = _names(table["member_id"]), _names(table["topic"])
    both = cluster.code << _NAME_BITS | group_name.code
    _, group = np.unique(both, return_inverse=True)
    kind, number = table["kind"].to_numpy(), table["number"].to_numpy()
    class_, member = (table[name].to_numpy().astype(np.int64) for name in ("class", "member"))

    # Topics in the order of (group, class, name), members of (group, number), edges of both.
    rows = np.flatnonzero(kind == _TOPIC)
    topics = rows[np.lexsort((topic_name.code[rows], class_[rows], group[rows]))]
    rows = np.flatnonzero(kind == _MEMBER)
    members = rows[np.lexsort((member[rows], group[rows]))]
    rows = np.flatnonzero(kind == _EDGE)
    edges = rows[np.lexsort((member[rows], class_[rows], group[rows]))]
    claims = np.flatnonzero(kind == _CLAIM)

    class_keys, class_of_topic = np.unique(_key(group, class_)[topics], return_inverse=True)
    class_of_edge = _find(class_keys, _key(group, class_)[edges])
    member_of_edge = _find(_key(group, member)[members], _key(group, member)[edges])
    first_edge = np.flatnonzero(np.diff(class_of_edge, prepend=-1))

    topic_of_claim = _found_by_name(group, topic_name.code, topics, claims)
    member_of_claim = _found_by_name(group, member_name.code, members, claims)
    size = number[topics]
    partition = number[claims]
    exists = (topic_of_claim >= 0) & (member_of_claim >= 0)
    exists &= (partition >= 0) & (partition < np.append(size, 0)[topic_of_claim])
    edge_of_claim = _find(
        _key(class_of_edge, member_of_edge),
        _key(np.append(class_of_topic, -1)[topic_of_claim], member_of_claim),
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
    rows = topics[topic_of_slot]
    return pa.table(
        {
            "cluster_id": cluster.take(cluster.code[rows]),
            "group_id": group_name.take(group_name.code[rows]),
            "member_id": member_name.take(member_name.code[members[owner]]),
            "topic": topic_name.take(topic_name.code[rows]),
            "partition": pa.array(
                (np.arange(len(rows)) - first_slot[topic_of_slot]).astype(np.int32)
            ),
        }
    )


def _key(high: Longs, low: Longs) -> Longs:
    return high << _NAME_BITS | low


def _found_by_name(group: Longs, name: Longs, among: Longs, rows: Longs) -> Longs:
    """For each of ``rows`` which of the rows ``among`` has its group and name; -1: none."""
    keys = _key(group, name)
    order = np.argsort(keys[among])
    place = _find(keys[among][order], keys[rows])
    if not len(order):
        return place
    return np.where(place >= 0, order[place], -1)


def kept_claims(edge: Longs, partition: Longs, topic: Longs, assigned: Longs) -> Longs:
    """Claims that stay: of each edge as many as assigned, the lowest (partition, topic) first."""
    order = np.lexsort((topic, partition, edge))
    begins = np.flatnonzero(np.diff(edge[order], prepend=-1))
    place = np.arange(len(order)) - np.repeat(begins, np.diff(begins, append=len(order)))
    return order[place < assigned[edge[order]]]


def deal_in_turn(class_of_edge: Longs, missing: Longs) -> Longs:
    """Who gets the free partitions, class by class: one to each edge in turn that lacks any.

    Who lacks most comes first, then the lower member.
    """
    lacks = np.maximum(missing, 0)
    edge = np.repeat(np.arange(len(lacks)), lacks)
    begins = np.cumsum(lacks) - lacks
    turn = np.arange(len(edge)) - begins[edge]
    return edge[np.lexsort((edge, -lacks[edge], turn, class_of_edge[edge]))]
