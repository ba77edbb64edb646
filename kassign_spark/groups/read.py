"""The rows of a task, read into a batch: names become numbers once, and all is sorted by group."""

import json
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from kassign_spark.groups.batch import Batch, Claims, claims_of
from kassign_spark.groups.numbers import Longs, dense, find, key, names, rows_by, same_lists, starts
from kassign_spark.groups.racks import lengths, read_racks

MEMBER, SUBSCRIPTION, TOPIC, CLAIM, OBSERVED, TARGET, REGEX = range(7)
"""Kinds of rows; see ``rows``."""

ROWS = pa.schema(
    [
        ("cluster_id", pa.string()),
        ("group_id", pa.string()),
        ("kind", pa.int8()),
        ("member_id", pa.string()),
        ("topic", pa.string()),
        ("number", pa.int64()),
        ("place", pa.int64()),
        ("list_number", pa.int64()),
        ("texts", pa.string()),
    ]
)
"""The columns of ``rows.fold`` as a task gets them."""

_LIST = pa.list_(pa.string())
_TEXTS, _MOST_TEXTS = 3, 6
"""Texts of a member: group_instance_id, rack_id, assignor, and in some tables topics_regex, client
and whether it leads."""


class KindRows(NamedTuple):
    """A batch, and the rows of further kinds, each of which names a partition of some member.

    Attributes:
        claims: of each kind its rows, in the order of the table.
        rows: of each kind the places of these rows in the table.
    """

    batch: Batch
    claims: list[Claims]
    rows: list[Longs]


def read_batch(table: pa.Table) -> tuple[Batch, Claims]:
    """Read the rows of whole groups (see ``rows.fold``), and what members claim."""
    batch, (claims,), _ = read_kinds(table, (CLAIM,))
    return batch, claims


def read_kinds(table: pa.Table, kinds: Sequence[int]) -> KindRows:
    """Read the rows of whole groups, and those of further kinds.

    Groups without members are left out.
    """
    kind = table["kind"].to_numpy()
    cluster, group_name = names(table["cluster_id"]), names(table["group_id"])
    first, group = dense(cluster.code, group_name.code)
    has_members = np.zeros(len(first), bool)
    has_members[group[kind == MEMBER]] = True
    if not has_members.all():
        member_rows = np.flatnonzero(has_members[group])
        read = read_kinds(table.take(pa.array(member_rows)), kinds)
        return read._replace(rows=[member_rows[rows] for rows in read.rows])
    member_name = names(table["member_id"], java_order=True)
    number, place = (table[name].to_numpy() for name in ("number", "place"))
    rows = {code: np.flatnonzero(kind == code) for code in (MEMBER, SUBSCRIPTION, TOPIC, *kinds)}

    lists = parse_texts(table["texts"], rows[SUBSCRIPTION], _LIST)
    listed = pa.chunked_array([*table["topic"].chunks, lists.flatten()], pa.string())
    topic_name, listed_name = names(listed, java_order=True).split(
        len(table), len(listed) - len(table)
    )
    list_start = starts(lengths(lists))

    members = rows[MEMBER]
    members = members[rows_by(group[members], member_name.code[members])]
    topic_keys, places = np.unique(
        key(group[rows[TOPIC]], topic_name.code[rows[TOPIC]]), return_index=True
    )
    topics = rows[TOPIC][places]
    subscribed, set_topic, set_start = sets_of(
        group[rows[SUBSCRIPTION]], listed_name.code, list_start, topic_keys
    )
    texts = parse_texts(table["texts"], members, _LIST)
    texts_of_members = names(pa.chunked_array([texts.flatten()], pa.string()), java_order=True)
    width = len(texts.flatten()) // len(members) if len(members) else _TEXTS
    nothing = np.zeros(len(members), np.int64)
    columns = [*texts_of_members.code.reshape(-1, width).T, *[nothing] * (_MOST_TEXTS - width)]
    instance, rack, assignor, regex, client, leader = columns
    replica_racks = parse_texts(table["texts"], topics, pa.list_(_LIST))
    racks = read_racks(replica_racks, number[topics], texts_of_members.take(rack))
    batch = Batch(
        cluster_names=cluster.strings,
        group_names=group_name.strings,
        member_names=member_name.strings,
        topic_names=topic_name.strings,
        texts=texts_of_members.strings,
        cluster=cluster.code[first],
        group=group_name.code[first],
        member_group=group[members],
        member_name=member_name.code[members],
        generation=number[members],
        member_seq=place[members],
        instance=instance,
        rack=rack,
        assignor=assignor,
        regex=regex,
        client=client,
        is_leader=leader > 0,
        subscription=_lists_of(group, table["list_number"].to_numpy(), members, rows[SUBSCRIPTION]),
        list_topics=listed_name.code,
        list_start=list_start,
        subscribed=subscribed,
        set_topic=set_topic,
        set_start=set_start,
        topic_group=group[topics],
        topic_name=topic_name.code[topics],
        size=number[topics],
        racks=racks,
        has_positions=bool(place[kind == CLAIM].any()),
    )
    of_kinds = [rows[code] for code in kinds]
    if batch.has_positions and CLAIM in kinds:
        places = of_kinds[kinds.index(CLAIM)]
        of_kinds[kinds.index(CLAIM)] = places[np.argsort(place[places], kind="stable")]
    claims = [
        claims_of(
            batch, group[places], member_name.code[places], topic_name.code[places], number[places]
        )
        for places in of_kinds
    ]
    return KindRows(batch, claims, of_kinds)


def _lists_of(group: Longs, list_number: Longs, members: Longs, lists: Longs) -> Longs:
    """Find each member's list by its number."""
    of_list = key(group[lists], list_number[lists])
    sorted_lists = np.argsort(of_list)
    of_member = key(group[members], list_number[members])
    return sorted_lists[find(of_list[sorted_lists], of_member)]


def sets_of(
    group: Longs, listed: Longs, list_start: Longs, topic_keys: Longs
) -> tuple[Longs, Longs, Longs]:
    """Number the different sets of topics that lists name, and find their topics."""
    list_numbers = np.repeat(np.arange(len(group)), np.diff(list_start))
    pairs = np.unique(key(list_numbers, listed))
    list_numbers, listed = pairs >> 32, pairs & 0xFFFF_FFFF
    first, subscribed = same_lists(group, np.bincount(list_numbers, minlength=len(group)), listed)
    rows = np.flatnonzero(np.isin(list_numbers, first))
    topic = find(topic_keys, key(group[list_numbers[rows]], listed[rows]))
    exists = topic >= 0
    of_set = subscribed[list_numbers[rows[exists]]]
    return subscribed, topic[exists], starts(np.bincount(of_set, minlength=len(first)))


def parse_texts(texts: pa.ChunkedArray, rows: Longs, data_type: pa.DataType) -> pa.Array:
    """Read the texts of some rows, which are JSON; null where there is none."""
    encoded = texts.take(pa.array(rows)).combine_chunks().dictionary_encode()
    # Thousands of members subscribe alike, or have neither a rack nor an instance.
    different = f"[{','.join(encoded.dictionary.to_pylist())}]"
    return pa.array(json.loads(different), data_type).take(encoded.indices)
