"""Generations of a task's log with all inputs of their assignors."""

import json
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kassign_spark.client_libraries import CLIENT_IDS, LIBRDKAFKA
from kassign_spark.groups.numbers import Flags, Longs, find, key, place_in_run, ranges, starts
from kassign_spark.groups.read import CLAIM, MEMBER, OBSERVED, ROWS, SUBSCRIPTION
from kassign_spark.history.log_arrays import (
    distinct,
    equals,
    longs,
    repeats,
    rows_at,
    together,
)
from kassign_spark.log.decode import DecodedTables
from kassign_spark.log.values import whole

SIZES = pa.schema([("topic", pa.string()), ("size", pa.int64()), ("racks", pa.string())])
"""Topics with their partitions and, where it is known, ``replica_racks`` as JSON."""

_MOST_PARTITIONS = 1_000_000
"""Cap of the partitions of a generation; a broken record may name any number."""


@dataclass(frozen=True)
class Generations:
    """Generations with their members, topics and partitions; each names its generation's number.

    Attributes:
        head: the row of ``generations`` of each.
        assignors: what the group says.
        leader_client: of each.
        is_unreadable, is_too_large: generations that no assignor can answer.
        is_sized: those some of whose topics are not as they show themselves.
        members, others: made by ``rows_of``, the others being subscriptions, claims and what was
            assigned; ``of_member``, ``of_other``: their generations.
        topics: names; ``racks``: of each topic that is subscribed to, as JSON.
        of_topic: their generations; ``size``, ``own``: partitions as given, and as it shows.
    """

    head: Longs
    assignors: list[str | None]
    leader_client: pa.Array
    is_unreadable: Flags
    is_too_large: Flags
    is_sized: Flags
    members: pa.Table
    of_member: Longs
    others: pa.Table
    of_other: Longs
    topics: pa.Array
    racks: pa.Array
    of_topic: Longs
    size: Longs
    own: Longs


def read_generations(decoded: DecodedTables, sizes: pa.Table) -> Generations:
    """Read the inputs and the assignment of each classic generation of consumers with members.

    Args:
        decoded: of whole groups, with what members claim.
        sizes: ``SIZES``; a topic that does not exist is as large as each generation shows.
    """
    generations, log_members, log_assignment = decoded[:3]
    groups = together(generations["group_id"], log_members["group_id"], log_assignment["group_id"])
    head = _heads(generations, groups[0].code)
    records = groups[0].code[head], longs(generations["offset"])[head]
    of_row = rows_at(records, groups[1].code, longs(log_members["offset"]))
    rows = np.flatnonzero((of_row >= 0) & equals(log_members["record"], "group"))
    rows = rows[np.argsort(of_row[rows], kind="stable")]
    of_member = of_row[rows]
    members = log_members.take(pa.array(rows)).combine_chunks()
    count = len(head)
    is_unreadable = np.zeros(count, bool)
    is_unreadable[of_member[np.asarray(members["topics"].is_null())]] = True

    of_row = rows_at(records, groups[2].code, longs(log_assignment["offset"]))
    held_rows = np.flatnonzero(of_row >= 0)
    assigned = log_assignment.take(pa.array(held_rows))
    of_held = of_row[held_rows]
    number = longs(assigned["partition"])
    is_owned = equals(assigned["role"], "owned")

    lists = whole(members["topics"])
    listed, topic, partitions = together(
        pa.chunked_array([lists.flatten()], pa.string()), assigned["topic"], sizes["topic"]
    )
    bounds = starts(np.asarray(pc.fill_null(pc.list_value_length(lists), 0), np.int64))
    texts = _lists_as_json(lists, bounds)
    encoded = texts.dictionary_encode()
    code = np.asarray(encoded.indices, np.int64)
    pairs, first = np.unique(key(of_member, code), return_index=True)
    of_list = of_member[first]
    rows_of_lists = ranges(bounds[first], np.diff(bounds)[first])
    of_listed = np.repeat(of_list, np.diff(bounds)[first])
    subscribed = distinct(key(of_listed, listed.code[rows_of_lists]))

    owned_counts = np.zeros(len(subscribed), np.int64)
    pair_of_owned = find(subscribed, key(of_held, topic.code))
    np.maximum.at(owned_counts, pair_of_owned[pair_of_owned >= 0], number[pair_of_owned >= 0] + 1)
    of_topic, name = subscribed >> 32, subscribed & 0xFFFF_FFFF
    row_of_size = np.full(len(listed.strings) + 1, -1)
    row_of_size[partitions.code] = np.arange(len(sizes))
    row = row_of_size[name]
    size = np.where(row >= 0, np.append(longs(sizes["size"]), 0)[row], owned_counts)
    racks = whole(sizes["racks"]).take(pa.array(row, mask=row < 0))
    is_too_large = np.bincount(of_topic, np.maximum(owned_counts, size), count) > _MOST_PARTITIONS
    is_too_large[of_held[number < 0]] = True
    is_sized = np.zeros(count, bool)
    is_sized[of_topic[owned_counts != size]] = True
    if len(sizes):
        is_sized[of_topic[row >= 0]] = True

    of_generation = generations.take(pa.array(head)).combine_chunks()
    assignor = whole(of_generation["assignor"])
    leader = whole(of_generation["leader"]).take(pa.array(of_member))
    is_leader = np.asarray(pc.fill_null(pc.equal(whole(members["member_id"]), leader), False))
    client = np.full(count, -1)
    client[of_member[is_leader]] = np.flatnonzero(is_leader)
    of_group = assignor.take(pa.array(of_member))
    texts_of_members = [whole(members["group_instance_id"]), whole(members["rack_id"]), of_group]
    families = _families(whole(members["client_id"]), whole(members["rack_id"]))
    if families.null_count < len(families):
        leads = pc.if_else(pa.array(is_leader), "true", pa.scalar(None, pa.string()))
        texts_of_members += [pa.nulls(len(rows), pa.string()), families, leads]
    entries = pc.binary_join_element_wise(*map(_encode_json, texts_of_members), ",")
    member_rows = rows_of(
        of_member,
        MEMBER,
        member_id=whole(members["member_id"]),
        number=longs(members["owned_generation"]),
        place=place_in_run(of_member),
        list_number=code,
        texts=pc.binary_join_element_wise("[", entries, "]", ""),
    )
    list_rows = rows_of(
        of_list,
        SUBSCRIPTION,
        list_number=pairs & 0xFFFF_FFFF,
        texts=encoded.dictionary.take(pa.array(pairs & 0xFFFF_FFFF)),
    )
    held_table = rows_of(
        of_held,
        np.where(is_owned, CLAIM, OBSERVED),
        member_id=whole(assigned["member_id"]),
        topic=whole(assigned["topic"]),
        number=number,
    )
    return Generations(
        head=head,
        assignors=assignor.to_pylist(),
        leader_client=whole(members["client_id"]).take(pa.array(client, mask=client < 0)),
        is_unreadable=is_unreadable,
        is_too_large=is_too_large,
        is_sized=is_sized,
        members=member_rows,
        of_member=of_member,
        others=pa.concat_tables([list_rows, held_table]),
        of_other=np.concatenate((of_list, of_held)),
        topics=listed.strings.take(pa.array(name - 1)),
        racks=racks,
        of_topic=of_topic,
        size=size,
        own=owned_counts,
    )


