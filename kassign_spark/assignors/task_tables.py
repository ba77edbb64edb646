"""Whole groups as one Arrow table inside a task: rows of several kinds, and names as numbers.

A task can be given one table only, so members, topics and claims come as rows of one, and say
what they are by ``kind``. All columns but the names are numbers; the names are encoded once.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from kassign_spark.assignors.segments import Longs
from kassign_spark.schemas import GROUP_KEY

ASSIGNED = (
    "cluster_id string, group_id string, member_id string, topic string, partition int, "
    "is_moving boolean"
)
"""What a task gives back: the columns of ``schemas.ASSIGNMENT``, and is_moving."""

ArrowFunction = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]
"""What ``DataFrame.mapInArrow`` calls."""

_KEY_BITS = 32
_FIRST_BYTE_OF_E000 = 0xEE
"""UTF-8 sorts as UTF-16 does as long as no character is in U+E000 or above."""


def rows(
    frame: DataFrame,
    kind: int,
    class_: str | None = None,
    member: str | None = None,
    member_id: str | None = None,
    topic: str | None = None,
    number: str | None = None,
) -> DataFrame:
    """Give ``frame`` the columns of a task's table, each filled from the column that is named.

    Returns:
        cluster_id string, group_id string, kind int, class int, member int, number bigint,
        member_id string?, topic string?; a number that is not filled is 0.
    """

    def of(name: str | None, data_type: str) -> Column:
        return (F.lit(None) if name is None else F.col(name)).cast(data_type)

    return frame.select(
        *GROUP_KEY,
        F.lit(kind).alias("kind"),
        F.coalesce(of(class_, "int"), F.lit(0)).alias("class"),
        F.coalesce(of(member, "int"), F.lit(0)).alias("member"),
        F.coalesce(of(number, "bigint"), F.lit(0)).alias("number"),
        of(member_id, "string").alias("member_id"),
        of(topic, "string").alias("topic"),
    )


def joined_rows(members: DataFrame, kind: int) -> DataFrame:
    """Give ``schemas.MEMBERS`` the columns of ``rows``: what decides between members' claims.

    ``number`` is the generation and ``member`` the place in the JoinGroup response; -1 where they
    are unknown.
    """
    known = members.withColumns(
        {
            "generation": F.coalesce("generation", F.lit(-1)),
            "member_seq": F.coalesce("member_seq", F.lit(-1)),
        }
    )
    return rows(known, kind, member="member_seq", member_id="member_id", number="generation")


def in_tasks(
    table: DataFrame, function: Callable[[pa.Table], pa.Table], schema: str, tasks: int
) -> DataFrame:
    """Call ``function`` in ``tasks`` tasks, each with all rows of the groups that fall to it."""
    return table.repartition(tasks, *GROUP_KEY).mapInArrow(all_rows(function), schema)


def all_rows(function: Callable[[pa.Table], pa.Table]) -> ArrowFunction:
    """Call ``function`` with all rows of a task, if it has any."""

    def of_task(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        given = list(batches)
        if given:
            yield from function(pa.Table.from_batches(given)).to_batches()

    return of_task


class Names(NamedTuple):
    """A string column in numbers that are in the order of its strings; 0 stands for null."""

    code: Longs
    strings: pa.Array

    def take(self, codes: Longs) -> pa.Array:
        """The strings of ``codes``."""
        return self.strings.take(pa.array(codes - 1))


def names(column: pa.ChunkedArray, *, java_order: bool = False) -> Names:
    """Encode a string column; by UTF-8 bytes, or as Java's ``String.compareTo`` orders."""
    encoded = pc.dictionary_encode(column).combine_chunks()
    strings = encoded.dictionary
    order = pc.sort_indices(_utf_16(strings) if java_order else strings).to_numpy()
    rank = np.empty(len(order) + 1, np.int64)
    rank[order] = np.arange(1, len(order) + 1)
    rank[-1] = 0
    indices = pc.fill_null(encoded.indices, -1).to_numpy().astype(np.int64)
    return Names(rank[indices], strings.take(pa.array(order)))


class Encoded(NamedTuple):
    """A task's table (see ``rows``) in numbers, row by row; groups are numbered from 0."""

    cluster: Names
    group_name: Names
    member_name: Names
    topic_name: Names
    group: Longs
    kind: Longs
    class_: Longs
    member: Longs
    number: Longs


