"""The table that a measure's task is given: whole groups, rows of several kinds, and its numbers.

A task can be given one table only, so members, assigned and owned partitions come as rows of one.
Names become numbers once; all counting is numpy over the rows of many groups.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame

from kassign_spark.groups.numbers import Flags, Longs, Names, dense, find, key, names, rows_by
from kassign_spark.groups.racks import lengths
from kassign_spark.groups.read import parse_texts
from kassign_spark.groups.rows import Kernel, rows_of_kind

MEMBER, ASSIGNED, OWNED, SUBSCRIBED = range(4)
"""Kinds of rows: a member, an assigned partition, one that a member owned before, a topic that
members of the group subscribe to."""


_COLUMNS = {
    "member_id": "string",
    "topic": "string",
    "partition": "bigint",
    "rack_id": "string",
    "texts": "string",
    "size": "bigint",
}


def rows(frame: DataFrame, kind: int, **more: str) -> DataFrame:
    """Return a frame, which has ``GROUP_KEY``, with the columns of the tasks' table, others null.

    Returns:
        cluster_id string, group_id string, kind tinyint, member_id string, topic string,
        partition bigint, rack_id string, texts string (a list as JSON), size bigint, and ``more``.
    """
    lists = "texts" if "texts" in frame.columns else "null"
    # As JSON: a column of lists takes Spark ten times as long to hand over to Python.
    texts = f"to_json(cast({lists} as array<string>))"
    return rows_of_kind(frame, kind, {**_COLUMNS, **more}, texts=texts)


class TaskTable(NamedTuple):
    """A task's table in numbers. A name's number is its place in UTF-8 order; 0 stands for null.

    Attributes:
        cluster, group_name, member_name, topic_name: of each row.
        kind: of each row.
        group: of each row, from 0.
        in_group: whether the row's group_id is there; a null one is no group to anything.
        slot: of each row of a partition, its number among all that are given; -1: it is none.
        listed: the lists ``texts`` of the members, and
        topic_of_list: the number of each of them as a topic.
    """

    cluster: Names
    group_name: Names
    member_name: Names
    topic_name: Names
    kind: Longs
    group: Longs
    in_group: Flags
    slot: Longs
    listed: "FlatLists"
    topic_of_list: Longs

    @property
    def member(self) -> Longs:
        """Return the number of each row's member_id."""
        return self.member_name.code

    @property
    def topic(self) -> Longs:
        """Return the number of each row's topic."""
        return self.topic_name.code

    def rows_of(self, kind: int) -> Longs:
        """Return the rows of a kind."""
        return np.flatnonzero(self.kind == kind)

    def group_columns(self, rows: Longs) -> dict[str, pa.Array]:
        """Return cluster_id and group_id of rows."""
        return {
            "cluster_id": self.cluster.take(self.cluster.code[rows]),
            "group_id": self.group_name.take(self.group_name.code[rows]),
        }


def read(table: pa.Table) -> TaskTable:
    """Read a task's table; its columns are those that ``rows`` gives."""
    kind = table["kind"].to_numpy()
    lists = flatten_lists(table["texts"], np.flatnonzero(kind == MEMBER))
    topic, topic_of_list = encode_together(table["topic"], lists.text)
    cluster, group_name = names(table["cluster_id"]), names(table["group_id"])
    (_, group), in_group = dense(cluster.code, group_name.code), group_name.code > 0
    slot = _slots(table["partition"], kind, group, in_group, topic.code)
    member_name = names(table["member_id"])
    return TaskTable(
        cluster, group_name, member_name, topic, kind, group, in_group, slot, lists, topic_of_list
    )


class FlatLists(NamedTuple):
    """Lists of rows, one after the other: ``row`` is the place of each text's row among them."""

    row: Longs
    text: pa.ChunkedArray
    is_null: Flags


def flatten_lists(texts: pa.ChunkedArray, rows: Longs) -> FlatLists:
    """Read and flatten the lists of some rows."""
    lists = parse_texts(texts, rows, pa.list_(pa.string()))
    is_null = lists.is_null().to_numpy(zero_copy_only=False)
    flat = pa.chunked_array([lists.flatten()])
    return FlatLists(np.repeat(np.arange(len(rows)), lengths(lists)), flat, is_null)


