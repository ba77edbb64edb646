"""Advice for many groups in a task: each change worth trying is answered, measured and ranked."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from kassign_spark.assignors.in_tasks import KAFKAS, RANGE, assignors_of, part_of
from kassign_spark.graph.class_batch import class_graph, subscribed_of
from kassign_spark.graph.levels import levels
from kassign_spark.groups.batch import Batch, Claims
from kassign_spark.groups.group_names import group_columns, with_nulls
from kassign_spark.groups.numbers import Flags, Longs, key, place_in_run, rows_by
from kassign_spark.groups.read import read_batch
from kassign_spark.plans.exact import misled_groups
from kassign_spark.plans.rebalance_rounds import claims_of_owners
from kassign_spark.results import columns_of
from kassign_spark.whatif.advice_sentences import (
    Described,
    change_of,
    ids_of,
    reason_of,
    restart_of,
)
from kassign_spark.whatif.candidates import INSTANCE_ID, KINDS, MEMBERS, GroupFacts, candidates
from kassign_spark.whatif.changes import NOTHING, Changes, apply_changes, pieces
from kassign_spark.whatif.evenness import Evenness, evaluate

ADVICE = columns_of("advise")
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
        misled: of groups in which Kafka's client is misled by claims, what it does.
    """

    facts: GroupFacts
    kind: Longs
    changes: Changes
    copy: Longs
    group: Longs
    rank: Longs
    gain: Longs
    after: Evenness
    restarted: Longs
    restart_moved: Longs
    misled: dict[int, str | None]


def advise_arrow(table: pa.Table) -> Iterator[pa.Table]:
    """Advise the groups of a task (rows of ``rows.fold``): the columns of ``ADVICE``."""
    for ranked in ranked_pieces(table):
        groups = np.union1d(ranked.group, np.flatnonzero(ranked.restart_moved)).tolist()
        reasons = {group: reason_of(ranked.facts, group) for group in groups}
        for group in ranked.misled.keys() & reasons.keys():
            reasons[group] += f"; Kafka's own client does something else: {ranked.misled[group]}"
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
    facts = GroupFacts(batch, assignor, subscribed, graph, levels(graph), before)
    kind, changes = candidates(facts)
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
    run = key(group[useful], kind[useful])
    by_kind = np.argsort(run, kind="stable")
    nth = np.empty(len(useful), np.int64)
    nth[by_kind] = place_in_run(run[by_kind])
    useful = useful[nth < _MOST_OF_A_KIND]
    rank = place_in_run(group[useful]) + 1
    columns = (facts, kind[useful], changes, useful, group[useful], rank, gain[useful], after)
    misled = misled_groups(batch, claims, batch.generation, assignor)
    details = {group: detail for group, (_, detail) in misled.items()}
    return Ranked(*columns, *_restart_moves(facts, owner), details)


def _evaluate_all(batch: Batch, claims: Claims, changes: Changes) -> Evenness:
    """Make the copies and let them be answered, as many together as fit in memory."""
    size = np.bincount(batch.topic_group, batch.size, batch.group_count).astype(np.int64)
    size += np.bincount(claims.group, minlength=batch.group_count)
    parts = []
    for piece in pieces(changes, size[changes.group], _COPIED_AT_ONCE):
        changed, kept, _ = apply_changes(batch, claims, piece)
        parts.append(evaluate(changed, kept, piece.assignor)[0])
    nothing = Evenness(*(NOTHING for _ in Evenness._fields))
    return Evenness(*map(np.concatenate, zip(nothing, *parts, strict=True)))


def _restart_moves(facts: GroupFacts, owner: Longs) -> tuple[Longs, Longs]:
    """Restart the most loaded dynamic member of each group, from what its assignor has given.

    It leaves, and comes back under another id. One that has a ``group.instance.id`` would keep its
    partitions where it comes back within ``session.timeout.ms`` (KIP-345).

    Returns:
        of each group the member, -1 where none is restarted: all are static, or it is alone, or
        nobody else reads some topic; and how many partitions move, when it leaves and when it comes
        back together.
    """
    batch = facts.batch
    member = _choose_restarted(facts)
    moved = np.zeros(batch.group_count, np.int64)
    groups = np.flatnonzero(member >= 0)
    if not len(groups):
        return member, moved
    copies = np.arange(len(groups))
    leaves = Changes(groups, facts.assignor[groups], dropped=copies, dropped_member=member[groups])
    owner_claims = claims_of_owners(batch, np.arange(len(owner)), owner)
    without, left_over, _ = apply_changes(batch, owner_claims, leaves)
    left, owner_meanwhile = evaluate(without, left_over, leaves.assignor)
    returns = leaves._replace(added=copies, added_like=member[groups])
    again, _, is_new = apply_changes(batch, owner_claims.where(NOTHING), returns)
    # Members but for the new one, and partitions, are in the same order as before.
    others = np.flatnonzero(~is_new)
    claims = claims_of_owners(again, np.arange(len(owner_meanwhile)), others[owner_meanwhile])
    back, _ = evaluate(again, claims, leaves.assignor)
    moved[groups] = left.moved + back.moved
    return member, moved


