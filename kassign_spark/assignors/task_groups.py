"""Groups that fit in one task: which they are, and their assignment there; others go in rounds."""

from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kassign_spark.assignors.in_tasks import (
    COOPERATIVE_STICKY,
    RANGE,
    ROUNDROBIN,
    assign_batch,
    numbers_of,
)
from kassign_spark.errors import InputError
from kassign_spark.groups.eligible import Eligible
from kassign_spark.groups.group_names import LISTS, assigned_lists
from kassign_spark.groups.large_claims import subscribed_topics
from kassign_spark.groups.paths import TASK
from kassign_spark.groups.rack_use import rack_use
from kassign_spark.groups.read import read_batch
from kassign_spark.groups.rows import fold, run_in_tasks
from kassign_spark.schemas import GROUP_KEY
from kassign_spark.settings.computing import Settings
from kassign_spark.spark.iteration import materialize

BYTES_OF_A_PARTITION = 160
BYTES_OF_A_PAIR = 400
"""Memory that a group takes in a task for each partition and, where subscriptions differ, for each
pair of a member and a subscribed topic."""


class GroupsBySize(NamedTuple):
    """Groups by how the sticky assignors answer them; None where there are no such.

    Attributes:
        fitting: those that fit a task.
        alike: larger ones whose members subscribe alike.
        differing: larger ones whose members do not.
        racked: those of them in which racks count.
    """

    fitting: Eligible | None
    alike: Eligible | None
    differing: Eligible | None
    racked: Eligible | None


def split_by_size(eligible: Eligible, settings: Settings) -> GroupsBySize:
    """Split the groups by size. Runs one query, and only if the largest may be too big for a task.

    Where subscriptions are equal and racks matter, the assignors are sequential inside a group:
    those fit always.

    Args:
        eligible: the groups.
        settings: ``engine``, ``bytes_per_task``.
    """
    if fits_all(eligible, settings):
        return GroupsBySize(eligible, None, None, None)
    kinds = GroupsBySize._fields
    sizes, counts = materialize(
        _sizes(eligible, settings),
        {kind: F.count_if(F.col("kind") == kind) for kind in kinds},
    )
    of_kind: dict[str, Eligible | None] = dict.fromkeys(kinds)
    present = [kind for kind in kinds if counts[kind]]
    for kind in present:
        if len(present) == 1:
            of_kind[kind] = eligible
        elif kind == "fitting":
            of_kind[kind] = restrict_to(eligible, sizes.where("kind != 'fitting'"), "left_anti")
        else:
            of_kind[kind] = restrict_to(eligible, sizes.where(F.col("kind") == kind))
    alike = of_kind["alike"]
    if alike is not None:
        of_kind["alike"] = alike._replace(heterogeneous=False)
    return GroupsBySize(**of_kind)


def fits_all(eligible: Eligible, settings: Settings) -> bool:
    """Return whether all groups fit in a task, as far as their sizes are known."""
    if settings.engine != "auto":
        return settings.engine == "task"
    pairs = eligible.most_edges if eligible.heterogeneous else 0
    size = BYTES_OF_A_PARTITION * eligible.most_partitions + BYTES_OF_A_PAIR * pairs
    return size <= settings.bytes_per_task


def goes_by_clients(eligible: Eligible, settings: Settings) -> bool:
    """Return whether the rules of other clients than Java's are asked for: a task knows them.

    Raises:
        InputError: a group may be too large for a task.
    """
    if eligible.has_clients and not fits_all(eligible, settings):
        raise InputError(
            "table members, column client: the rules of other clients than Java's are computed in "
            f"a task, and a group of up to {eligible.most_partitions:,} partitions does not fit "
            "one: raise bytes_per_task, or leave the column out for Java's rules"
        )
    return eligible.has_clients


def most_partitions(settings: Settings) -> int:
    """Return the number of partitions of the largest group that fits in a task."""
    return settings.bytes_per_task // BYTES_OF_A_PARTITION


def split_by_racks(
    eligible: Eligible, settings: Settings
) -> tuple[Eligible | None, Eligible | None]:
    """Split off the groups of `range` in which racks may matter, if there are any.

    Where all fit in a task, none is looked at: a task distinguishes them by itself.
    """
    if not eligible.has_racks:
        return None, eligible
    if fits_all(eligible, settings):
        return eligible, None
    use, counts = materialize(
        rack_use(eligible).where("by_topic").select(*GROUP_KEY), {"groups": F.count(F.lit(1))}
    )
    plain = eligible._replace(has_racks=False)
    if not counts["groups"]:
        return None, plain
    return restrict_to(eligible, use), restrict_to(plain, use, "left_anti")


def restrict_to(eligible: Eligible, few: DataFrame, join: str = "left_semi") -> Eligible:
    """Keep the groups that have rows in ``few``, or with `left_anti` the others.

    There are few groups that need steps of their own: what they own, which may be millions of
    rows of a single group, is not sent over the network to find that out.
    """
    keys = F.broadcast(few.select(*GROUP_KEY).distinct())

    def of_groups(rows: DataFrame) -> DataFrame:
        return rows.join(keys, on=list(GROUP_KEY), how=join)

    return eligible._replace(
        members=of_groups(eligible.members),
        owned=None if eligible.owned is None else of_groups(eligible.owned),
    )


def _sizes(eligible: Eligible, settings: Settings) -> DataFrame:
    """Classify each group: GROUP_KEY and kind string, a field of ``GroupsBySize``."""
    keys = list(GROUP_KEY)
    partitions = (
        subscribed_topics(eligible).groupBy(*keys).agg(F.sum("num_partitions").alias("partitions"))
    )
    sized = eligible.groups.select(*keys, "is_homogeneous").join(partitions, on=keys, how="left")
    if eligible.heterogeneous:
        edges = eligible.members.groupBy(*keys).agg(F.sum(F.size("topics")).alias("edges"))
        sized = sized.join(edges, on=keys, how="inner")
    else:
        sized = sized.withColumn("edges", F.lit(0))
    if eligible.has_racks:
        use = rack_use(eligible)
        matters = F.expr("if(is_homogeneous, by_group, can_mismatch)").alias("by_racks")
        sized = sized.join(use.select(*keys, matters), on=keys, how="left")
    else:
        sized = sized.withColumn("by_racks", F.lit(False))
    auto = "true" if settings.engine == "auto" else "false"
    kind = f"""case
        when coalesce(by_racks, false) and is_homogeneous then 'fitting'
        when {auto} and {BYTES_OF_A_PARTITION} * coalesce(partitions, 0)
            + if(is_homogeneous, 0, {BYTES_OF_A_PAIR} * edges) <= {settings.bytes_per_task}
            then 'fitting'
        when is_homogeneous then 'alike'
        when by_racks then 'racked'
        else 'differing' end"""
    return sized.select(*keys, F.expr(kind).alias("kind"))


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
