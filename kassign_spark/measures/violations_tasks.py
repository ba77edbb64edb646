"""``violations`` inside single tasks: the rules over many groups at once, in numpy.

Missing partitions are told as ranges, so that a topic of which nothing is assigned is one row here.
"""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kassign_spark.groups.named import with_nulls
from kassign_spark.groups.numbers import Flags, Longs, dense, find, key, rows_by
from kassign_spark.groups.rows import in_tasks
from kassign_spark.groups.task_rows import (
    ASSIGNED,
    MEMBER,
    OWNED,
    SUBSCRIBED,
    TaskTable,
    found,
    lists_of,
    one_piece,
    read,
    repeated,
    rows,
)
from kassign_spark.schemas import CLUSTER_ID, GROUP_KEY

_Found = tuple[str, Longs, dict[str, pa.Array]]
"""A rule, the rows that break it, and columns of ``BROKEN`` that are not those of the rows."""

UNKNOWN_TOPIC = "unknown_topic"
"""What is no violation of an assignment by itself."""
HIDDEN_TOPIC = "hidden_topic"
"""A topic that members own partitions of, and that the table topics does not have."""
BROKEN = (
    "cluster_id string, group_id string, rule string, member_id string, topic string, "
    "partition bigint, last bigint, size bigint, members array<string>"
)
"""What a task gives back: ``partition`` to ``last``, where that is there, are a range; ``size`` is
that of the topic, and ``members`` those with the same partition."""


