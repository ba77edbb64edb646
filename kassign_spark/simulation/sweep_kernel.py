"""Variants of the groups of a task, all side by side: other numbers of members and partitions."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from kassign_spark.assignors.in_tasks import COOPERATIVE_STICKY, assignors_of
from kassign_spark.display import plural
from kassign_spark.plans.rounds import follow
from kassign_spark.simulation.members import Member
from kassign_spark.simulation.questions import Growth, Sweep
from kassign_spark.simulation.read import read_groups
from kassign_spark.simulation.state import MOST_PARTITIONS, Group, Naming, Topic, batch_of
from kassign_spark.simulation.sweep_coordinator import sweep_coordinator
from kassign_spark.whatif.outcome import measure

SWEPT = (
    "cluster_id string, group_id string, sweep int, variant string, member_change int, "
    "partition_times int, partition_more int, member_count bigint, partition_count bigint, "
    "min_assigned bigint, max_assigned bigint, idle_count bigint, moved_count bigint, "
    "paused_count bigint, rounds int, settles boolean, detail string"
)
"""The columns of ``sweep``."""

_TYPES = {"string": pa.string(), "int": pa.int32(), "bigint": pa.int64(), "boolean": pa.bool_()}
_SCHEMA = pa.schema(
    [(name, _TYPES[of]) for name, of in (column.split() for column in SWEPT.split(", "))]
)


class Variant(NamedTuple):
    """A variant of the groups that ``asked`` is about.

    Attributes:
        sweep: number of the question, from 1.
        name: as answers show it.
        member_change: how many members more; negative: fewer.
        growth: of the topics.
        asked: the question.
    """

    sweep: int
    name: str
    member_change: int
    growth: Growth
    asked: Sweep


def sweep_arrow(
    table: pa.Table,
    *,
    variants: Sequence[Variant],
    racks_before_moves: bool = False,
    max_rounds: int = 1_000,
) -> Iterator[pa.Table]:
    """Answer all variants of the groups of a task.

    Args:
        table: rows of ``rows.fold``.
        variants: what is asked.
        racks_before_moves: as of ``Settings``.
        max_rounds: as of ``Settings``.

    Returns:
        The columns of ``SWEPT``, in pieces.
    """
    most_copies = max((variant.member_change for variant in variants), default=0)
    groups, naming = read_groups(table, copies=max(0, most_copies))
    options = {"racks_before_moves": racks_before_moves, "max_rounds": max_rounds}
    told: list[dict[str, Any]] = []
    varied: list[Group] = []
    rows: list[dict[str, Any]] = []
    partitions = 0
    for group in groups:
        for variant in variants:
            if not _is_asked(variant, group):
                continue
            row = _row(variant, group)
            told.append(row)
            if not row["member_count"]:
                row["detail"] = f"the group has only {plural(len(group.members), 'member')}"
                continue
            other = _vary(variant, group)
            count = other.partition_count()
            if count > MOST_PARTITIONS:
                row["detail"] = (
                    f"{count:,} partitions are too many: at most {MOST_PARTITIONS:,} are answered"
                )
                continue
            if group.consumer:
                row |= sweep_coordinator(group, other, naming)
                continue
            if varied and partitions + count > MOST_PARTITIONS:
                _measure(varied, rows, naming, options)
                varied, rows, partitions = [], [], 0
                yield pa.Table.from_pylist(told[:-1], _SCHEMA)
                told = [row]
            varied.append(other)
            rows.append(row)
            partitions += count
    if varied:
        _measure(varied, rows, naming, options)
    yield pa.Table.from_pylist(told, _SCHEMA)


def _is_asked(variant: Variant, group: Group) -> bool:
    asked = variant.asked
    return asked.cluster_id in (None, group.cluster_id) and asked.group_id in (None, group.group_id)


def _row(variant: Variant, group: Group) -> dict[str, Any]:
    return {
        "cluster_id": group.cluster_id,
        "group_id": group.group_id,
        "sweep": variant.sweep,
        "variant": variant.name,
        "member_change": variant.member_change,
        "partition_times": variant.growth.times,
        "partition_more": variant.growth.more,
        "member_count": max(0, len(group.members) + variant.member_change),
    }


def _vary(variant: Variant, group: Group) -> Group:
    """Leave members out, or add copies, by turns; let topics grow."""
    members, change = group.members, variant.member_change
    copies = [
        _copy(members[(number - 1) % len(members)], number) for number in range(1, change + 1)
    ]
    grows = variant.asked.topic
    return Group(
        group.cluster_id,
        group.group_id,
        members=[*members[: len(members) + min(0, change)], *copies],
        topics={
            name: _grown(topic, variant.growth) if grows in (None, name) else topic
            for name, topic in group.topics.items()
        },
        owned=group.owned,
        target=group.target,
        target_is_ordered=group.target_is_ordered,
    )


def _copy(member: Member, number: int) -> Member:
    """A new member that subscribes as one that is there, and knows of nothing that it owns."""
    instance = None if member.instance is None else f"{member.instance}+{number}"
    name = f"{member.member_id}+{number}"
    return replace(member, member_id=name, instance=instance, generation=None, seq=None)


def _grown(topic: Topic, growth: Growth) -> Topic:
    size = topic.size * growth.times + growth.more
    # The racks of partitions that are yet to be made are not known.
    return topic._replace(size=size, racks=topic.racks if size == topic.size else None)


def _measure(
    groups: list[Group], rows: list[dict[str, Any]], naming: Naming, options: dict[str, Any]
) -> None:
    """Follow the rebalances of the groups, and fill in the rows what they lead to."""
    drawn = batch_of(groups, naming)
    batch = drawn.batch
    assignor = assignors_of(batch)
    found = follow(batch, drawn.claims, assignor, assignor == COOPERATIVE_STICKY, **options)
    measured = measure(batch, drawn.claims, found.steps)
    load = np.bincount(found.owner[found.owner >= 0], minlength=len(batch.member_group))
    idle = np.bincount(batch.member_group[load == 0], minlength=batch.group_count)
    # Without any step there is no round.
    has_steps = np.zeros(batch.group_count, bool)
    has_steps[batch.member_group[found.steps.member]] = True
    columns = {
        "partition_count": measured.partition_count,
        "min_assigned": measured.least,
        "max_assigned": measured.most,
        "idle_count": idle,
        "moved_count": measured.moved,
        "paused_count": measured.paused,
        "rounds": np.where(has_steps, measured.rounds, 0),
        "settles": measured.settles,
    }
    for name, values in columns.items():
        for row, value in zip(rows, values.tolist(), strict=True):
            row[name] = value
