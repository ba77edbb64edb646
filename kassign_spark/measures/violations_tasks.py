"""``violations`` inside single tasks: the rules over many groups at once, in numpy.

Missing partitions are reported as ranges, so that a topic of which nothing is assigned is one row
here.
"""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kassign_spark.groups.group_names import with_nulls
from kassign_spark.groups.numbers import Flags, Longs, dense, find, key, rows_by
from kassign_spark.groups.rows import run_in_tasks
from kassign_spark.groups.task_rows import (
    ASSIGNED,
    MEMBER,
    OWNED,
    SUBSCRIBED,
    TaskTable,
    find_repeated,
    lists_of,
    member_places,
    one_piece,
    read,
    rows,
)
from kassign_spark.schemas import CLUSTER_ID, GROUP_KEY

_BrokenRows = tuple[str, Longs, dict[str, pa.Array]]
"""A rule, the rows that break it, and columns of ``BROKEN`` that are not those of the rows."""

UNKNOWN_TOPIC = "unknown_topic"
"""A rule that is not a violation of an assignment by itself."""
HIDDEN_TOPIC = "hidden_topic"
"""A topic that members own partitions of, and that the table topics does not have."""
BROKEN = (
    "cluster_id string, group_id string, rule string, member_id string, topic string, "
    "partition bigint, last bigint, size bigint, members array<string>"
)
"""Columns that a task returns: ``partition`` to ``last``, where present, are a range; ``size`` is
the topic's, and ``members`` are those with the same partition."""


def broken_in_tasks(
    assigned: DataFrame, members: DataFrame, owned: DataFrame | None, sizes: DataFrame, tasks: int
) -> DataFrame:
    """Check whole groups against the rules, many in each task: ``BROKEN``; runs no job.

    The tables are conforming, the patterns of members resolved. ``sizes`` has one row per topic:
    cluster_id string, topic string, num_partitions bigint.
    """
    sized = (
        rows(assigned, ASSIGNED)
        .unionByName(rows(subscriptions(members), SUBSCRIBED))
        .drop("size")
        .join(sizes.withColumnRenamed("num_partitions", "size"), [CLUSTER_ID, "topic"], "left")
    )
    table = sized.unionByName(rows(members.withColumn("texts", F.col("topics")), MEMBER))
    if owned is not None:
        table = table.unionByName(rows(owned, OWNED))
    return run_in_tasks(table, one_piece(broken_arrow), BROKEN, tasks)


def subscriptions(members: DataFrame) -> DataFrame:
    """Return topics that members of a group subscribe to; those of several lists more than once."""
    lists = members.select(*GROUP_KEY, F.array_distinct("topics").alias("topics")).distinct()
    return lists.select(*GROUP_KEY, F.explode("topics").alias("topic"))


def broken_arrow(table: pa.Table) -> pa.Table:
    """List what breaks a rule; the columns of ``task_rows.rows`` in, those of ``BROKEN`` out."""
    rows = read(table)
    partition = pc.fill_null(table["partition"], 0).to_numpy()
    size = pc.fill_null(table["size"], -1).to_numpy()
    has_partition = table["partition"].is_valid().to_numpy()
    members = rows.rows_of(MEMBER)
    member_keys = np.unique(key(rows.group[members], rows.member[members]))
    broken = [
        *_strangers(rows, member_keys, partition, has_partition),
        _unknown_partitions(table, rows, partition, has_partition, size),
        _twice(rows, partition, has_partition),
        _missing(rows, member_keys, partition, size),
        _unknown_topics(rows, size),
    ]
    return pa.concat_tables(_table(table, rows, *part) for part in broken)


def _strangers(
    rows: TaskTable, member_keys: Longs, partition: Longs, has_partition: Flags
) -> list[_BrokenRows]:
    """Return for each member and topic that do not belong together the lowest partition."""
    assigned = rows.rows_of(ASSIGNED)
    holder = member_places(rows, member_keys, assigned)
    listed_by = rows.rows_of(MEMBER)[rows.listed.row]
    listed_by_known = find(member_keys, key(rows.group[listed_by], rows.member[listed_by]))
    lists = np.unique(key(listed_by_known, rows.topic_of_list))
    subscribes = (find(lists, key(holder, rows.topic[assigned])) >= 0) & (rows.topic[assigned] > 0)
    strange = (holder < 0) | ~subscribes
    rows_, holder = assigned[strange], holder[strange]
    # A partition that is null comes after all others: the least is one that is there, if any is.
    order = rows_by(~has_partition[rows_], partition[rows_])
    _, topic = dense(rows.group[rows_], rows.topic[rows_])
    first = order[dense(topic[order], rows.member[rows_][order])[0]]
    is_unknown = holder[first] < 0
    return [
        ("unknown_member", rows_[first[is_unknown]], {}),
        ("not_subscribed", rows_[first[~is_unknown]], {}),
    ]


