"""Of the generations of a task whether they are what their assignor gives."""

import json
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kassign_spark.assignors.in_tasks import KAFKAS
from kassign_spark.groups.numbers import Flags, Longs, find, key, place_in_run, ranges, starts
from kassign_spark.groups.read import CLAIM, MEMBER, OBSERVED, SUBSCRIPTION, TOPIC
from kassign_spark.history.columns import EXPLAINED
from kassign_spark.history.log_arrays import distinct, longs, together
from kassign_spark.log.decode import Decoded
from kassign_spark.schemas import arrow_schema
from kassign_spark.whatif.explain_kernel import explain_told_arrow

SIZES = pa.schema([("topic", pa.string()), ("size", pa.int64()), ("racks", pa.string())])
"""Topics with their partitions and, where it is known, ``replica_racks`` as JSON."""

AS_ASSIGNED = "as if topics had no more partitions than are assigned or claimed"
OTHERS = "the assignor is none of Kafka's"
UNREADABLE = "the bytes of a member cannot be read"
TOO_MANY = "a partition has a number that cannot be"
_MOST_PARTITIONS = 1_000_000
"""Of a generation; a broken record may name any number."""
_WORK = 500_000
"""Partitions and members that the assignors are asked for at once."""

_ROWS = arrow_schema(EXPLAINED.columns)
_TABLE = pa.schema(
    [
        ("cluster_id", pa.string()),
        ("group_id", pa.string()),
        ("kind", pa.int8()),
        ("member_id", pa.string()),
        ("topic", pa.string()),
        ("number", pa.int64()),
        ("place", pa.int64()),
        ("subscription", pa.int64()),
        ("texts", pa.string()),
    ]
)


def explain_generations(decoded: Decoded, sizes: pa.Table | None) -> pa.Table:
    """Explain the classic generations of a log.

    Args:
        decoded: of whole groups, with what members claim.
        sizes: ``SIZES``; None: topics are as large as each generation shows.

    Returns:
        The columns of ``columns.EXPLAINED``, by group and then as the log has them.
    """
    seen = _read(decoded, SIZES.empty_table() if sizes is None else sizes)
    count = len(seen.head)
    explained_by: list[str | None] = [None] * count
    detail: list[str | None] = [None] * count
    is_other = np.ones(count, bool)
    asked = ~seen.is_unreadable & ~seen.is_too_large
    by_given = asked & seen.is_sized
    for where, size, said in (
        (by_given, seen.size, None),
        (asked, seen.own, AS_ASSIGNED),
    ):
        for group, assignor, differs in _ask(seen, where & is_other, size):
            explained_by[group] = assignor
            is_other[group] = assignor != seen.assignors[group]
            # What the second asking says counts only where it explains more.
            if not (said and by_given[group] and is_other[group]):
                detail[group] = "; ".join(filter(None, (differs, said))) or None
    unknown = np.array([name not in KAFKAS for name in seen.assignors], bool)
    for groups, says in (
        (unknown & asked, OTHERS),
        (seen.is_unreadable, UNREADABLE),
        (seen.is_too_large, TOO_MANY),
    ):
        for group in np.flatnonzero(groups).tolist():
            detail[group] = says
    generations = decoded.generations.take(pa.array(seen.head))
    return pa.table(
        {
            "group_id": generations["group_id"],
            "generation": generations["generation"],
            "at": generations["at"],
            "assignor": generations["assignor"],
            "explained_by": pa.array(explained_by, pa.string()),
            "is_explained": pa.array(~is_other, mask=unknown | ~asked),
            "leader_client": seen.leader_client,
            "detail": pa.array(detail, pa.string()),
        }
    ).cast(_ROWS)


