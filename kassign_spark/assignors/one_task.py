"""Groups that fit a task, answered there by any of Kafka's assignors."""

from collections.abc import Iterator
from functools import partial

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame

from kassign_spark.assignors.in_tasks import (
    COOPERATIVE_STICKY,
    RANGE,
    ROUNDROBIN,
    answer,
    numbers_of,
)
from kassign_spark.groups.answer import Answer
from kassign_spark.groups.eligible import Eligible
from kassign_spark.groups.named import ASSIGNED, assigned_tables
from kassign_spark.groups.paths import TASK
from kassign_spark.groups.read import read_batch
from kassign_spark.groups.rows import fold, in_tasks
from kassign_spark.settings.computing import Settings


def assign_in_tasks(
    eligible: Eligible, settings: Settings, assignor: int | None = None, *, withhold: bool = False
) -> DataFrame:
    """Assign whole groups, many of them in each task; runs no job.

    Args:
        eligible: the groups; all fit a task.
        settings: ``batches``, ``racks_before_moves``.
        assignor: a number of ``KAFKAS`` for all groups; None: each group's own.
        withhold: whether groups of `cooperative-sticky` are left without what is moving.

    Returns:
        The columns of ``schemas.ASSIGNMENT`` and is_moving boolean: another member owns the
        partition now, or several dispute it, so that a cooperative rebalance withholds it.
    """
    eligible.note_path(TASK)
    table = fold(eligible, claims=assignor not in (RANGE, ROUNDROBIN))
    kernel = partial(
        assign_arrow,
        assignor=assignor,
        withhold=withhold,
        racks_before_moves=settings.racks_before_moves,
    )
    return in_tasks(table, kernel, ASSIGNED, settings.batches or eligible.batches)


def assign_arrow(
    table: pa.Table,
    *,
    assignor: int | None = None,
    withhold: bool = False,
    racks_before_moves: bool = False,
) -> Iterator[pa.Table]:
    """Assign the groups of a task, rows of ``rows.fold``, as ``assign_in_tasks`` says.

    Returns:
        The columns of ``ASSIGNED``, in pieces.
    """
    batch, claims = read_batch(table)
    assignors = numbers_of(batch, assignor)
    found = answer(
        batch, claims, batch.generation, assignors, racks_before_moves=racks_before_moves
    )
    if withhold:
        later = found.is_moving & (assignors[batch.slot_group] == COOPERATIVE_STICKY)
        found = Answer(np.where(later, -1, found.owner), found.is_moving)
    yield from assigned_tables(batch, found)
