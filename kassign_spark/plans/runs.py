"""What Kafka's client does with the groups of a task: partitions of a member and topic in a row."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from kassign_spark.groups.batch import Batch
from kassign_spark.groups.named import PIECE, group_columns, member_ids
from kassign_spark.groups.numbers import rows_by
from kassign_spark.plans.rounds import ACTIONS, Steps

RUNS = (
    "cluster_id string, group_id string, verdict string, detail string, round int, action string, "
    "member_id string, topic string, partitions array<int>"
)
"""Rows of two kinds: a group's verdict; partitions that a member has of a topic."""


class Judged(NamedTuple):
    """The groups of a batch as the client leaves them.

    Attributes:
        verdicts: of each group, with the detail.
        steps: who gets what, and in which round.
    """

    verdicts: Sequence[tuple[str, str | None]]
    steps: Steps


def run_tables(batch: Batch, judged: Judged) -> Iterator[pa.Table]:
    """Name verdicts and steps: the columns of ``RUNS``, in pieces."""
    schema = pa.schema(
        {
            **dict.fromkeys(("cluster_id", "group_id", "verdict", "detail"), pa.string()),
            "round": pa.int32(),
            **dict.fromkeys(("action", "member_id", "topic"), pa.string()),
            "partitions": pa.list_(pa.int32()),
        }
    )

    def table(**columns: pa.Array) -> pa.Table:
        count = len(next(iter(columns.values())))
        every = [columns.get(f.name, pa.nulls(count, f.type)) for f in schema]
        return pa.table(every, schema=schema)

    yield table(
        **group_columns(batch, np.arange(batch.group_count)),
        verdict=pa.array([verdict for verdict, _ in judged.verdicts], pa.string()),
        detail=pa.array([detail for _, detail in judged.verdicts], pa.string()),
    )
    given = judged.steps
    order = rows_by(given.round, given.action, given.member, given.topic, given.partition)
    steps = Steps(**{name: column[order] for name, column in vars(given).items()})
    runs = (steps.round, steps.action, steps.member, steps.topic)
    begins = np.flatnonzero(np.any([np.diff(of, prepend=-1) != 0 for of in runs], axis=0))
    ends = np.append(begins[1:], len(steps.round))
    actions = pa.array(ACTIONS)
    first = 0
    while first < len(begins):
        # A run is whole in one piece.
        last = max(int(np.searchsorted(ends, ends[first] + PIECE)), first + 1)
        at, start, end = begins[first:last], int(begins[first]), int(ends[last - 1])
        offsets = np.append(at, end) - start
        yield table(
            **group_columns(batch, batch.member_group[steps.member[at]]),
            round=pa.array(steps.round[at].astype(np.int32)),
            action=actions.take(pa.array(steps.action[at])),
            member_id=member_ids(batch, steps.member[at]),
            topic=batch.topic_names.take(pa.array(steps.topic[at] - 1)),
            partitions=pa.ListArray.from_arrays(
                pa.array(offsets.astype(np.int32)),
                pa.array(steps.partition[start:end].astype(np.int32)),
            ),
        )
        first = last