def broken_in_tasks(
    assigned: DataFrame, members: DataFrame, owned: DataFrame | None, sizes: DataFrame, tasks: int
) -> DataFrame:
    """Hold whole groups to the rules, many of them in each task: ``BROKEN``; runs no job.

    The tables are conforming, the patterns of members resolved. ``sizes`` has one row a topic:
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
    return in_tasks(table, one_piece(broken_arrow), BROKEN, tasks)


def subscriptions(members: DataFrame) -> DataFrame:
    """Topics that members of a group subscribe to; those of several lists more than once."""
    lists = members.select(*GROUP_KEY, F.array_distinct("topics").alias("topics")).distinct()
    return lists.select(*GROUP_KEY, F.explode("topics").alias("topic"))


def broken_arrow(table: pa.Table) -> pa.Table:
    """List what breaks a rule; the columns of ``task_rows.rows`` in, those of ``BROKEN`` out."""
    given = read(table)
    partition = pc.fill_null(table["partition"], 0).to_numpy()
    size = pc.fill_null(table["size"], -1).to_numpy()
    has_partition = table["partition"].is_valid().to_numpy()
    members = given.rows_of(MEMBER)
    known = np.unique(key(given.group[members], given.member[members]))
    broken = [
        *_strangers(given, known, partition, has_partition),
        _unknown_partitions(table, given, partition, has_partition, size),
        _twice(given, partition, has_partition),
        _missing(given, known, partition, size),
        _unknown_topics(given, size),
    ]
    return pa.concat_tables(_table(table, given, *found) for found in broken)


def _strangers(
    given: TaskTable, known: Longs, partition: Longs, has_partition: Flags
) -> list[_Found]:
    """Of each member and topic that do not belong together, the least partition."""
    assigned = given.rows_of(ASSIGNED)
    holder = found(given, known, assigned)
    listed_by = given.rows_of(MEMBER)[given.listed.row]
    listed_by_known = find(known, key(given.group[listed_by], given.member[listed_by]))
    lists = np.unique(key(listed_by_known, given.topic_of_list))
    subscribes = (find(lists, key(holder, given.topic[assigned])) >= 0) & (
        given.topic[assigned] > 0
    )
    strange = (holder < 0) | ~subscribes
    rows_, holder = assigned[strange], holder[strange]
    # A partition that is null comes after all others: the least is one that is there, if any is.
    order = rows_by(~has_partition[rows_], partition[rows_])
    _, topic = dense(given.group[rows_], given.topic[rows_])
    first = order[dense(topic[order], given.member[rows_][order])[0]]
    is_unknown = holder[first] < 0
    return [
        ("unknown_member", rows_[first[is_unknown]], {}),
        ("not_subscribed", rows_[first[~is_unknown]], {}),
    ]


def _unknown_partitions(
    table: pa.Table, given: TaskTable, partition: Longs, has_partition: Flags, size: Longs
) -> _Found:
    rows_ = given.rows_of(ASSIGNED)
    outside = has_partition[rows_] & ((partition[rows_] < 0) | (partition[rows_] >= size[rows_]))
    rows_ = rows_[(size[rows_] < 0) | outside]
    return "unknown_partition", rows_, {"size": table["size"].take(pa.array(rows_))}


def _twice(given: TaskTable, partition: Longs, has_partition: Flags) -> _Found:
    rows_ = given.rows_of(ASSIGNED)
    rows_ = rows_[given.in_group[rows_] & (given.topic[rows_] > 0)]
    rows_ = rows_[given.member[rows_] > 0]
    _, topic = dense(given.group[rows_], given.topic[rows_])
    of = (topic, has_partition[rows_], partition[rows_])
    same = repeated(of, given.member[rows_])
    ids = given.member_name.take(given.member[rows_[same.row]])
    return "assigned_twice", rows_[same.first], {"members": lists_of(ids, same.sizes)}


def _missing(given: TaskTable, known: Longs, partition: Longs, size: Longs) -> _Found:
    """Ranges of partitions that are with nobody, of topics with fewer partitions than they have."""
    wanted = given.rows_of(SUBSCRIBED)
    wanted = wanted[(size[wanted] > 0) & (given.topic[wanted] > 0)]
    wanted = wanted[np.unique(_topic_key(given, wanted), return_index=True)[1]]
    wanted_keys = _topic_key(given, wanted)
    assigned = given.rows_of(ASSIGNED)
    assigned = assigned[given.slot[assigned] >= 0]
    distinct = assigned[np.unique(given.slot[assigned], return_index=True)[1]]
    at = find(wanted_keys, _topic_key(given, distinct))
    there = np.bincount(at[at >= 0], minlength=len(wanted))
    wanted = wanted[there < size[wanted]]
    wanted_keys = _topic_key(given, wanted)
    owned = given.rows_of(OWNED)
    owned = owned[(given.slot[owned] >= 0) & (found(given, known, owned) >= 0)]
    placed = np.concatenate([assigned, owned])
    placed = placed[np.unique(given.slot[placed], return_index=True)[1]]
    at = find(wanted_keys, _topic_key(given, placed))
    inside = (at >= 0) & (partition[placed] >= 0)
    inside &= partition[placed] < np.append(size[wanted], 0)[at]
    # Before the first, between neighbours and behind the last: with a border below and above each
    # topic, every gap is between two that follow each other.
    count = len(wanted)
    topic = np.concatenate([np.arange(count), at[inside], np.arange(count)])
    number = np.concatenate([np.full(count, -1), partition[placed][inside], size[wanted]])
    order = rows_by(topic, number)
    topic, number = topic[order], number[order]
    gap = np.flatnonzero((topic[1:] == topic[:-1]) & (number[1:] - number[:-1] > 1))
    first, last = pa.array(number[gap] + 1), pa.array(number[gap + 1] - 1)
    return "unassigned", wanted[topic[gap]], {"partition": first, "last": last}


def _unknown_topics(given: TaskTable, size: Longs) -> _Found:
    """Of each topic that members subscribe to and that is not there, a row."""
    rows_ = given.rows_of(SUBSCRIBED)
    rows_ = rows_[(size[rows_] < 0) & (given.topic[rows_] > 0)]
    rows_ = rows_[np.unique(_topic_key(given, rows_), return_index=True)[1]]
    return UNKNOWN_TOPIC, rows_, {}


def _topic_key(given: TaskTable, rows_: Longs) -> Longs:
    return key(given.group[rows_], given.topic[rows_])


def _table(
    table: pa.Table, given: TaskTable, rule: str, rows_: Longs, other: dict[str, pa.Array]
) -> pa.Table:
    about = {
        **given.group_columns(rows_),
        "rule": pa.repeat(rule, len(rows_)),
        "member_id": given.member_name.take(given.member[rows_]),
        "topic": given.topic_name.take(given.topic[rows_]),
        "partition": table["partition"].take(pa.array(rows_)),
        **other,
    }
    return with_nulls(BROKEN, about)