def _choose_restarted(facts: GroupFacts) -> Longs:
    """Return the most loaded dynamic member of each group that can be spared; the first by name."""
    batch = facts.batch
    readers = batch.subscribers
    alone = np.zeros(len(batch.member_group), bool)
    alone[readers.member[readers.first[readers.size == 1]]] = True
    can = np.flatnonzero((batch.instance == 0) & (facts.before.load > 0))
    can = can[rows_by(batch.member_group[can], -facts.before.load[can])]
    groups, first = np.unique(batch.member_group[can], return_index=True)
    member = np.full(batch.group_count, -1)
    member[groups] = can[first]
    return np.where(alone[member], -1, member)


def _part(batch: Batch, claims: Claims, groups: Flags) -> tuple[Batch, Claims]:
    """Return some of the groups, and their members' claims of existing partitions."""
    if groups.all():
        return batch, claims
    subset, members, slots = batch.part(groups)
    is_here = claims.member[groups[claims.group]] >= 0
    kept = part_of(claims, groups, members, slots)
    return subset, replace(kept, member=np.where(is_here, kept.member, -1))


def _rows(ranked: Ranked, reasons: dict[int, str]) -> pa.Table:
    """Name the changes, row by row: there are a few for each group."""
    facts, copy, after = ranked.facts, ranked.copy, ranked.after
    described = [
        change_of(facts, ranked.changes, int(number), int(kind))
        for number, kind in zip(copy, ranked.kind, strict=True)
    ]
    return _table(
        facts,
        ranked.group,
        reasons,
        rank=ranked.rank,
        change=[KINDS[kind] for kind in ranked.kind],
        assignor=[KAFKAS[number] for number in ranked.changes.assignor[copy]],
        max_after=after.most[copy],
        spread_after=after.spread[copy],
        idle_after=after.idle[copy],
        moved=after.moved[copy],
        paused=after.paused[copy],
        rounds=after.rounds[copy],
        gain=ranked.gain,
        **{
            name: [getattr(description, name) for description in described]
            for name in Described._fields
        },
    )


def _restart_rows(ranked: Ranked, reasons: dict[int, str]) -> pa.Table:
    """Return the last row of each group in which a restart alone moves partitions."""
    facts, before = ranked.facts, ranked.facts.before
    group = np.flatnonzero(ranked.restart_moved)
    rows = np.bincount(ranked.group, minlength=facts.batch.group_count)[group]
    member_ids = ids_of(facts, ranked.restarted[group])
    moved = ranked.restart_moved[group]
    return _table(
        facts,
        group,
        reasons,
        rank=rows + 1,
        change=[KINDS[INSTANCE_ID]] * len(group),
        detail=[restart_of(*each) for each in zip(member_ids, moved.tolist(), strict=True)],
        assignor=[KAFKAS[number] for number in facts.assignor[group]],
        member_ids=[[each] for each in member_ids],
        max_after=before.most[group],
        spread_after=before.spread[group],
        idle_after=before.idle[group],
        restart_moved=moved,
        **dict.fromkeys(("moved", "paused", "rounds", "gain"), np.zeros(len(group), np.int64)),
    )


def _table(facts: GroupFacts, group: Longs, reasons: dict[int, str], **columns: Any) -> pa.Table:
    """Return the columns of ``ADVICE`` for rows of these groups; null what is not given."""
    before = facts.before
    columns |= {
        "max_before": before.most[group],
        "spread_before": before.spread[group],
        "idle_before": before.idle[group],
        "reason": [reasons[number] for number in group.tolist()],
    }
    return with_nulls(ADVICE, group_columns(facts.batch, group) | columns)
