"""The way of the groups of a task to the other protocol: from rows to rows."""

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from kassign_spark.assignors.in_tasks import KAFKAS
from kassign_spark.coordinator.migration import Change
from kassign_spark.coordinator.state import NOBODY, ConsumerGroupState
from kassign_spark.groups.batch import Batch
from kassign_spark.groups.named import group_columns
from kassign_spark.groups.numbers import Flags, Longs
from kassign_spark.groups.read import read_batch
from kassign_spark.whatif.coordinator_states import GroupStates
from kassign_spark.whatif.migration_rows import (
    Beside,
    name_of,
    order_of,
    owners_of,
    read_beside,
    state_of,
)
from kassign_spark.whatif.migration_rules import (
    CLASSIC,
    CONSUMER,
    BrokerRules,
    Facts,
    Judgement,
    judge,
)
from kassign_spark.whatif.migration_walks import Walk, downgrade, in_batch, slots_of, upgrade
from kassign_spark.whatif.outcome import crosses

MIGRATED = (
    "cluster_id string, group_id string, verdict string, way string, detail string, "
    "member_count int, static_count int, step_count int, moved bigint, paused bigint, "
    "end_moved bigint, next_moved bigint, cross_rack_before bigint, cross_rack_after bigint, "
    "steps array<struct<step: int, member_id: string, event: string, group_type: string, "
    "is_rebalance: boolean, moved: bigint, paused: bigint, unread: bigint, "
    "pausing_members: array<string>, may_lose_members: array<string>, moves: "
    "array<struct<topic: string, partition: int, from_member_id: string, to_member_id: string>>>>"
)
"""What ``migrate_arrow`` gives, one row a group."""


def migrate_arrow(
    table: pa.Table, *, to: str, assignor: str, rules: BrokerRules, is_owned: bool = True
) -> Iterator[pa.Table]:
    """Follow each group to the protocol ``to``: ``MIGRATED``.

    Args:
        table: rows of ``rows.fold``, and of the kinds of ``migration_rows``.
        to: `consumer` or `classic`.
        assignor: that the group is to have then.
        rules: of the broker.
        is_owned: whether anything is known of what is owned.
    """
    batch, claims = read_batch(table)
    if not batch.group_count:
        return
    beside = read_beside(table)
    owner = owners_of(batch, claims)
    groups = range(batch.group_count)
    known = GroupStates(table, batch)
    states = [state_of(batch, group, known) for group in groups]
    orders = [order_of(batch, group, beside) for group in groups]
    if to == CONSUMER:
        walks = upgrade(batch, owner, states, orders, assignor)
    else:
        walks = downgrade(batch, owner, states, orders, KAFKAS.index(assignor))
    ends = owner.copy()
    for group, walk in enumerate(walks):
        ends[slots_of(batch, group)] = in_batch(batch, group, walk.changes[-1].after)
    crossing = [_cross_racks(batch, of) for of in (owner, ends)]
    lost = crossing[1] - crossing[0]
    facts = [
        _facts(batch, group, to, assignor, beside, walks[group], int(lost[group]) * is_owned)
        for group in groups
    ]
    judged = [judge(of, rules) for of in facts]
    steps = [_steps(states[group], walks[group], to) for group in groups]
    yield _table(batch, walks, judged, crossing, steps, is_owned=is_owned)


def _cross_racks(batch: Batch, owner: Longs) -> Longs:
    held = np.flatnonzero(owner != NOBODY)
    across = held[crosses(batch, owner[held], held)]
    counts: Longs = np.bincount(batch.slot_group[across], minlength=batch.group_count)
    return counts


def _facts(
    batch: Batch,
    group: int,
    to: str,
    assignor: str,
    beside: Beside,
    walk: Walk,
    lost_locality: int,
) -> Facts:
    first, end = batch.first_member[group : group + 2]
    codes = np.unique(batch.assignor[first:end])
    own = batch.texts.take(pa.array(codes - 1, mask=codes == 0)).to_pylist()
    said = sorted(beside.said.get(name_of(batch, group), {}).items())
    patterns = {
        (of[0], of[1]): (member, of[0], of[1]) for member, of in reversed(said) if of[0] and of[1]
    }
    return Facts(
        to,
        assignor,
        own,
        int(end - first),
        patterns=[patterns[key] for key in sorted(patterns)],
        regexes=[member for member, of in said if of[2]],
        clients=sorted(beside.clients.get(name_of(batch, group), [])),
        lost_locality=lost_locality,
        shared_counts=_in_step(batch, group) if own == ["range"] else (),
        failing=walk.verdicts,
        is_single=bool(end - first == 1 and not batch.instance[first]),
    )


def _in_step(batch: Batch, group: int) -> list[str]:
    """Topics that all members read and that have as many partitions as another one, by name."""
    if not batch.is_alike[group] or batch.first_member[group + 1] - batch.first_member[group] < 2:
        return []
    topics = slice(*batch.first_topic[group : group + 2])
    _, number, counts = np.unique(batch.size[topics], return_inverse=True, return_counts=True)
    shared = np.flatnonzero(counts[number] > 1)
    names: list[str] = batch.topic_names.take(
        pa.array(batch.topic_name[topics][shared] - 1)
    ).to_pylist()
    return names