def encode(table: pa.Table, *, topics_in_java_order: bool) -> Encoded:
    """Read a task's table; members' names are in Java's order."""
    cluster, group_name = names(table["cluster_id"]), names(table["group_id"])
    return Encoded(
        cluster,
        group_name,
        names(table["member_id"], java_order=True),
        names(table["topic"], java_order=topics_in_java_order),
        dense(cluster.code, group_name.code),
        *(
            table[name].to_numpy().astype(np.int64)
            for name in ("kind", "class", "member", "number")
        ),
    )


class Slots(NamedTuple):
    """The partitions of the first topic, then of the second, and so on.

    Attributes:
        topics: which rows of the table the topics are.
        size: how many partitions each topic has.
        first: the first slot of each topic.
        topic: of each slot, an index into ``topics``.
        partition: of each slot, its number in the topic.
    """

    topics: Longs
    size: Longs
    first: Longs
    topic: Longs
    partition: Longs


def lay_out(table: Encoded, topics: Longs) -> Slots:
    """Give each partition of the rows ``topics``, whose number is their size, a slot."""
    size = table.number[topics]
    first = np.cumsum(size) - size
    topic = np.repeat(np.arange(len(topics)), size)
    return Slots(topics, size, first, topic, np.arange(len(topic)) - first[topic])


def assigned_table(
    table: Encoded, slots: Slots, owner: Longs, is_moving: npt.NDArray[np.bool_]
) -> pa.Table:
    """Name what each slot's owner, a row of the table, was given: the columns of ``ASSIGNED``."""
    topic = slots.topics[slots.topic]
    return pa.table(
        {
            "cluster_id": table.cluster.take(table.cluster.code[topic]),
            "group_id": table.group_name.take(table.group_name.code[topic]),
            "member_id": table.member_name.take(table.member_name.code[owner]),
            "topic": table.topic_name.take(table.topic_name.code[topic]),
            "partition": pa.array(slots.partition.astype(np.int32)),
            "is_moving": pa.array(is_moving),
        }
    )


def java_hash_codes(strings: pa.Array) -> npt.NDArray[np.uint32]:
    """Java's ``String.hashCode`` of each string; none is empty."""
    units = [text.encode("utf-16-le") for text in strings.to_pylist()]
    lengths = np.fromiter((len(text) // 2 for text in units), np.int64, len(units))
    ends = np.cumsum(lengths)
    powers = np.ones(lengths.max(initial=1), np.uint32)
    powers[1:] = 31
    powers = np.multiply.accumulate(powers, dtype=np.uint32)
    places = np.repeat(ends, lengths) - 1 - np.arange(ends[-1] if len(ends) else 0)
    terms = np.frombuffer(b"".join(units), "<u2").astype(np.uint32) * powers[places]
    return np.add.reduceat(terms, ends - lengths, dtype=np.uint32) if len(ends) else terms


def dense(*columns: Longs) -> Longs:
    """Number the different pairs of two columns of small numbers, from 0."""
    high, low = columns
    return np.unique(key(high, low), return_inverse=True)[1]


def key(high: Longs, low: Longs) -> Longs:
    """Two small numbers in one, which sorts by the first and then the second."""
    return high << _KEY_BITS | low


def find(keys: Longs, wanted: Longs) -> Longs:
    """Where each wanted key is among sorted different keys; -1: it is not."""
    if not len(keys):
        return np.full(len(wanted), -1)
    place = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return np.where(keys[place] == wanted, place, -1)


def find_by_name(group: Longs, name: Longs, among: Longs, wanted: Longs) -> Longs:
    """For each row ``wanted`` which of the rows ``among`` has its group and name; -1: none."""
    keys = key(group, name)
    order = np.argsort(keys[among])
    place = find(keys[among][order], keys[wanted])
    if not len(order):
        return place
    return np.where(place >= 0, order[place], -1)


def place_in_run(run: Longs) -> Longs:
    """For each row of runs of equal numbers its place in its run, from 0."""
    begins = np.flatnonzero(np.diff(run, prepend=-1))
    return np.arange(len(run)) - np.repeat(begins, np.diff(begins, append=len(run)))


def _utf_16(strings: pa.Array) -> pa.Array:
    """Keys that sort by UTF-16 code units; the strings themselves where those sort alike."""
    data = strings.buffers()[2]
    if data is None or np.frombuffer(data, np.uint8).max(initial=0) < _FIRST_BYTE_OF_E000:
        return strings
    return pa.array([text.encode("utf-16-be") for text in strings.to_pylist()], pa.binary())