def encode_together(one: pa.ChunkedArray, other: pa.ChunkedArray) -> tuple[Names, Longs]:
    """Number the strings of two columns alike; gives the names of the first, and numbers."""
    both = names(pa.chunked_array([*one.chunks, *other.chunks], pa.string()))
    return Names(both.code[: len(one)], both.strings), both.code[len(one) :]


def subscribe_alike(
    group_of: Longs, lists: FlatLists, topic_of_list: Longs, group_count: int
) -> tuple[Flags, Longs]:
    """Return whether all lists of a group that are not null name the same topics.

    Args:
        group_of: of each row of ``lists``.
        lists: of some members.
        topic_of_list: of each text of ``lists``.
        group_count: how many groups there are.

    Returns:
        whether they do, by group; and all keys of groups and their topics.
    """
    list_count = np.bincount(group_of[~lists.is_null], minlength=group_count)
    of_list = np.unique(key(lists.row, topic_of_list))
    topic_keys, times = np.unique(
        key(group_of[of_list >> 32], of_list & 0xFFFF_FFFF), return_counts=True
    )
    alike = list_count > 0
    alike[(topic_keys >> 32)[times < list_count[topic_keys >> 32]]] = False
    return alike, topic_keys


def _slots(
    partition: pa.ChunkedArray, kind: Longs, group: Longs, in_group: Flags, topic: Longs
) -> Longs:
    number = pc.fill_null(partition, -1).to_numpy()
    exists = (kind != MEMBER) & in_group & (topic > 0) & partition.is_valid().to_numpy()
    rows = np.flatnonzero(exists)
    slot = np.full(len(kind), -1)
    _, topic_key = dense(group[rows], topic[rows])
    order = rows_by(topic_key, number[rows])
    topic_key, number = topic_key[order], number[rows][order]
    begins = np.ones(len(rows), bool)
    begins[1:] = (topic_key[1:] != topic_key[:-1]) | (number[1:] != number[:-1])
    slot[rows[order]] = np.cumsum(begins) - 1
    return slot


def member_places(read: TaskTable, member_keys: Longs, rows: Longs) -> Longs:
    """Return the place of each row's member among the members; -1: none."""
    place = find(member_keys, key(read.group[rows], read.member[rows]))
    return np.where(read.in_group[rows] & (read.member[rows] > 0), place, -1)


def one_piece(function: Callable[[pa.Table], pa.Table]) -> Kernel:
    """Return a kernel whose answer about a task is small enough for one piece."""
    return partial(_as_pieces, function)


def _as_pieces(function: Callable[[pa.Table], pa.Table], table: pa.Table) -> list[pa.Table]:
    return [function(table)]


def lists_of(values: pa.Array, sizes: Longs) -> pa.ListArray:
    """Cut values into lists of these lengths."""
    ends = np.concatenate(([0], np.cumsum(sizes)))
    return pa.ListArray.from_arrays(pa.array(ends, pa.int32()), values)


def count(groups: Longs, group_count: int) -> Longs:
    """Return the number of rows of each group; -1 is none."""
    return np.bincount(groups[groups >= 0], minlength=group_count)


class RepeatedRows(NamedTuple):
    """Rows that are there more than once, one run of equal ones after the other.

    Attributes:
        row: these rows.
        first: of each run the first one of them.
        sizes: of each run how many they are.
    """

    row: Longs
    first: Longs
    sizes: Longs


def find_repeated(columns: Sequence[Longs | Flags], *then: Longs) -> RepeatedRows:
    """Find the rows that are equal in ``columns`` to others; those of a run are by ``then``."""
    order = rows_by(*columns, *then)
    begins = np.zeros(len(order), bool)
    begins[:1] = True
    for column in columns:
        begins[1:] |= column[order][1:] != column[order][:-1]
    first = np.flatnonzero(begins)
    count = np.diff(first, append=len(order))
    several = count > 1
    return RepeatedRows(order[np.repeat(several, count)], order[first[several]], count[several])
