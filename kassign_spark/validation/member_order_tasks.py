"""``member_order.unknown_orders`` inside single tasks: many groups at once, in numpy."""

from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kassign_spark.groups.numbers import Longs, find, java_hash_codes, key
from kassign_spark.groups.task_rows import OWNED, SUBSCRIBED, Read
from kassign_spark.inputs.rules import INT_MAX
from kassign_spark.validation.hash_order import ORDERED_BY_HASH


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
    table: pa.Table, given: Read, members: Longs, row_of_key: Longs, holder: Longs
) -> Orders:
    """Find the groups; what counts is said in ``member_order``.

    Args:
        table: columns of ``validation_tasks``.
        given: the same, read.
        members: the rows of members.
        row_of_key: of each different member, in the order of ``holder``, a row.
        holder: of each row of kind OWNED, which of these members it is of; -1: of none.
    """
    group_count = int(given.group.max(initial=-1)) + 1
    assignor = table["assignor"].take(pa.array(members))
    by_hash = pc.or_(
        assignor.is_null(), pc.is_in(assignor, value_set=pa.array(ORDERED_BY_HASH))
    ).to_numpy()
    seq = pc.fill_null(table["member_seq"], -1).to_numpy()
    hashed = members[by_hash]
    member_count = np.bincount(given.group[hashed], minlength=group_count)
    lacks_order = _distinct(given.group[hashed], seq[hashed], group_count) < member_count

    # The topics of a group in which all subscribe alike, each with its size.
    lists = by_hash & ~given.listed.is_null
    list_count = np.bincount(given.group[members[lists]], minlength=group_count)
    of_hashed = by_hash[given.listed.row]
    pairs = np.unique(key(given.listed.row[of_hashed], given.topic_of_list[of_hashed]))
    named, times = np.unique(
        key(given.group[members[pairs >> 32]], pairs & 0xFFFF_FFFF), return_counts=True
    )
    alike = list_count > 0
    alike[(named >> 32)[times < list_count[named >> 32]]] = False
    size = pc.fill_null(table["size"], -1).to_numpy()
    known = given.rows_of(SUBSCRIBED)
    known = known[(size[known] >= 0) & (size[known] <= INT_MAX) & (given.topic[known] > 0)]
    known_keys, first = np.unique(key(given.group[known], given.topic[known]), return_index=True)
    place = find(known_keys, named)
    topic_keys = named[place >= 0]
    topic_size = size[known[first]][place[place >= 0]]
    total = np.zeros(group_count, np.int64)
    np.add.at(total, topic_keys >> 32, topic_size)
    share, wanted = np.divmod(total, np.maximum(member_count, 1))
    judged = alike & lacks_order & (member_count > 1) & (wanted > 0)

    # Who holds what: of several that claim a partition, the one of the highest generation.
    owned = given.rows_of(OWNED)
    at = find(topic_keys, key(given.group[owned], given.topic[owned]))
    partition = pc.fill_null(table["partition"], -1).to_numpy()[owned]
    inside = (holder >= 0) & (at >= 0) & judged[given.group[owned]] & given.in_group[owned]
    inside &= (partition >= 0) & (partition < np.append(topic_size, 0)[at])
    slot, claimant = given.slot[owned[inside]], holder[inside]
    generation = pc.fill_null(table["generation"], -1).to_numpy()[row_of_key]
    order = np.lexsort((generation[claimant], slot))
    slot, claimant = slot[order], claimant[order]
    is_last = np.append(slot[1:] != slot[:-1], True)[: len(slot)]
    ties = np.zeros(len(slot), bool)
    ties[1:] = (slot[1:] == slot[:-1]) & (generation[claimant[1:]] <= generation[claimant[:-1]])
    held = np.bincount(claimant[is_last & ~ties], minlength=len(row_of_key))
    group_of = given.group[row_of_key]
    competing = np.flatnonzero((held > share[group_of]) & judged[group_of])
    return _disputed(given, row_of_key[competing], member_count, wanted, seq)


def _disputed(given: Read, at: Longs, member_count: Longs, wanted: Longs, seq: Longs) -> Orders:
    """Of competing members, rows ``at``: buckets in which the last that may keep one is unknown."""
    group, member = given.group[at], given.member[at]
    capacity = np.full(len(member_count), 16)
    while (too_small := member_count * 4 > capacity * 3).any():
        capacity[too_small] *= 2
    bucket = (_hashes(given)[member - 1] & (capacity[group] - 1)).astype(np.int64)
    order = np.lexsort((member, bucket, group))
    at, group, bucket = at[order], group[order], bucket[order]
    _, first, count = np.unique(key(group, bucket), return_index=True, return_counts=True)
    bucket_of = np.repeat(np.arange(len(first)), count)
    lacks_order = _distinct(bucket_of, seq[at], len(first)) < count
    group_of = group[first]
    running = np.cumsum(count) - count
    of_group = np.unique(group_of, return_index=True)[1]
    before = running - np.repeat(running[of_group], np.diff(of_group, append=len(first)))
    disputed = lacks_order & (before < wanted[group_of]) & (wanted[group_of] < before + count)
    return Orders(
        at[first[disputed]],
        (wanted[group_of] - before)[disputed],
        count[disputed],
        given.member[at[np.repeat(disputed, count)]],
    )


def _distinct(group: Longs, seq: Longs, group_count: int) -> Longs:
    """How many different places in the coordinator's list each group names; -1 names none."""
    there = seq >= 0
    return np.bincount(np.unique(key(group[there], seq[there])) >> 32, minlength=group_count)


def _hashes(given: Read) -> Longs:
    """Of each member's name, the bits of its hash that choose a bucket."""
    strings = given.member_name.strings
    hashes = np.zeros(len(strings), np.uint32)
    named = np.flatnonzero(pc.binary_length(strings).to_numpy() > 0)
    hashes[named] = java_hash_codes(strings.take(pa.array(named)))
    return (hashes ^ hashes >> 16).astype(np.int64)
