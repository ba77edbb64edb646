"""Answers about many groups with the names put back, in pieces that no Arrow column outgrows."""

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa

from kassign_spark.groups.batch import Batch
from kassign_spark.groups.numbers import Longs
from kassign_spark.schemas import table_of
from kassign_spark.spark.spark_versions import arrow_schema

ASSIGNED = "cluster_id string, group_id string, member_id string, topic string, partition int"
"""The columns of ``schemas.ASSIGNMENT``."""

LISTS = (
    "cluster_id string, group_id string, topic string, first_partition int, "
    "member_ids array<string>"
)
"""Consecutive partitions of a topic: of each the member that is given it, or null."""

PIECE = 50_000
"""Rows of a piece: Spark takes one while the next is named, and none comes near 2 GiB a column."""


def assigned_lists(batch: Batch, owners: Longs) -> Iterator[pa.Table]:
    """Name who is given each partition: the columns of ``LISTS``.

    A row per partition would have four names to write, send and read again; Spark makes such rows
    of these lists itself, by references to names: a twentieth less processor time for a fleet.
    """
    for begin in range(0, len(owners), PIECE):
        piece = slice(begin, min(begin + PIECE, len(owners)))
        # A list is of one topic, and of one piece.
        topics = slice(*np.searchsorted(batch.first_slot, [begin + 1, piece.stop]))
        first = np.append(begin, batch.first_slot[topics])
        ends = pa.array((np.append(first, piece.stop) - begin).astype(np.int32))
        owner = owners[piece]
        name = pa.array(batch.member_name[owner] - 1, mask=owner < 0)
        columns = partition_columns(batch, first)
        yield pa.table(
            {
                **group_columns(batch, batch.slot_group[first]),
                "topic": columns["topic"],
                "first_partition": columns["partition"],
                "member_ids": pa.ListArray.from_arrays(ends, batch.member_names.take(name)),
            }
        )


def group_columns(batch: Batch, group: Longs) -> dict[str, pa.Array]:
    """Return cluster_id and group_id of groups."""
    return {
        "cluster_id": batch.cluster_names.take(pa.array(batch.cluster[group] - 1)),
        "group_id": batch.group_names.take(pa.array(batch.group[group] - 1)),
    }


def member_ids(batch: Batch, member: Longs) -> pa.Array:
    """Return names of members."""
    return batch.member_names.take(pa.array(batch.member_name[member] - 1))


def partition_columns(batch: Batch, slots: Longs) -> dict[str, pa.Array]:
    """Return topic and partition of slots."""
    names = batch.topic_name[batch.slot_topic[slots]]
    return {
        "topic": batch.topic_names.take(pa.array(names - 1)),
        "partition": pa.array(batch.slot_partition[slots].astype(np.int32)),
    }


@cache
def schema_of(columns: str) -> pa.Schema:
    """Return the Arrow schema of a task's answer, given as Spark's; any column may be null."""
    declared = arrow_schema(table_of("columns", columns).columns)
    return pa.schema([field.with_nullable(True) for field in declared])


def with_nulls(columns: str, columns_present: Mapping[str, Any]) -> pa.Table:
    """Make a table with these columns, of arrays or values; null is what is not given."""
    schema, count = schema_of(columns), len(columns_present["group_id"])
    nothing = {field.name: pa.nulls(count, field.type) for field in schema}
    return pa.Table.from_pydict(nothing | dict(columns_present), schema)
