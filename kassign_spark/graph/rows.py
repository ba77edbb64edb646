"""Whole groups for the kernels of the graph: the rows that a task is given, and their arrays."""

from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame

from kassign_spark.graph.batch import Subscribed
from kassign_spark.graph.components import number_groups
from kassign_spark.groups.batch import Batch
from kassign_spark.groups.eligible import Eligible
from kassign_spark.groups.numbers import Longs, dense, names, ranges
from kassign_spark.groups.read import read_batch
from kassign_spark.groups.rows import fold, rows

_NUMBER = 100
"""A kind of row beside those of ``groups.batch``: the number of the group."""


class Read(NamedTuple):
    """A batch of groups and its names.

    Attributes:
        subscribed: groups, members and topics by number.
        cluster_id: of each group.
        group_id: of each group.
        member_id: of each member; they are in Java's order in their group.
        topic: of each topic; likewise.
        group_number: of each group, the same in every batch; 0 where the rows do not tell.
    """

    subscribed: Subscribed
    cluster_id: pa.Array
    group_id: pa.Array
    member_id: pa.Array
    topic: pa.Array
    group_number: Longs


def graph_rows(eligible: Eligible, *, numbered: bool = False) -> DataFrame:
    """Put groups into the rows of one table (``groups.rows.fold``); runs no job.

    Args:
        eligible: the groups.
        numbered: whether the groups' numbers are wanted.
    """
    table = fold(eligible._replace(owned=None, has_racks=False))
    if not numbered:
        return table
    numbers = number_groups(eligible.members)
    return table.unionByName(rows(numbers, _NUMBER, number="group_number"))


def read_rows(table: pa.Table) -> Read:
    """Read all rows of a task."""
    is_number = pc.equal(table["kind"], _NUMBER)
    numbers = table.filter(is_number)
    batch, _ = read_batch(table.filter(pc.invert(is_number)))
    group_number = np.zeros(batch.group_count, np.int64)
    if len(numbers):
        codes = names(numbers["cluster_id"]).code, names(numbers["group_id"]).code
        first, _ = dense(*codes)
        group_number = numbers["number"].to_numpy()[first]
    return Read(
        subscribed_of(batch),
        batch.cluster_names.take(pa.array(batch.cluster - 1)),
        batch.group_names.take(pa.array(batch.group - 1)),
        batch.member_names.take(pa.array(batch.member_name - 1)),
        batch.topic_names.take(pa.array(batch.topic_name - 1)),
        group_number,
    )


def subscribed_of(batch: Batch) -> Subscribed:
    """Who subscribes to which topic."""
    readers = batch.subscribers
    topic_of = np.repeat(np.arange(len(batch.size)), readers.size)
    member_of = readers.member[ranges(readers.first, readers.size)]
    order = np.lexsort((member_of, topic_of))
    return Subscribed(
        batch.member_group, batch.topic_group, batch.size, topic_of[order], member_of[order]
    )