def _steps(state: ConsumerGroupState, walk: Walk, to: str) -> pa.StructArray:
    """Name what a walk does: the elements of ``steps``."""
    ids = pa.array(state.member_ids, pa.string())
    changes = walk.changes
    moves = [change.moves for change in changes]
    paused = [np.unique(change.before[change.pauses]) for change in changes]
    losing = [_may_lose(change, place, walk, to) for place, change in enumerate(changes)]
    return pa.StructArray.from_arrays(
        [
            pa.array(np.arange(1, len(changes) + 1, dtype=np.int32)),
            ids.take(pa.array([change.member for change in changes], pa.int64())),
            pa.array([change.event for change in changes], pa.string()),
            pa.array([CONSUMER if new else CLASSIC for new in walk.is_consumer], pa.string()),
            pa.array([change.is_rebalance for change in changes], pa.bool_()),
            pa.array([len(of) for of in moves], pa.int64()),
            pa.array([int(change.pauses.sum()) for change in changes], pa.int64()),
            pa.array([change.unread for change in changes], pa.int64()),
            _lists(paused, ids.take(pa.array(_joined(paused)))),
            _lists(losing, ids.take(pa.array(_joined(losing)))),
            _lists(moves, _named_moves(state, changes, moves, ids)),
        ],
        names=["step", "member_id", "event", "group_type", "is_rebalance", "moved", "paused",
               "unread", "pausing_members", "may_lose_members", "moves"],
    )  # fmt: skip


def _may_lose(change: Change, place: int, walk: Walk, to: str) -> Longs:
    """Who is told `onPartitionsLost` if the group goes back while a change is unfinished.

    Classic members that are behind are refused with ILLEGAL_GENERATION at that moment. Where every
    step settles before the next one, nobody is.
    """
    was_consumer = place > 0 and walk.is_consumer[place - 1]
    if to == CONSUMER or walk.is_consumer[place] or not was_consumer:
        return np.zeros(0, np.int64)
    held = np.unique(change.before[change.before != NOBODY])
    staying: Longs = held[held != change.member]
    return staying


def _named_moves(
    state: ConsumerGroupState, changes: Sequence[Change], moves: Sequence[Longs], ids: pa.Array
) -> pa.StructArray:
    sizes = np.asarray(state.num_partitions, np.int64)
    first = np.cumsum(sizes) - sizes
    slots = _joined(moves)
    topic = np.repeat(np.arange(len(sizes)), sizes)[slots]
    of, to = (
        _joined([getattr(change, name)[at] for change, at in zip(changes, moves, strict=True)])
        for name in ("before", "after")
    )
    return pa.StructArray.from_arrays(
        [
            pa.array(state.topics, pa.string()).take(pa.array(topic)),
            pa.array((slots - first[topic]).astype(np.int32)),
            ids.take(pa.array(of)),
            ids.take(pa.array(to)),
        ],
        names=["topic", "partition", "from_member_id", "to_member_id"],
    )


def _joined(parts: Sequence[Longs]) -> Longs:
    joined: Longs = np.concatenate([np.zeros(0, np.int64), *parts])
    return joined


def _lists(parts: Sequence[Longs] | Sequence[pa.Array], values: pa.Array) -> pa.ListArray:
    ends = np.concatenate(([0], np.cumsum([len(part) for part in parts])))
    return pa.ListArray.from_arrays(pa.array(ends, pa.int32()), values)


def _table(
    batch: Batch,
    walks: Sequence[Walk],
    judged: Sequence[Judgement],
    crossing: Sequence[Longs],
    steps: Sequence[pa.StructArray],
    *,
    is_owned: bool,
) -> pa.Table:
    def numbers(values: Sequence[int] | Longs, *, known: bool = True) -> pa.Array:
        mask = np.full(len(values), not known)
        return pa.array(np.asarray(values, np.int64), mask=mask)

    def total(of: Flags | Longs) -> Longs:
        return np.bincount(batch.member_group[of], minlength=batch.group_count)

    has_racks = batch.racks is not None and is_owned
    changes = [walk.changes for walk in walks]
    end_moved = [
        int(((of[0].before != of[-1].after) & (of[0].before != NOBODY)).sum()) for of in changes
    ]
    return pa.table(
        {
            **group_columns(batch, np.arange(batch.group_count)),
            "verdict": pa.array([of.verdict for of in judged], pa.string()),
            "way": pa.array([of.way for of in judged], pa.string()),
            "detail": pa.array([of.detail for of in judged], pa.string()),
            "member_count": pa.array(np.diff(batch.first_member).astype(np.int32)),
            "static_count": pa.array(total(batch.instance > 0).astype(np.int32)),
            "step_count": pa.array(np.array([len(of) for of in changes], np.int32)),
            "moved": numbers([sum(len(c.moves) for c in of) for of in changes], known=is_owned),
            "paused": numbers(
                [sum(int(c.pauses.sum()) for c in of) for of in changes], known=is_owned
            ),
            "end_moved": numbers(end_moved, known=is_owned),
            "next_moved": numbers([walk.next_moved for walk in walks], known=is_owned),
            "cross_rack_before": numbers(crossing[0], known=has_racks),
            "cross_rack_after": numbers(crossing[1], known=has_racks),
            "steps": _lists(steps, pa.concat_arrays(steps)),
        }
    )
