"""Groups whose next assignment depends on an unknown order of members."""

from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from kassign_spark.client.hash_order import java_hash_codes
from kassign_spark.expressions import (
    hash_bucket,
    hash_map_tables,
    is_order_lost,
    java_hash_code,
    java_string_order,
)
from kassign_spark.groups.numbers import Longs, find, key
from kassign_spark.groups.task_rows import OWNED, SUBSCRIBED, TaskTable, subscribe_alike
from kassign_spark.inputs.problem_rows import Check, Problem
from kassign_spark.inputs.rules import CONSUMER, is_consumer_group, sql_sentence
from kassign_spark.limits import PARTITIONS_OF_A_TOPIC
from kassign_spark.schemas import GROUP_KEY

_ORDERED_BY_HASH = ("sticky", "cooperative-sticky")
_FEWEST_MEMBERS = 9
"""With fewer, no bucket can hold more than a bucket may: nothing is hashed."""


def _ordered_by_hash() -> Column:
    """Return whether a member's assignor visits the members by hash; an unnamed one may.

    Those of the coordinator (new protocol) have another order.
    """
    is_ordered_by_hash = F.coalesce(F.col("assignor").isin(*_ORDERED_BY_HASH), F.lit(True))
    return is_ordered_by_hash & ~is_consumer_group()


def order_check(members: DataFrame) -> Check:
    """Look for groups of the sticky assignors in whose map of members a bucket is crowded.

    Such a bucket becomes a tree, or makes its table double early; the order in which the client
    then visits members is another than here, and with it which members keep one partition more.
    Ordinary member ids do not meet like that.

    Args:
        members: ``schemas.MEMBERS``, conforming; groups that name no assignor count as sticky.

    Returns:
        The check for `hash_order_not_reproduced`; one row per group.
    """
    group = Window.partitionBy(*GROUP_KEY)
    put = group.orderBy("member_seq", java_string_order(F.col("member_id")))
    large = (
        members.where(_ordered_by_hash() & F.col("member_id").isNotNull())
        .select(*GROUP_KEY, "member_id", "member_seq")
        .withColumn("member_count", F.count("*").over(group))
        .where(F.col("member_count") >= _FEWEST_MEMBERS)
    )
    tables = hash_map_tables(F.col("position"), F.col("member_count"))
    buckets = (
        large.withColumn("position", F.row_number().over(put) - 1)
        .select(*GROUP_KEY, java_hash_code(F.col("member_id")).alias("hash"), F.explode(tables))
        .toDF(*GROUP_KEY, "hash", "capacity")
        .groupBy(*GROUP_KEY, "capacity", hash_bucket(F.col("hash"), F.col("capacity")))
        .agg(F.count("*").alias("bucket_size"))
        .where(is_order_lost(F.col("bucket_size"), F.col("capacity")))
        .groupBy(*GROUP_KEY)
        .agg(F.max("bucket_size").alias("bucket_size"))
    )
    detail = sql_sentence(
        "the hashes of {} member ids fall together in Java's hash map: in which order Kafka visits "
        "the members is not reproduced, so which of them keep one partition more may differ",
        "bucket_size",
    )
    return Check(buckets, GROUP_KEY, [Problem("hash_order_not_reproduced", "true", detail)])


def describe_order(ids: str, more: str) -> str:
    """Return the detail for members of which some keep one partition more."""
    return sql_sentence(
        "members {} share a bucket of Java's hash map, and {} of them may keep one partition more: "
        "without member_seq it is not known which; here they are taken by member_id",
        f"array_join({ids}, ', ')",
        more,
    )


class Orders(NamedTuple):
    """Buckets of which it is not known who is first.

    Attributes:
        row: a row of the group.
        number: how many of the bucket's members keep one partition more.
        size: how many members the bucket has.
        member: the numbers of their names, bucket by bucket, in the order of the names.
    """

    row: Longs
    number: Longs
    size: Longs
    member: Longs


