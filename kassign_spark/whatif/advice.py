"""Advice for many groups in a task: each change worth trying is answered, measured and ranked."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from kassign_spark.assignors.in_tasks import KAFKAS, RANGE, assignors_of
from kassign_spark.graph.batch import class_graph, subscribed_of
from kassign_spark.graph.levels import levels
from kassign_spark.groups.batch import Batch, Claims
from kassign_spark.groups.named import group_columns
from kassign_spark.groups.numbers import Flags, Longs, place_in_run
from kassign_spark.groups.read import read_batch
from kassign_spark.whatif.candidates import INSTANCE_ID, KINDS, MEMBERS, Known, candidates
from kassign_spark.whatif.changes import NOTHING, Changes, apply_changes, pieces
from kassign_spark.whatif.evenness import Evenness, evaluate
from kassign_spark.whatif.restarts import restart_moves
from kassign_spark.whatif.sentences import change_of, ids_of, reason_of, restart_of

ADVICE = (
    "cluster_id string, group_id string, rank int, change string, detail string, "
    "assignor string, member_ids array<string>, topics array<string>, member_count int, "
    "num_partitions int, max_before bigint, max_after bigint, spread_before bigint, "
    "spread_after bigint, idle_before int, idle_after int, moved bigint, paused bigint, "
    "rounds int, gain bigint, restart_moved bigint, reason string"
)
_MOST_OF_A_KIND = 3
"""Rows of one kind of change that a group is given, the best ones."""
_COPIED_AT_ONCE = 8_000_000
"""Partitions and claims of changed copies that are answered together: some hundred bytes each."""
_SLOTS_AT_ONCE = 200_000
"""Partitions of the groups that are looked at together; there are some twenty copies of each."""


class Ranked(NamedTuple):
    """The changes that gain something, by group and rank.

    Attributes:
        known: the groups, and how they are without a change.
        kind: of each row an index into ``KINDS``.
        changes: what was tried; ``copy`` says which of them a row is.
        copy: of each row.
        group: of each row.
        rank: of each row, from 1.
        gain: of each row: by how much the largest load, the spread and the idle members go down.
        after: of all that was tried.
        restarted: of each group the member whose restart was tried; -1: none.
        restart_moved: of each group the partitions that it moves.
    """

    known: Known
    kind: Longs
    changes: Changes
    copy: Longs
    group: Longs
    rank: Longs
    gain: Longs
    after: Evenness
    restarted: Longs
    restart_moved: Longs


def advise_arrow(table: pa.Table) -> Iterator[pa.Table]:
    """Advise the groups of a task (rows of ``rows.fold``): the columns of ``ADVICE``."""
    for ranked in ranked_pieces(table):
        reasons = _reasons(ranked)
        yield _rows(ranked, reasons)
        yield _restart_rows(ranked, reasons)


def ranked_pieces(table: pa.Table) -> Iterator[Ranked]:
    """Rank the changes of the groups of a task (rows of ``rows.fold``), some groups at a time."""
    batch, claims = read_batch(table)
    size = np.bincount(batch.topic_group, batch.size, batch.group_count)
    piece = np.cumsum(size) // _SLOTS_AT_ONCE
    for number in np.unique(piece):
        yield rank_changes(*_part(batch, claims, piece == number))


def rank_changes(batch: Batch, claims: Claims) -> Ranked:
    """Try the changes of all groups, and keep those that gain something.

    The best is what gains most for each partition that moves or pauses.
    """
    assignor = assignors_of(batch)
    assignor = np.where(assignor < 0, RANGE, assignor)
    before, owner = evaluate(batch, claims, assignor)
    subscribed = subscribed_of(batch)
    graph = class_graph(subscribed)
    known = Known(batch, assignor, subscribed, graph, levels(graph), before)
    kind, changes = candidates(known)
    after = _evaluate_all(batch, claims, changes)
    group = changes.group
    gain = (before.spread[group] - after.spread) + (before.idle[group] - after.idle)
    # Any further member lowers the largest load: that alone makes a group no more even.
    gain += np.where(kind == MEMBERS, 0, before.most[group] - after.most)
    # Another number of members is of use where nobody idles and the loads are no further apart.
    fits = (after.idle == 0) & (after.spread <= np.maximum(before.spread[group], 1))
    useful = np.flatnonzero((gain > 0) & (fits | (kind != MEMBERS)))
    price = 1 + after.moved + after.paused
    order = np.lexsort((useful, -gain[useful], -(gain / price)[useful], group[useful]))
    useful = useful[order]
    # The best few of each kind.
    by_kind = np.lexsort((np.arange(len(useful)), kind[useful], group[useful]))
    run = np.unique(np.stack((group[useful], kind[useful])), axis=1, return_inverse=True)[1]
    nth = np.empty(len(useful), np.int64)
    nth[by_kind] = place_in_run(run.reshape(-1)[by_kind])
    useful = useful[nth < _MOST_OF_A_KIND]
    rank = place_in_run(group[useful]) + 1
    found = (known, kind[useful], changes, useful, group[useful], rank, gain[useful], after)
    return Ranked(*found, *restart_moves(known, owner))


def _evaluate_all(batch: Batch, claims: Claims, changes: Changes) -> Evenness:
    """Make the copies and let them be answered, so many at once as memory suffices for."""
    size = np.bincount(batch.topic_group, batch.size, batch.group_count).astype(np.int64)
    size += np.bincount(claims.group, minlength=batch.group_count)
    found = []
    for piece in pieces(changes, size[changes.group], _COPIED_AT_ONCE):
        made = apply_changes(batch, claims, piece)
        found.append(evaluate(made.batch, made.claims, piece.assignor)[0])
    columns = ([piece[number] for piece in found] for number in range(len(Evenness._fields)))
    return Evenness(*(np.concatenate([NOTHING, *column]) for column in columns))


def _part(batch: Batch, claims: Claims, groups: Flags) -> tuple[Batch, Claims]:
    """Some of the groups, and what their members claim of what exists."""
    if groups.all():
        return batch, claims
    some, members, slots = batch.part(groups)
    kept = claims.where(groups[claims.group])
    return some, Claims(
        np.where(kept.member >= 0, np.searchsorted(members, kept.member), -1),
        kept.name,
        (np.cumsum(groups) - 1)[kept.group],
        kept.topic,
        kept.partition,
        np.where(kept.slot >= 0, np.searchsorted(slots, kept.slot), -1),
    )


def _reasons(ranked: Ranked) -> dict[int, str]:
    """Say of each group that has a row why it is as it is."""
    groups = np.union1d(ranked.group, np.flatnonzero(ranked.restart_moved))
    return {int(group): reason_of(ranked.known, int(group)) for group in groups}


def _rows(ranked: Ranked, reasons: dict[int, str]) -> pa.Table:
    """Name the changes, row by row: there are a few for each group."""
    known, group, copy = ranked.known, ranked.group, ranked.copy
    batch, before, after = known.batch, known.before, ranked.after
    described = [
        change_of(known, ranked.changes, int(each), int(kind))
        for each, kind in zip(copy, ranked.kind, strict=True)
    ]
    columns = {
        **group_columns(batch, group),
        "rank": pa.array(ranked.rank, pa.int32()),
        "change": pa.array([KINDS[kind] for kind in ranked.kind], pa.string()),
        "detail": pa.array([each.detail for each in described], pa.string()),
        "assignor": pa.array([KAFKAS[n] for n in ranked.changes.assignor[copy]], pa.string()),
        "member_ids": pa.array([each.member_ids for each in described], pa.list_(pa.string())),
        "topics": pa.array([each.topics for each in described], pa.list_(pa.string())),
        "member_count": pa.array([each.member_count for each in described], pa.int32()),
        "num_partitions": pa.array([each.num_partitions for each in described], pa.int32()),
        "max_before": pa.array(before.most[group]),
        "max_after": pa.array(after.most[copy]),
        "spread_before": pa.array(before.spread[group]),
        "spread_after": pa.array(after.spread[copy]),
        "idle_before": pa.array(before.idle[group], pa.int32()),
        "idle_after": pa.array(after.idle[copy], pa.int32()),
        "moved": pa.array(after.moved[copy]),
        "paused": pa.array(after.paused[copy]),
        "rounds": pa.array(after.rounds[copy], pa.int32()),
        "gain": pa.array(ranked.gain),
        "restart_moved": pa.nulls(len(group), pa.int64()),
        "reason": pa.array([reasons[int(each)] for each in group], pa.string()),
    }
    return pa.table(columns)


def _restart_rows(ranked: Ranked, reasons: dict[int, str]) -> pa.Table:
    """The last row of each group in which a restart moves partitions; nothing else changes."""
    known, before = ranked.known, ranked.known.before
    group = np.flatnonzero(ranked.restart_moved)
    rows = np.bincount(ranked.group, minlength=known.batch.group_count)[group]
    member_ids = ids_of(known, ranked.restarted[group])
    moved = ranked.restart_moved[group]
    zeros = np.zeros(len(group), np.int64)
    columns = {
        **group_columns(known.batch, group),
        "rank": pa.array(rows + 1, pa.int32()),
        "change": pa.array([KINDS[INSTANCE_ID]] * len(group), pa.string()),
        "detail": pa.array(
            [restart_of(*each) for each in zip(member_ids, moved.tolist(), strict=True)],
            pa.string(),
        ),
        "assignor": pa.array([KAFKAS[n] for n in known.assignor[group]], pa.string()),
        "member_ids": pa.array([[each] for each in member_ids], pa.list_(pa.string())),
        "topics": pa.nulls(len(group), pa.list_(pa.string())),
        "member_count": pa.nulls(len(group), pa.int32()),
        "num_partitions": pa.nulls(len(group), pa.int32()),
        "max_before": pa.array(before.most[group]),
        "max_after": pa.array(before.most[group]),
        "spread_before": pa.array(before.spread[group]),
        "spread_after": pa.array(before.spread[group]),
        "idle_before": pa.array(before.idle[group], pa.int32()),
        "idle_after": pa.array(before.idle[group], pa.int32()),
        "moved": pa.array(zeros),
        "paused": pa.array(zeros),
        "rounds": pa.array(zeros, pa.int32()),
        "gain": pa.array(zeros),
        "restart_moved": pa.array(moved),
        "reason": pa.array([reasons[int(each)] for each in group], pa.string()),
    }
    return pa.table(columns)
