"""Whole groups as rows of one table for a task, and what a task reads from them.

A subscription that many members share is there once, with the ids of all of them.
"""

from typing import NamedTuple

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from kassign_spark.assignors.segments import Longs
from kassign_spark.assignors.task_tables import dense, find, key, names
from kassign_spark.eligibility.graph import number_groups
from kassign_spark.eligibility.groups import Eligible
from kassign_spark.graph.batch import Subscribed
from kassign_spark.schemas import CLUSTER_ID, GROUP_KEY

_SUBSCRIPTION, _TOPIC, _GROUP = range(3)
_COLUMNS = {
    "member_ids": "array<string>",
    "topics": "array<string>",
    "topic": "string",
    "number": "bigint",
}


class Read(NamedTuple):
    """A batch of groups and its names.

    Attributes:
        subscribed: groups, members and topics by number.
        cluster_id: of each group.
        group_id: of each group.
        member_id: of each member; they are in Java's order in their group.
        topic: of each topic; likewise.
        group_number: of each group, the same in every batch.
    """

    subscribed: Subscribed
    cluster_id: pa.Array
    group_id: pa.Array
    member_id: pa.Array
    topic: pa.Array
    group_number: Longs


def graph_rows(eligible: Eligible) -> DataFrame:
    """Put groups into the rows of one table; runs no job.

    Returns:
        cluster_id string, group_id string, kind tinyint, and by kind:
        SUBSCRIPTION: topics array<string>, member_ids array<string> of all who have just it;
        TOPIC: topic string, number bigint (partitions), once for each subscription that names it;
        GROUP: number bigint, as ``number_groups`` gives it. Others are null.
    """
    subscriptions = by_subscription(eligible)
    sizes = subscriptions.select(*GROUP_KEY, F.explode("topics").alias("topic")).join(
        eligible.topics, on=[CLUSTER_ID, "topic"], how="inner"
    )
    return (
        _rows(subscriptions, _SUBSCRIPTION)
        .unionByName(_rows(sizes, _TOPIC, number="num_partitions"))
        .unionByName(
            _rows(number_groups(eligible.groups.select(*GROUP_KEY)), _GROUP, number="group_number")
        )
    )


def by_subscription(eligible: Eligible) -> DataFrame:
    """Fold the members of each group by what they subscribe to; runs no job.

    Returns:
        cluster_id string, group_id string, topics array<string>, member_ids array<string>.
    """
    alike = eligible.groups.where("is_homogeneous").select(
        *GROUP_KEY, F.coalesce("topics", F.array().cast("array<string>")).alias("topics"), "members"
    )
    subscriptions = alike.withColumnRenamed("members", "member_ids")
    if not eligible.heterogeneous:
        return subscriptions
    differing = eligible.groups.where("NOT is_homogeneous").select(*GROUP_KEY)
    topics = F.sort_array(F.array_distinct("topics"))
    return subscriptions.unionByName(
        eligible.members.join(differing, on=list(GROUP_KEY), how="left_semi")
        .groupBy(*GROUP_KEY, topics.alias("topics"))
        .agg(F.collect_list("member_id").alias("member_ids"))
    )


def _rows(frame: DataFrame, kind: int, number: str | None = None) -> DataFrame:
    def of(name: str, data_type: str) -> Column:
        source = number if name == "number" else name
        here = source is not None and source in frame.columns
        return (F.col(str(source)) if here else F.lit(None)).cast(data_type).alias(name)

    return frame.select(
        *GROUP_KEY,
        F.lit(kind).cast("tinyint").alias("kind"),
        *(of(name, data_type) for name, data_type in _COLUMNS.items()),
    )


def read_rows(table: pa.Table) -> Read:
    """Read all rows of a task."""
    kind = table["kind"].to_numpy()
    cluster, group_name = names(table["cluster_id"]), names(table["group_id"])
    group = dense(cluster.code, group_name.code)
    first_row = np.unique(group, return_index=True)[1]
    subscriptions = np.flatnonzero(kind == _SUBSCRIPTION)
    lists = table.take(pa.array(subscriptions))
    listed = {name: lists[name].combine_chunks() for name in ("member_ids", "topics")}

    # Members in the order of (group, name), each with its subscription.
    subscription_of_member = _rows_of(listed["member_ids"])
    member_name = names(pa.chunked_array([listed["member_ids"].flatten()]), java_order=True)
    group_of_member = group[subscriptions][subscription_of_member]
    order = np.lexsort((member_name.code, group_of_member))
    group_of_member = group_of_member[order]
    member_of_listed = np.empty(len(order), np.int64)
    member_of_listed[order] = np.arange(len(order))

    # Topics that exist, in the order of (group, name), once a group.
    topic_rows = np.flatnonzero(kind == _TOPIC)
    subscription_of_topic = _rows_of(listed["topics"])
    both = pa.chunked_array(
        [*table.take(pa.array(topic_rows))["topic"].chunks, listed["topics"].flatten()],
        pa.string(),
    )
    topic_name = names(both, java_order=True)
    existing = key(group[topic_rows], topic_name.code[: len(topic_rows)])
    topics, at = np.unique(existing, return_index=True)
    listed_topic = find(
        topics,
        key(group[subscriptions][subscription_of_topic], topic_name.code[len(topic_rows) :]),
    )

    # Each topic of a subscription with each of its members.
    known = np.flatnonzero(listed_topic >= 0)
    member_count = np.bincount(subscription_of_member, minlength=len(subscriptions))
    first_member = np.cumsum(member_count) - member_count
    copies = member_count[subscription_of_topic[known]]
    end = np.cumsum(copies)
    within = np.arange(int(copies.sum())) - np.repeat(end - copies, copies)
    listed_member = np.repeat(first_member[subscription_of_topic[known]], copies) + within
    topic_of = np.repeat(listed_topic[known], copies)
    member_of = member_of_listed[listed_member]
    order_of_edges = np.lexsort((member_of, topic_of))

    numbers = np.flatnonzero(kind == _GROUP)
    number_of_row = table["number"].to_numpy()
    group_number = np.zeros(len(first_row), np.int64)
    group_number[group[numbers]] = number_of_row[numbers].astype(np.int64)
    return Read(
        Subscribed(
            group_of_member,
            topics >> 32,
            number_of_row[topic_rows][at].astype(np.int64),
            topic_of[order_of_edges],
            member_of[order_of_edges],
        ),
        cluster.take(cluster.code[first_row]),
        group_name.take(group_name.code[first_row]),
        member_name.take(member_name.code[order]),
        topic_name.take(topics & 0xFFFFFFFF),
        group_number,
    )


def _rows_of(lists: pa.ListArray) -> Longs:
    """For each value of the lists the row that it is in."""
    counts = np.diff(lists.offsets.to_numpy().astype(np.int64))
    return np.repeat(np.arange(len(lists)), counts)