def _heads(generations: pa.Table, group: Longs) -> Longs:
    """Return the first record of each classic generation of consumers that has members.

    Others of the same generation say that static members came back, under other ids.
    """
    order = np.lexsort((longs(generations["offset"]), group))
    classic = equals(generations["group_type"], "classic")
    consumer = equals(generations["protocol_type"], "consumer")
    has_members = longs(generations["member_count"], 0) > 0
    same = repeats(group[order], longs(generations["generation"])[order], classic[order])
    heads: Longs = order[(classic & consumer & has_members)[order] & ~same]
    return heads


def rows_of(generation: Longs, kind: int | Longs, **filled: pa.Array | Longs) -> pa.Table:
    """Return rows to ask assignors with; a generation is a group.

    What is not given is null, numbers are 0.
    """
    count = len(generation)
    filled = {
        "cluster_id": pa.repeat("", count),
        "group_id": pa.array(generation).cast(pa.string()),
        "kind": np.broadcast_to(kind, count),
        **filled,
    }
    columns = []
    for field in ROWS:
        nothing = np.zeros(count, np.int64) if field.type == pa.int64() else pa.nulls(count)
        values = filled.get(field.name, nothing)
        array = pa.array(values) if isinstance(values, np.ndarray) else values
        columns.append(array.cast(field.type))
    return pa.Table.from_arrays(columns, schema=ROWS)


def _families(client_ids: pa.Array, racks: pa.Array) -> pa.Array:
    """Return the library of each member as far as its client id and an empty rack tell.

    The bytes in the log say more (``inputs.client_families``); its tables leave them out.
    """
    encoded = client_ids.dictionary_encode()
    by_id = [
        next((family for start, family in CLIENT_IDS.items() if each.startswith(start)), None)
        for each in encoded.dictionary.to_pylist()
    ]
    families = pa.array(by_id, pa.string()).take(encoded.indices)
    return pc.if_else(pc.fill_null(pc.equal(racks, ""), False), LIBRDKAFKA, families)


def _lists_as_json(lists: pa.Array, bounds: Longs) -> pa.Array:
    values = _encode_json(lists.flatten())
    quoted = pa.ListArray.from_arrays(pa.array(bounds.astype(np.int32)), values)
    return pc.binary_join_element_wise("[", pc.binary_join(quoted, ","), "]", "")


def _encode_json(texts: pa.Array) -> pa.Array:
    """Return texts as JSON writes them; each different one is written once."""
    encoded = texts.dictionary_encode()
    written = pa.array([*map(json.dumps, encoded.dictionary.to_pylist()), "null"], pa.string())
    return written.take(pc.fill_null(encoded.indices, len(written) - 1))