@dataclass(frozen=True)
class _Seen:
    """Generations with their members, topics and partitions; each names its generation's number.

    Attributes:
        head: the row of ``generations`` of each.
        assignors: what the group says.
        leader_client: of each.
        is_unreadable, is_too_large: those that cannot be asked for.
        is_sized: those some of whose topics are not as they show themselves.
        members, others: rows of ``_TABLE``, the others being subscriptions, claims and what was
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


def _read(decoded: Decoded, sizes: pa.Table) -> _Seen:
    generations, log_members, log_assignment = decoded[:3]
    groups = together(generations["group_id"], log_members["group_id"], log_assignment["group_id"])
    head = _heads(generations, groups[0].code)
    offsets = distinct(longs(generations["offset"])[head])
    place = key(groups[0].code[head], np.searchsorted(offsets, longs(generations["offset"])[head]))

    def generation(group: Longs, offset: Longs) -> Longs:
        at = np.searchsorted(offsets, offset)
        there = np.append(offsets, -1)[at] == offset
        return np.where(there, find(place, key(group, at)), -1)

    of_row = generation(groups[1].code, longs(log_members["offset"]))
    rows = np.flatnonzero((of_row >= 0) & np.asarray(pc.equal(log_members["record"], "group")))
    rows = rows[np.argsort(of_row[rows], kind="stable")]
    of_member = of_row[rows]
    members = log_members.take(pa.array(rows)).combine_chunks()
    count = len(head)
    is_unreadable = np.zeros(count, bool)
    is_unreadable[of_member[np.asarray(members["topics"].is_null())]] = True

    of_row = generation(groups[2].code, longs(log_assignment["offset"]))
    held_rows = np.flatnonzero(of_row >= 0)
    held = log_assignment.take(pa.array(held_rows))
    of_held = of_row[held_rows]
    number = longs(held["partition"])
    is_owned = np.asarray(pc.equal(held["role"], "owned"))

    lists = _whole(members["topics"])
    listed, topic, given = together(
        pa.chunked_array([lists.flatten()], pa.string()), held["topic"], sizes["topic"]
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

    own = np.zeros(len(subscribed), np.int64)
    at = find(subscribed, key(of_held, topic.code))
    np.maximum.at(own, at[at >= 0], number[at >= 0] + 1)
    of_topic, name = subscribed >> 32, subscribed & 0xFFFF_FFFF
    row_of_size = np.full(len(listed.strings) + 1, -1)
    row_of_size[given.code] = np.arange(len(sizes))
    row = row_of_size[name]
    size = np.where(row >= 0, np.append(longs(sizes["size"]), 0)[row], own)
    racks = _whole(sizes["racks"]).take(pa.array(row, mask=row < 0))
    is_too_large = np.bincount(of_topic, np.maximum(own, size), count) > _MOST_PARTITIONS
    is_too_large[of_held[number < 0]] = True
    is_sized = np.zeros(count, bool)
    is_sized[of_topic[own != size]] = True
    if len(sizes):
        is_sized[of_topic[row >= 0]] = True

    of_generation = generations.take(pa.array(head)).combine_chunks()
    assignor = _whole(of_generation["assignor"])
    leader = _whole(of_generation["leader"]).take(pa.array(of_member))
    is_leader = np.asarray(pc.fill_null(pc.equal(_whole(members["member_id"]), leader), False))
    client = np.full(count, -1)
    client[of_member[is_leader]] = np.flatnonzero(is_leader)
    said = pc.binary_join_element_wise(
        _as_json(_whole(members["group_instance_id"])),
        _as_json(_whole(members["rack_id"])),
        _as_json(assignor.take(pa.array(of_member))),
        ",",
    )
    member_rows = _rows(
        of_member,
        MEMBER,
        member_id=_whole(members["member_id"]),
        number=longs(members["owned_generation"]),
        place=place_in_run(of_member),
        subscription=code,
        texts=pc.binary_join_element_wise("[", said, "]", ""),
    )
    list_rows = _rows(
        of_list,
        SUBSCRIPTION,
        subscription=pairs & 0xFFFF_FFFF,
        texts=encoded.dictionary.take(pa.array(pairs & 0xFFFF_FFFF)),
    )
    held_table = _rows(
        of_held,
        np.where(is_owned, CLAIM, OBSERVED),
        member_id=_whole(held["member_id"]),
        topic=_whole(held["topic"]),
        number=number,
    )
    return _Seen(
        head=head,
        assignors=assignor.to_pylist(),
        leader_client=_whole(members["client_id"]).take(pa.array(client, mask=client < 0)),
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
        own=own,
    )


def _heads(generations: pa.Table, group: Longs) -> Longs:
    """The first record of each classic generation of consumers that has members.

    Others of the same generation say that static members came back, under other ids.
    """
    order = np.lexsort((longs(generations["offset"]), group))
    number = longs(generations["generation"])[order]
    classic = np.asarray(pc.equal(generations["group_type"], "classic"))[order]
    same = (np.diff(group[order], prepend=-1) == 0) & (np.diff(number, prepend=-1) == 0)
    same[1:] &= classic[:-1] == classic[1:]
    consumer = np.asarray(pc.fill_null(pc.equal(generations["protocol_type"], "consumer"), False))
    has_members = longs(generations["member_count"], 0)[order] > 0
    heads: Longs = order[classic & ~same & consumer[order] & has_members]
    return heads


def _ask(seen: _Seen, groups: Flags, size: Longs) -> Iterator[tuple[int, str | None, str | None]]:
    """Ask the assignors for some generations, so many at once as ``_WORK`` allows."""
    count = len(seen.head)
    work = np.bincount(seen.of_topic, size, count) + np.bincount(seen.of_member, minlength=count)
    piece = (np.cumsum(np.where(groups, work, 0)) // _WORK).astype(np.int64)
    exists = size > 0
    for number in np.unique(piece[groups]).tolist():
        some = groups & (piece == number)
        topics = np.flatnonzero(exists & some[seen.of_topic])
        racks = pc.if_else(pa.array(size == seen.size), seen.racks, pa.scalar(None, pa.string()))
        table = pa.concat_tables(
            [
                seen.members.filter(pa.array(some[seen.of_member])),
                seen.others.filter(pa.array(some[seen.of_other])),
                _rows(
                    seen.of_topic[topics],
                    TOPIC,
                    topic=seen.topics.take(pa.array(topics)),
                    number=size[topics],
                    texts=racks.take(pa.array(topics)),
                ),
            ]
        )
        told = explain_told_arrow(table)
        for group, assignor, detail in zip(
            told["group_id"].to_pylist(),
            told["assignor"].to_pylist(),
            told["detail"].to_pylist(),
            strict=True,
        ):
            yield int(group), assignor, detail


def _rows(generation: Longs, kind: int | Longs, **given: pa.Array | Longs) -> pa.Table:
    """Rows of ``_TABLE``; a generation is a group. What is not given is null, numbers are 0."""
    count = len(generation)
    given = {
        "cluster_id": pa.repeat("", count),
        "group_id": pa.array(generation).cast(pa.string()),
        "kind": np.broadcast_to(kind, count),
        **given,
    }
    columns = []
    for field in _TABLE:
        values = given.get(field.name)
        if values is None:
            is_number = field.type == pa.int64()
            values = np.zeros(count, np.int64) if is_number else pa.nulls(count)
        columns.append(
            (pa.array(values) if isinstance(values, np.ndarray) else values).cast(field.type)
        )
    return pa.Table.from_arrays(columns, schema=_TABLE)


def _lists_as_json(lists: pa.Array, bounds: Longs) -> pa.Array:
    values = _as_json(lists.flatten())
    quoted = pa.ListArray.from_arrays(pa.array(bounds.astype(np.int32)), values)
    return pc.binary_join_element_wise("[", pc.binary_join(quoted, ","), "]", "")


def _as_json(texts: pa.Array) -> pa.Array:
    """Texts as JSON writes them; each different one is written once."""
    encoded = texts.dictionary_encode()
    written = pa.array([*map(json.dumps, encoded.dictionary.to_pylist()), "null"], pa.string())
    return written.take(pc.fill_null(encoded.indices, len(written) - 1))


def _whole(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    """A column as one array."""
    if isinstance(column, pa.ChunkedArray):
        found = column.combine_chunks()
        return found if isinstance(found, pa.Array) else pa.array([], column.type)
    return column
