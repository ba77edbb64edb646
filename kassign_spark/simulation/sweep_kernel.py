"""Variants of the groups of a task, all side by side: other numbers of members and partitions."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from kassign_spark.assignors.in_tasks import COOPERATIVE_STICKY, assignors_of
from kassign_spark.client.group_state import FAILING
from kassign_spark.coordinator.reconcile import NEVER
from kassign_spark.display import plural
from kassign_spark.groups.group_names import schema_of
from kassign_spark.groups.numbers import dense, names
from kassign_spark.limits import PARTITIONS_OF_A_GROUP
from kassign_spark.plans.exact import misled_groups
from kassign_spark.plans.rebalance_rounds import follow
from kassign_spark.results import columns_of
from kassign_spark.simulation.consumer import DRAWS, MOST_DRAWN, begin, describe_draws
from kassign_spark.simulation.consumer_decisions import to_group_member, topics_of
from kassign_spark.simulation.group_reading import read_groups
from kassign_spark.simulation.members import Member
from kassign_spark.simulation.questions import Growth, Sweep
from kassign_spark.simulation.rebalance_timeline import draw_id
from kassign_spark.simulation.simulated_group import Group, Naming, Topic, batch_of
from kassign_spark.whatif.outcome import measure

SWEPT = columns_of("sweep")
_SCHEMA = schema_of(SWEPT)
_WORK_AT_ONCE = 2_000_000
"""Partitions and members of the variants that are answered side by side."""


class Variant(NamedTuple):
    """A variant of the groups that ``asked``, the question number ``sweep`` from 1, is about."""

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
    """Compute all variants of the groups of a task, rows of ``rows.fold``: ``SWEPT``, in pieces."""
    options = {"racks_before_moves": racks_before_moves, "max_rounds": max_rounds}
    copies = max([0, *(variant.member_change for variant in variants)])
    for piece in _pieces(table, copies):
        yield from _sweep(piece, variants, copies, options)


def _pieces(table: pa.Table, copies: int) -> Iterator[pa.Table]:
    """Cut a task where copies of the members of all its groups would be too many at once."""
    cluster, group = names(table["cluster_id"]), names(table["group_id"])
    first, number = dense(cluster.code, group.code)
    at_once = max(1, _WORK_AT_ONCE // max(1, copies))
    if len(first) <= at_once:
        yield table
        return
    for start in range(0, len(first), at_once):
        yield table.filter(pa.array((number >= start) & (number < start + at_once)))


def _sweep(
    table: pa.Table, variants: Sequence[Variant], copies: int, options: dict[str, Any]
) -> Iterator[pa.Table]:
    """Compute all variants of whole groups."""
    groups, naming = read_groups(table, copies=copies)
    answers: list[dict[str, Any]] = []
    varied: list[Group] = []
    rows: list[dict[str, Any]] = []
    work = 0
    for group in groups:
        for variant in variants:
            if not _is_asked(variant, group):
                continue
            row = _row(variant, group)
            answers.append(row)
            if not row["member_count"]:
                row["detail"] = f"the group has only {plural(len(group.members), 'member')}"
                continue
            other = _vary(variant, group)
            count = other.partition_count()
            if count > PARTITIONS_OF_A_GROUP:
                row["detail"] = (
                    f"{count:,} partitions are too many: at most {PARTITIONS_OF_A_GROUP:,} are "
                    "answered"
                )
                continue
            if group.consumer:
                row |= _sweep_consumers(group, other, naming)
                continue
            count += row["member_count"]
            if varied and work + count > _WORK_AT_ONCE:
                _measure(varied, rows, naming, options)
                varied, rows, work = [], [], 0
                yield pa.Table.from_pylist(answers[:-1], _SCHEMA)
                answers = [row]
            varied.append(other)
            rows.append(row)
            work += count
    if varied:
        _measure(varied, rows, naming, options)
    yield pa.Table.from_pylist(answers, _SCHEMA)


def _is_asked(variant: Variant, group: Group) -> bool:
    sweep = variant.asked
    return sweep.cluster_id in (None, group.cluster_id) and sweep.group_id in (None, group.group_id)


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
    """Remove members, or add copies, in turn; grow topics."""
    members, change = group.members, variant.member_change
    copies = [
        _copy(members[(number - 1) % len(members)], number) for number in range(1, change + 1)
    ]
    grows = variant.asked.topic
    return replace(
        group,
        members=[*members[: len(members) + min(0, change)], *copies],
        topics={
            name: _grown(topic, variant.growth) if grows in (None, name) else topic
            for name, topic in group.topics.items()
        },
    )


def _copy(member: Member, number: int) -> Member:
    """Return a new member that subscribes as a present one, and owns nothing."""
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
    batch, claims, _ = batch_of(groups, naming)
    assignor = assignors_of(batch)
    followed = follow(batch, claims, assignor, assignor == COOPERATIVE_STICKY, **options)
    outcomes = measure(batch, claims, followed.steps)
    load = np.bincount(followed.owner[followed.owner >= 0], minlength=len(batch.member_group))
    idle = np.bincount(batch.member_group[load == 0], minlength=batch.group_count)
    # Without any step there is no round.
    has_steps = np.zeros(batch.group_count, bool)
    has_steps[batch.member_group[followed.steps.member]] = True
    columns = {
        "partition_count": outcomes.partition_count,
        "min_assigned": outcomes.least,
        "max_assigned": outcomes.most,
        "idle_count": idle,
        "moved_count": outcomes.moved,
        "paused_count": outcomes.paused,
        "rounds": np.where(has_steps, outcomes.rounds, 0),
        "settles": outcomes.settles,
    }
    for name, values in columns.items():
        for row, value in zip(rows, values.tolist(), strict=True):
            row[name] = value
    misled = misled_groups(batch, claims, batch.generation, assignor)
    for number, (verdict, detail) in misled.items():
        rows[number]["detail"] = detail
        if verdict in FAILING:
            rows[number] |= dict.fromkeys(columns) | {"settles": False}


def _sweep_consumers(group: Group, other: Group, naming: Naming) -> dict[str, Any]:
    """Compute a variant of a group of the new protocol: the columns of the outcome.

    Members of the variant (``other``) that the group lacks draw their ids.
    """
    present = {member.member_id for member in group.members}
    stay = {member.member_id for member in other.members}
    fresh = [member for member in other.members if member.member_id not in present]
    first = begin(group, naming)
    first.before = dict(first.owned)
    timelines = [first]
    if fresh and other.partition_count() <= MOST_DRAWN:
        timelines += [first.copy(salt) for salt in range(1, DRAWS + 1)]
    topics = topics_of(other)
    for timeline in timelines:
        timeline.leave(sorted(present - stay))
        timeline.change_topics(topics)
        for member in fresh:
            key = (group.cluster_id, group.group_id, member.member_id, timeline.salt)
            timeline.join(member.member_id, to_group_member(member, draw_id(*key)))
    outcome, *_ = [
        timeline.compute(None)
        if timeline.life.group_epoch > timeline.life.assignment_epoch
        else None
        for timeline in timelines
    ]
    details = [] if outcome is None or outcome.detail is None else [outcome.detail]
    if fresh:
        details.append(describe_draws([member.member_id for member in fresh], timelines))
    followed, _ = first.reconcile()
    loads, moved, _ = first.spread()
    paused = followed.is_held & (followed.changed_in != NEVER)
    return {
        "partition_count": sum(loads),
        "min_assigned": loads[0],
        "max_assigned": loads[-1],
        "idle_count": loads.count(0),
        "moved_count": moved,
        "paused_count": int(paused.sum()),
        "rounds": followed.round_count,
        "settles": outcome is None or outcome.verdict != "never_settles",
        "detail": "; ".join(details) or None,
    }
