"""Groups whose next assignment depends on an unknown order of members."""

from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kassign_spark.client.hash_order import bucket_keys, java_hash_codes, map_capacities
from kassign_spark.groups.numbers import Flags, Longs, find, key, names, place_in_run, rows_by
from kassign_spark.groups.task_rows import OWNED, SUBSCRIBED, TaskTable, subscribe_alike
from kassign_spark.inputs.rules import CONSUMER
from kassign_spark.limits import PARTITIONS_OF_A_TOPIC
from kassign_spark.validation.misled import STICKY

_FEWEST_MEMBERS = 9
"""With fewer, no bucket can hold more than a bucket may: they are not put in order."""
_TREE_TABLE = 64
"""The smallest table of a Java hash map in which a bucket can become a tree."""


def hash_codes(rows: TaskTable) -> Longs:
    """Return Java's hash code of each member name."""
    strings = rows.member_name.strings
    codes = np.zeros(len(strings), np.int64)
    nonempty = np.flatnonzero(pc.binary_length(strings).to_numpy() > 0)
    codes[nonempty] = java_hash_codes(strings.take(pa.array(nonempty)))
    return codes


def _is_ordered_by_hash(table: pa.Table, members: Longs) -> Flags:
    """Return whether a member's assignor visits the members by hash; one that is not named may.

    Those of the coordinator (new protocol) have another order.
    """
    assignor = table["assignor"].take(pa.array(members))
    group_type = table["group_type"].take(pa.array(members))
    is_consumer = pc.fill_null(pc.equal(group_type, CONSUMER), False)
    may_be_sticky = pc.or_(assignor.is_null(), pc.is_in(assignor, value_set=pa.array(STICKY)))
    by_hash: Flags = pc.and_not(may_be_sticky, is_consumer).to_numpy()
    return by_hash


def crowded_groups(
    table: pa.Table, rows: TaskTable, members: Longs, codes: Longs
) -> tuple[Longs, Longs]:
    """Find the groups of the sticky assignors in whose map of members a bucket is crowded.

    Ordinary member ids do not meet like that.

    Args:
        table: the columns that ``tasks.problems_arrow`` takes.
        rows: the same, read.
        members: the rows of members.
        codes: ``hash_codes``.

    Returns:
        of each such group a row, and how many of its members share the bucket.
    """
    hashed = members[_is_ordered_by_hash(table, members) & (rows.member[members] > 0)]
    hashed = hashed[np.bincount(rows.group[hashed])[rows.group[hashed]] >= _FEWEST_MEMBERS]
    seq = pc.fill_null(table["member_seq"], -1).to_numpy()[hashed]
    rank = names(table["member_id"].take(pa.array(hashed)), java_order=True).code
    places = hashed[rows_by(rows.group[hashed], seq, rank)]
    sizes = crowded_buckets(rows.group[places], codes[rows.member[places] - 1])
    group, first = np.unique(rows.group[places], return_index=True)
    is_crowded = sizes[group] > 0
    return places[first[is_crowded]], sizes[group[is_crowded]]


def crowded_buckets(group: Longs, codes: Longs) -> Longs:
    """Return the size of the fullest bucket that breaks the order of each group's map; 0: none.

    A bucket of nine keys becomes a tree in a table of at least 64, and makes a smaller table double
    before its time; the map then no longer iterates by bucket, and in a bucket by insertion. From
    eight keys on the project calls the first of the two unknown. A map doubles its table as it
    grows, and a tree keeps its order in the larger tables: so buckets are counted in each table
    that a map has had, of the keys that were there by then.

    Args:
        group: the map of each key, from 0, ascending; the keys of a map are in the order in which
            they were put.
        codes: the hash code of each key.
    """
    counts = np.bincount(group)
    last = map_capacities(counts)[group]
    first = np.minimum(np.maximum(map_capacities(place_in_run(group) + 1), _TREE_TABLE), last)
    sizes = np.zeros(len(counts), np.int64)
    for capacity in np.unique(np.concatenate((first, last))):
        in_table = (first <= capacity) & (capacity <= last)
        bucket = bucket_keys(codes[in_table], capacity)
        buckets, size = np.unique(key(group[in_table], bucket), return_counts=True)
        is_crowded = size >= (8 if capacity >= _TREE_TABLE else 9)
        np.maximum.at(sizes, buckets[is_crowded] >> 32, size[is_crowded])
    return sizes


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
    table: pa.Table,
    rows: TaskTable,
    members: Longs,
    codes: Longs,
    row_of_key: Longs,
    holder: Longs,
) -> Orders:
    """Find the sticky groups in which a missing ``member_seq`` decides who keeps a partition more.

    Where partitions do not divide evenly, of the members that own more than their share the first
    ones in the order of Java's hash map keep one partition more. Two ids in one bucket of the map
    are in the order of the JoinGroup response there, ``member_seq``. So the order is missed where
    all subscribe alike, more members own so much than may keep it, and the last that may and the
    first that may not share a bucket (``ConstrainedAssignmentBuilder``; kafka-clients 3.8 and
    later). Racks are not looked at: they can take a member out of that competition.

    Args:
        table: the columns that ``tasks.problems_arrow`` takes.
        rows: the same, read.
        members: the rows of members.
        codes: ``hash_codes``.
        row_of_key: of each different member, in the order of ``holder``, a row.
        holder: of each row of kind OWNED, which of these members it is of; -1: of none.
    """
    group_count = int(rows.group.max(initial=-1)) + 1
    by_hash = _is_ordered_by_hash(table, members)
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
    disputants = row_of_key[competing]
    bucket = bucket_keys(
        codes[rows.member[disputants] - 1], map_capacities(member_count)[rows.group[disputants]]
    )
    return _find_disputed(rows, disputants, bucket, larger_count, seq)


def _find_disputed(
    rows: TaskTable, places: Longs, bucket: Longs, larger_count: Longs, seq: Longs
) -> Orders:
    """Return the buckets of competing members, rows ``places``, whose last one is unknown."""
    group, member = rows.group[places], rows.member[places]
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
