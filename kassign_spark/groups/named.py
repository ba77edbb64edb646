"""Answers about many groups with the names put back, in pieces that no Arrow column outgrows."""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from kassign_spark.groups.answer import Answer
from kassign_spark.groups.batch import Batch
from kassign_spark.groups.numbers import Longs

ASSIGNED = "cluster_id string, group_id string, member_id string, topic string, partition int"
"""The columns of ``schemas.ASSIGNMENT``."""

ASSIGNED_OR_MOVING = f"{ASSIGNED}, is_moving boolean"

PIECE = 50_000
"""Rows of a piece: Spark takes one while the next is named, and none comes near 2 GiB a column."""


def assigned_tables(batch: Batch, answer: Answer, *, tells_moving: bool) -> Iterator[pa.Table]:
    """Name who is given each partition: the columns of ``ASSIGNED``, or also what is moving."""
    for first in range(0, len(answer.owner), PIECE):
        slots = np.arange(first, min(first + PIECE, len(answer.owner)))
        slots = slots[answer.owner[slots] >= 0]
        columns = {
            **group_columns(batch, batch.slot_group[slots]),
            "member_id": member_ids(batch, answer.owner[slots]),
            **partition_columns(batch, slots),
        }
        if tells_moving:
            columns["is_moving"] = pa.array(answer.is_moving[slots])
        yield pa.table(columns)


def group_columns(batch: Batch, group: Longs) -> dict[str, pa.Array]:
    """cluster_id and group_id of groups."""
    return {
        "cluster_id": batch.cluster_names.take(pa.array(batch.cluster[group] - 1)),
        "group_id": batch.group_names.take(pa.array(batch.group[group] - 1)),
    }


def member_ids(batch: Batch, member: Longs) -> pa.Array:
    """Names of members."""
    return batch.member_names.take(pa.array(batch.member_name[member] - 1))


def partition_columns(batch: Batch, slots: Longs) -> dict[str, pa.Array]:
    """Topic and partition of slots."""
    names = batch.topic_name[batch.slot_topic[slots]]
    return {
        "topic": batch.topic_names.take(pa.array(names - 1)),
        "partition": pa.array(batch.slot_partition[slots].astype(np.int32)),
    }