def unknown_orders(
    table: pa.Table, rows: TaskTable, members: Longs, row_of_key: Longs, holder: Longs
) -> Orders:
    """Find the sticky groups in which a missing ``member_seq`` decides who keeps a partition more.

    Where partitions do not divide evenly, of the members that own more than their share the first
    ones in the order of Java's hash map keep one partition more. Two ids in one bucket of the map
    are in the order of the JoinGroup response there, ``member_seq``. So the order is missed where
    all subscribe alike, more members own so much than may keep it, and the last that may and the
    first that may not share a bucket (``ConstrainedAssignmentBuilder``; kafka-clients 3.8 and
    later). Racks are not looked at: they can take a member out of that competition.

    Args:
        table: the columns that ``tasks.found_arrow`` takes.
        rows: the same, read.
        members: the rows of members.
        row_of_key: of each different member, in the order of ``holder``, a row.
        holder: of each row of kind OWNED, which of these members it is of; -1: of none.
    """
    group_count = int(rows.group.max(initial=-1)) + 1
    assignor = table["assignor"].take(pa.array(members))
    by_hash = pc.or_(
        assignor.is_null(), pc.is_in(assignor, value_set=pa.array(_ORDERED_BY_HASH))
    ).to_numpy()
    group_type = table["group_type"].take(pa.array(members))
    by_hash &= ~pc.fill_null(pc.equal(group_type, CONSUMER), False).to_numpy()
    seq = pc.fill_null(table["member_seq"], -1).to_numpy()
    hashed = members[by_hash]
    member_count = np.bincount(rows.group[hashed], minlength=group_count)
    lacks_order = _distinct(rows.group[hashed], seq[hashed], group_count) < member_count

    # The topics of a group in which all subscribe alike, each with its size.
    of_hashed = by_hash[rows.listed.row]
    lists = rows.listed._replace(
        row=rows.listed.row[of_hashed], is_null=rows.listed.is_null | ~by_hash
    )
    alike, of_group = subscribe_alike(
        rows.group[members], lists, rows.topic_of_list[of_hashed], group_count
    )
    size = pc.fill_null(table["size"], -1).to_numpy()
    sized = rows.rows_of(SUBSCRIBED)
    sized = sized[
        (size[sized] >= 0) & (size[sized] <= PARTITIONS_OF_A_TOPIC) & (rows.topic[sized] > 0)
    ]
    known_keys, first = np.unique(key(rows.group[sized], rows.topic[sized]), return_index=True)
    place = find(known_keys, of_group)
    topic_keys = of_group[place >= 0]
    topic_size = size[sized[first]][place[place >= 0]]
    total = np.zeros(group_count, np.int64)
    np.add.at(total, topic_keys >> 32, topic_size)
    share, larger_count = np.divmod(total, np.maximum(member_count, 1))
    judged = alike & lacks_order & (member_count > 1) & (larger_count > 0)

    # Who holds what: of several that claim a partition, the one of the highest generation.
    owned = rows.rows_of(OWNED)
    at = find(topic_keys, key(rows.group[owned], rows.topic[owned]))
    partition = pc.fill_null(table["partition"], -1).to_numpy()[owned]
    inside = (holder >= 0) & (at >= 0) & judged[rows.group[owned]] & rows.in_group[owned]
    inside &= (partition >= 0) & (partition < np.append(topic_size, 0)[at])
    slot, claimant = rows.slot[owned[inside]], holder[inside]
    generation = pc.fill_null(table["generation"], -1).to_numpy()[row_of_key]
    order = np.lexsort((generation[claimant], slot))
    slot, claimant = slot[order], claimant[order]
    is_last = np.append(slot[1:] != slot[:-1], True)[: len(slot)]
    ties = np.zeros(len(slot), bool)
    ties[1:] = (slot[1:] == slot[:-1]) & (generation[claimant[1:]] <= generation[claimant[:-1]])
    owned_count = np.bincount(claimant[is_last & ~ties], minlength=len(row_of_key))
    group_of = rows.group[row_of_key]
    competing = np.flatnonzero((owned_count > share[group_of]) & judged[group_of])
    return _find_disputed(rows, row_of_key[competing], member_count, larger_count, seq)


def _find_disputed(
    rows: TaskTable, places: Longs, member_count: Longs, larger_count: Longs, seq: Longs
) -> Orders:
    """Return for competing members, rows ``at``, the buckets whose last one is unknown."""
    group, member = rows.group[places], rows.member[places]
    capacity = np.full(len(member_count), 16)
    while (too_small := member_count * 4 > capacity * 3).any():
        capacity[too_small] *= 2
    bucket = (_hashes(rows)[member - 1] & (capacity[group] - 1)).astype(np.int64)
    order = np.lexsort((member, bucket, group))
    places, group, bucket = places[order], group[order], bucket[order]
    _, first, count = np.unique(key(group, bucket), return_index=True, return_counts=True)
    bucket_of = np.repeat(np.arange(len(first)), count)
    lacks_order = _distinct(bucket_of, seq[places], len(first)) < count
    group_of = group[first]
    running = np.cumsum(count) - count
    of_group = np.unique(group_of, return_index=True)[1]
    before = running - np.repeat(running[of_group], np.diff(of_group, append=len(first)))
    disputed = (
        lacks_order & (before < larger_count[group_of]) & (larger_count[group_of] < before + count)
    )
    return Orders(
        places[first[disputed]],
        (larger_count[group_of] - before)[disputed],
        count[disputed],
        rows.member[places[np.repeat(disputed, count)]],
    )


def _distinct(group: Longs, seq: Longs, group_count: int) -> Longs:
    """Return how many places in the coordinator's list each group names; -1 is none."""
    is_stated = seq >= 0
    return np.bincount(
        np.unique(key(group[is_stated], seq[is_stated])) >> 32, minlength=group_count
    )


def _hashes(rows: TaskTable) -> Longs:
    """Return the bits of each member name's hash that choose a bucket."""
    strings = rows.member_name.strings
    hashes = np.zeros(len(strings), np.uint32)
    nonempty = np.flatnonzero(pc.binary_length(strings).to_numpy() > 0)
    hashes[nonempty] = java_hash_codes(strings.take(pa.array(nonempty)))
    return (hashes ^ hashes >> 16).astype(np.int64)
