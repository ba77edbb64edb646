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
    assign_batch,
    numbers_of,
)
from kassign_spark.groups.eligible import Eligible
from kassign_spark.groups.group_names import LISTS, assigned_lists
from kassign_spark.groups.paths import TASK
from kassign_spark.groups.read import read_batch
from kassign_spark.groups.rows import fold, run_in_tasks
from kassign_spark.schemas import GROUP_KEY
from kassign_spark.settings.computing import Settings


def assign_in_tasks(
    eligible: Eligible, settings: Settings, assignor: int | None = None
) -> DataFrame:
    """Assign whole groups, many of them in each task; runs no job.

    Groups of `cooperative-sticky` are not given yet what another member owns now, or several
    dispute.

    Args:
        eligible: the groups; all fit a task.
        settings: ``batches``, ``racks_before_moves``.
        assignor: a number of ``KAFKAS`` for all groups; None: each group's own.

    Returns:
        The columns of ``schemas.ASSIGNMENT``.
    """
    eligible.note_path(TASK)
    kernel = partial(
        assign_arrow,
        assignor=assignor,
        racks_before_moves=settings.racks_before_moves,
    )
    tasks = settings.batches or eligible.batches
    table = fold(eligible, claims=assignor not in (RANGE, ROUNDROBIN))
    lists = run_in_tasks(table, kernel, LISTS, tasks)
    partitions = lists.selectExpr("*", "posexplode(member_ids) as (place, member_id)")
    partition = "first_partition + place as partition"
    return partitions.where("member_id is not null").selectExpr(
        *GROUP_KEY, "member_id", "topic", partition
    )


def assign_arrow(
    table: pa.Table,
    *,
    assignor: int | None = None,
    racks_before_moves: bool = False,
) -> Iterator[pa.Table]:
    """Assign the groups of a task, rows of ``rows.fold``, as ``assign_in_tasks`` says.

    Returns:
        The columns of ``LISTS``, in pieces.
    """
    batch, claims = read_batch(table)
    assignors = numbers_of(batch, assignor)
    assignment = assign_batch(
        batch, claims, batch.generation, assignors, racks_before_moves=racks_before_moves
    )
    is_withheld = assignment.is_moving & (assignors[batch.slot_group] == COOPERATIVE_STICKY)
    yield from assigned_lists(batch, np.where(is_withheld, -1, assignment.owner))
