"""A group log as arrays: what its records say, by code, and the generations that they start."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kassign_spark.groups.numbers import Flags, Longs, Names, find, key, names


class Log(NamedTuple):
    """Rows of whole groups in any order: the tables of ``log.log_schemas`` of the same names."""

    generations: pa.Table
    log_members: pa.Table
    log_assignment: pa.Table
    commits: pa.Table


TIME = pa.timestamp("us", "UTC")

OWNERS = pa.schema(
    [
        ("group_id", pa.string()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("owner", pa.string()),
        ("is_static", pa.bool_()),
    ]
)
"""The last owner of each partition; ``owner`` is an instance id where ``is_static``."""

LEAVES = pa.schema(
    {"group_id": pa.string(), "client_id": pa.string(), "client_host": pa.string(), "at": TIME}
)
"""Clients that left before the log."""


class EarlierLog(NamedTuple):
    """The state before a log: tables of ``OWNERS`` and ``LEAVES``."""

    owners: pa.Table
    leaves: pa.Table


NOTHING = EarlierLog(OWNERS.empty_table(), LEAVES.empty_table())


class Leaves(NamedTuple):
    """Clients that left before the log, as codes, and when."""

    group: Longs
    client: Longs
    host: Longs
    at: Longs


@dataclass(frozen=True)
class Records:
    """The records that start generations, by group and then in the order of the log.

    Attributes:
        group: code of the group's name.
        era: number of the group's life: one that was deleted begins anew.
        offset: where the record stands.
        at: microseconds.
        generation, assignor, member_count: what it says.
        is_consumer: of the new protocol.
        is_first: nothing is known of before.
        is_head: the first of its generation; others say that static members came back.
        previous: the record before, of the same era; -1: none.
        head: the first record of its generation.
    """

    group: Longs
    era: Longs
    offset: Longs
    at: Longs
    generation: Longs
    assignor: Longs
    member_count: Longs
    is_consumer: Flags
    is_first: Flags
    is_head: Flags
    previous: Longs
    head: Longs

    def after(self, group: Longs, offset: Longs) -> Longs:
        """Return a group's first record at an offset or later, or the end of its records."""
        offsets = distinct(self.offset)
        place = key(self.group, np.searchsorted(offsets, self.offset))
        return np.searchsorted(place, key(group, np.searchsorted(offsets, offset)))


@dataclass(frozen=True)
class Members:
    """Columns of ``log_members`` as codes."""

    group: Longs
    member: Longs
    identity: Longs
    subscription: Longs
    instance: Longs
    client: Longs
    host: Longs


@dataclass(frozen=True)
class Present(Members):
    """Members of the records: one row for each that was there, and the row of ``log_members``."""

    record: Longs
    row: Longs


@dataclass(frozen=True)
class Assigned:
    """Partitions of the records, one row each; record -1: somebody had it before all of them."""

    record: Longs
    era: Longs
    topic: Longs
    partition: Longs
    owner: Longs


@dataclass(frozen=True)
class Committed:
    """Commits in the order of the log; ``record`` is the last before; -1: none of its group."""

    group: Longs
    record: Longs
    topic: Longs
    partition: Longs
    offset: Longs
    at: Longs


@dataclass(frozen=True)
class View:
    """All of a log.

    ``identity`` and ``owner`` are codes of ``people``, or, of static members, of their instance
    plus ``static``: a static member is the same under another member id.
    """

    group_names: Names
    texts: Names
    people: Names
    topics: Names
    static: int
    records: Records
    present: Present
    assigned: Assigned
    committed: Committed
    leaves: Leaves
    lists: pa.ListArray
    """Subscriptions by code; those with the same topics in another order are one."""


def distinct(numbers: Longs) -> Longs:
    """Return the different values in order; ``np.unique`` hashes, and takes thrice as long."""
    ordered: Longs = np.sort(numbers)
    kept: Longs = ordered[run_ends(ordered)]
    return kept


def together(*columns: pa.ChunkedArray) -> list[Names]:
    """Encode columns by one list of names."""
    plain = [pc.cast(column, pa.string()) for column in columns]
    chunks = [chunk for column in plain for chunk in column.chunks]
    encoded = names(pa.chunked_array(chunks, pa.string()))
    return encoded.split(*map(len, plain))


def longs(column: pa.ChunkedArray, null: int = -1) -> Longs:
    """Return numbers of a column."""
    filled = pc.fill_null(pc.cast(column, pa.int64()), null)
    return np.asarray(filled.to_numpy(), np.int64)


def rows_at(rows: tuple[Longs, Longs], group: Longs, offset: Longs) -> Longs:
    """Return the place among ``rows``, groups and offsets, of each group and offset; -1: none.

    All records of a group stand in one partition, so of each offset it has one.
    """
    offsets = distinct(rows[1])
    keys = key(rows[0], np.searchsorted(offsets, rows[1]))
    order = np.argsort(keys)
    place = find(keys[order], key(group, find(offsets, offset)))
    return np.append(order, -1)[place]


def repeats(*columns: Longs | Flags) -> Flags:
    """Return whether a row equals the one before in all columns."""
    same = np.logical_and.reduce([column[1:] == column[:-1] for column in columns])
    return np.append(False, same)[: len(columns[0])]


def run_ends(*columns: Longs) -> Flags:
    """Return the ends of runs of rows that are equal in all columns."""
    return np.append(~repeats(*columns)[1:], True)[: len(columns[0])]


def flags(column: pa.ChunkedArray) -> Flags:
    """Return the values of a boolean column without nulls."""
    return np.asarray(column.to_numpy(), bool)


def times(column: pa.ChunkedArray) -> Longs:
    """Return microseconds since 1970."""
    return longs(pc.cast(column, TIME))


def equals(column: pa.ChunkedArray, value: str) -> Flags:
    """Return where a column has the value; null does not."""
    return np.asarray(pc.fill_null(pc.equal(column, value), False).to_numpy(), bool)