def _unknown_partitions(
    table: pa.Table, rows: TaskTable, partition: Longs, has_partition: Flags, size: Longs
) -> _BrokenRows:
    rows_ = rows.rows_of(ASSIGNED)
    outside = has_partition[rows_] & ((partition[rows_] < 0) | (partition[rows_] >= size[rows_]))
    rows_ = rows_[(size[rows_] < 0) | outside]
    return "unknown_partition", rows_, {"size": table["size"].take(pa.array(rows_))}


def _twice(rows: TaskTable, partition: Longs, has_partition: Flags) -> _BrokenRows:
    rows_ = rows.rows_of(ASSIGNED)
    rows_ = rows_[rows.in_group[rows_] & (rows.topic[rows_] > 0)]
    rows_ = rows_[rows.member[rows_] > 0]
    _, topic = dense(rows.group[rows_], rows.topic[rows_])
    partition_key = (topic, has_partition[rows_], partition[rows_])
    same = find_repeated(partition_key, rows.member[rows_])
    ids = rows.member_name.take(rows.member[rows_[same.row]])
    return "assigned_twice", rows_[same.first], {"members": lists_of(ids, same.sizes)}


def _missing(rows: TaskTable, member_keys: Longs, partition: Longs, size: Longs) -> _BrokenRows:
    """Return ranges of partitions without an owner, of topics that lack some."""
    topics = rows.rows_of(SUBSCRIBED)
    topics = topics[(size[topics] > 0) & (rows.topic[topics] > 0)]
    topics = topics[np.unique(_topic_key(rows, topics), return_index=True)[1]]
    topic_keys = _topic_key(rows, topics)
    assigned = rows.rows_of(ASSIGNED)
    assigned = assigned[rows.slot[assigned] >= 0]
    distinct = assigned[np.unique(rows.slot[assigned], return_index=True)[1]]
    topic_place = find(topic_keys, _topic_key(rows, distinct))
    assigned_count = np.bincount(topic_place[topic_place >= 0], minlength=len(topics))
    topics = topics[assigned_count < size[topics]]
    topic_keys = _topic_key(rows, topics)
    owned = rows.rows_of(OWNED)
    owned = owned[(rows.slot[owned] >= 0) & (member_places(rows, member_keys, owned) >= 0)]
    partitions = np.concatenate([assigned, owned])
    partitions = partitions[np.unique(rows.slot[partitions], return_index=True)[1]]
    topic_place = find(topic_keys, _topic_key(rows, partitions))
    inside = (topic_place >= 0) & (partition[partitions] >= 0)
    inside &= partition[partitions] < np.append(size[topics], 0)[topic_place]
    # Before the first, between neighbours and behind the last: with a border below and above each
    # topic, every gap is between two that follow each other.
    count = len(topics)
    topic = np.concatenate([np.arange(count), topic_place[inside], np.arange(count)])
    number = np.concatenate([np.full(count, -1), partition[partitions][inside], size[topics]])
    order = rows_by(topic, number)
    topic, number = topic[order], number[order]
    gap = np.flatnonzero((topic[1:] == topic[:-1]) & (number[1:] - number[:-1] > 1))
    first, last = pa.array(number[gap] + 1), pa.array(number[gap + 1] - 1)
    return "unassigned", topics[topic[gap]], {"partition": first, "last": last}


def _unknown_topics(rows: TaskTable, size: Longs) -> _BrokenRows:
    """Return a row for each topic that members subscribe to and that does not exist."""
    rows_ = rows.rows_of(SUBSCRIBED)
    rows_ = rows_[(size[rows_] < 0) & (rows.topic[rows_] > 0)]
    rows_ = rows_[np.unique(_topic_key(rows, rows_), return_index=True)[1]]
    return UNKNOWN_TOPIC, rows_, {}


def _topic_key(rows: TaskTable, rows_: Longs) -> Longs:
    return key(rows.group[rows_], rows.topic[rows_])


def _table(
    table: pa.Table, rows: TaskTable, rule: str, rows_: Longs, other: dict[str, pa.Array]
) -> pa.Table:
    about = {
        **rows.group_columns(rows_),
        "rule": pa.repeat(rule, len(rows_)),
        "member_id": rows.member_name.take(rows.member[rows_]),
        "topic": rows.topic_name.take(rows.topic[rows_]),
        "partition": table["partition"].take(pa.array(rows_)),
        **other,
    }
    return with_nulls(BROKEN, about)
