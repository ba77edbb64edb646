"""The way of the groups of a task to the other protocol: from rows to rows."""

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kassign_spark.assignors.in_tasks import KAFKAS
from kassign_spark.client_libraries import JAVA
from kassign_spark.coordinator.migration import Change
from kassign_spark.coordinator.target_state import NOBODY, ConsumerGroupState
from kassign_spark.groups.batch import Batch, Claims
from kassign_spark.groups.coordinator_states import GroupStates
from kassign_spark.groups.group_names import group_columns, member_ids, with_nulls
from kassign_spark.groups.numbers import Longs, rows_by
from kassign_spark.groups.read import read_batch
from kassign_spark.plans.rebalance_rounds import claims_of_owners
from kassign_spark.results import RESULTS, columns_of
from kassign_spark.whatif.migration_rules import (
    CLASSIC,
    CONSUMER,
    BrokerRules,
    Facts,
    Judgement,
    judge,
)
from kassign_spark.whatif.migration_walks import (
    Walk,
    downgrade,
    slots_of,
    to_batch_members,
    upgrade,
)
from kassign_spark.whatif.outcome import crossing_now

DECLARED, ORDER, CLIENT = range(30, 33)
"""Kinds of rows beside those of ``rows.fold``.

DECLARED: member_id, texts: a list of its pattern, what RE2/J makes of that, its regex;
ORDER: member_id, number: its place among the restarts;
CLIENT: texts: what is wrong with a client of the group.
"""

_STEP = {name: kind for name, kind in RESULTS["migrate.steps"].items() if name != "group_id"}
_FIELDS = ", ".join(f"{name}: {kind}" for name, kind in _STEP.items())
_VERDICTS = columns_of("migrate.verdicts")
MIGRATED = f"{_VERDICTS}, steps array<struct<{_FIELDS}>>"
"""Columns that ``migrate_arrow`` returns, one row per group."""


@dataclass(frozen=True, slots=True)
class _Beside:
    """The facts of a group from rows of further kinds."""

    patterns: dict[str, list[str | None]] = field(default_factory=dict)
    places: dict[str, int] = field(default_factory=dict)
    clients: list[str] = field(default_factory=list)


def migrate_arrow(
    table: pa.Table, *, to: str, assignor: str, rules: BrokerRules, is_owned: bool = True
) -> Iterator[pa.Table]:
    """Follow each group to the protocol ``to``: ``MIGRATED``.

    Args:
        table: rows of ``rows.fold``, and of the kinds of this module.
        to: `consumer` or `classic`.
        assignor: that the group is to have then.
        rules: of the broker.
        is_owned: whether there is a table owned.
    """
    batch, claims = read_batch(table)
    if not batch.group_count:
        return
    groups = range(batch.group_count)
    names = group_columns(batch, np.array(groups))
    by_name = _read_beside(table)
    beside = [
        by_name[name]
        for name in zip(*(column.to_pylist() for column in names.values()), strict=True)
    ]
    owner = _owners(batch, claims)
    group_states = GroupStates(table, batch)
    states = [_state(batch, group, group_states) for group in groups]
    orders = [_order(batch, group, beside[group].places) for group in groups]
    if to == CONSUMER:
        walks = upgrade(batch, owner, states, orders, assignor)
    else:
        walks = downgrade(batch, owner, states, orders, KAFKAS.index(assignor))
    ends = owner.copy()
    for group, walk in enumerate(walks):
        ends[slots_of(batch, group)] = to_batch_members(batch, group, walk.changes[-1].after)
    slots = np.arange(len(owner))
    crossing = [
        crossing_now(batch, claims_of_owners(batch, slots, owners)) for owners in (owner, ends)
    ]
    lost = crossing[1] - crossing[0]
    facts = [
        _facts(batch, group, to, assignor, beside[group], walks[group], int(lost[group]) * is_owned)
        for group in groups
    ]
    judged = [judge(group_facts, rules) for group_facts in facts]
    steps = [_steps(states[group], walks[group], to) for group in groups]
    yield _table(batch, walks, judged, crossing, steps, is_owned=is_owned)


def _read_beside(table: pa.Table) -> defaultdict[tuple[str, str], _Beside]:
    """Read the rows of the kinds of this module, by cluster and group."""
    beside: defaultdict[tuple[str, str], _Beside] = defaultdict(_Beside)
    columns = ("kind", "cluster_id", "group_id", "member_id", "number", "texts")
    kinds = pa.array([DECLARED, ORDER, CLIENT], pa.int8())
    rows = table.select(columns).filter(pc.is_in(table["kind"], kinds))
    for kind, cluster, group, member, number, texts in zip(
        *(rows[name].to_pylist() for name in columns), strict=True
    ):
        if kind == DECLARED:
            beside[cluster, group].patterns[member] = json.loads(texts)
        elif kind == ORDER:
            beside[cluster, group].places[member] = number
        else:
            beside[cluster, group].clients.append(texts)
    return beside


def _owners(batch: Batch, claims: Claims) -> Longs:
    """Return the claimant of each slot: of several the first by id."""
    known_claims = claims.where((claims.slot >= 0) & (claims.member >= 0))
    owner = np.full(int(batch.first_slot[-1]), NOBODY)
    order = np.argsort(-known_claims.member, kind="stable")
    owner[known_claims.slot[order]] = known_claims.member[order]
    return owner


def _state(batch: Batch, group: int, states: GroupStates) -> ConsumerGroupState:
    """Return a converted group as the coordinator sees it, before any target."""
    members = np.arange(*batch.first_member[group : group + 2])
    state = states.of(group, members)
    return replace(state, votes=states.votes(members), is_order_known=False)


def _order(batch: Batch, group: int, places: Mapping[str, int]) -> Longs:
    """Order a group's members for their restarts: as asked, then static ones before others."""
    members = np.arange(*batch.first_member[group : group + 2])
    ids = member_ids(batch, members).to_pylist()
    last = max(places.values(), default=0) + 1
    positions = [places.get(member, last) for member in ids]
    return rows_by(np.array(positions, np.int64), batch.rank[members])


def _shared_instances(batch: Batch, codes: Longs) -> list[str]:
    """Return each group.instance.id that several members of a group have."""
    names_used, counts = np.unique(codes[codes > 0], return_counts=True)
    shared: list[str] = batch.texts.take(pa.array(names_used[counts > 1] - 1)).to_pylist()
    return sorted(shared)


def _facts(
    batch: Batch,
    group: int,
    to: str,
    assignor: str,
    beside: _Beside,
    walk: Walk,
    lost_locality: int,
) -> Facts:
    first, end = batch.first_member[group : group + 2]
    own, families = (
        _texts_of(batch, np.unique(of_members[first:end]))
        for of_members in (batch.assignor, batch.client)
    )
    of_members = sorted(beside.patterns.items())
    patterns = {
        (stated[0], stated[1]): (member, stated[0], stated[1])
        for member, stated in reversed(of_members)
        if stated[0] and stated[1]
    }
    return Facts(
        to,
        assignor,
        own,
        int(end - first),
        patterns=[patterns[key] for key in sorted(patterns)],
        regexes=[member for member, stated in of_members if stated[2]],
        clients=sorted(beside.clients),
        lost_locality=lost_locality,
        shared_counts=_topics_in_step(batch, group) if own == ["range"] else (),
        failing=walk.verdicts,
        shared_instances=_shared_instances(batch, batch.instance[first:end]),
        client_families=sorted({family or JAVA for family in families}),
        is_single=bool(end - first == 1 and not batch.instance[first]),
    )


def _texts_of(batch: Batch, codes: Longs) -> list[str | None]:
    texts: list[str | None] = batch.texts.take(pa.array(codes - 1, mask=codes == 0)).to_pylist()
    return texts


def _topics_in_step(batch: Batch, group: int) -> list[str]:
    """Return topics that all members read and whose partition count is not unique, by name."""
    if not batch.is_alike[group] or batch.first_member[group + 1] - batch.first_member[group] < 2:
        return []
    topics = slice(*batch.first_topic[group : group + 2])
    _, number, counts = np.unique(batch.size[topics], return_inverse=True, return_counts=True)
    shared = np.flatnonzero(counts[number] > 1)
    names = batch.topic_names.take(pa.array(batch.topic_name[topics][shared] - 1))
    return list(names.to_pylist())


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
            pa.array([len(slots) for slots in moves], pa.int64()),
            pa.array([int(change.pauses.sum()) for change in changes], pa.int64()),
            pa.array([change.unread for change in changes], pa.int64()),
            _lists(paused, ids.take(pa.array(_concatenate(paused)))),
            _lists(losing, ids.take(pa.array(_concatenate(losing)))),
            _lists(moves, _named_moves(state, changes, moves, ids)),
        ],
        names=list(_STEP),
    )


def _may_lose(change: Change, place: int, walk: Walk, to: str) -> Longs:
    """Return the members that get `onPartitionsLost` if the group goes back during a change.

    Classic members that are behind are refused with ILLEGAL_GENERATION at that moment. Where every
    step settles before the next one, nobody is.
    """
    was_consumer = place > 0 and walk.is_consumer[place - 1]
    if to == CONSUMER or walk.is_consumer[place] or not was_consumer:
        return np.zeros(0, np.int64)
    owners = np.unique(change.before[change.before != NOBODY])
    staying: Longs = owners[owners != change.member]
    return staying


def _named_moves(
    state: ConsumerGroupState, changes: Sequence[Change], moves: Sequence[Longs], ids: pa.Array
) -> pa.StructArray:
    sizes = np.asarray(state.num_partitions, np.int64)
    first = np.cumsum(sizes) - sizes
    slots = _concatenate(moves)
    topic = np.repeat(np.arange(len(sizes)), sizes)[slots]
    place, to = (
        _concatenate(
            [getattr(change, name)[rows] for change, rows in zip(changes, moves, strict=True)]
        )
        for name in ("before", "after")
    )
    return pa.StructArray.from_arrays(
        [
            pa.array(state.topics, pa.string()).take(pa.array(topic)),
            pa.array((slots - first[topic]).astype(np.int32)),
            ids.take(pa.array(place)),
            ids.take(pa.array(to)),
        ],
        names=["topic", "partition", "from_member_id", "to_member_id"],
    )


def _concatenate(parts: Sequence[Longs]) -> Longs:
    numbers: Longs = np.concatenate([np.zeros(0, np.int64), *parts])
    return numbers


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
    changes = [walk.changes for walk in walks]
    columns = {
        **group_columns(batch, np.arange(batch.group_count)),
        **{name: [getattr(judgement, name) for judgement in judged] for name in Judgement._fields},
        "member_count": np.diff(batch.first_member),
        "static_count": np.bincount(
            batch.member_group[batch.instance > 0], minlength=batch.group_count
        ),
        "step_count": [len(row) for row in changes],
    }
    if is_owned:
        moved = [(row[0].before != row[-1].after) & (row[0].before != NOBODY) for row in changes]
        columns |= {
            "moved": [sum(len(c.moves) for c in row) for row in changes],
            "paused": [sum(int(c.pauses.sum()) for c in row) for row in changes],
            "end_moved": [int(is_moved.sum()) for is_moved in moved],
            "next_moved": [walk.next_moved for walk in walks],
        }
    if is_owned and batch.racks is not None:
        columns |= zip(("cross_rack_before", "cross_rack_after"), crossing, strict=True)
    table = with_nulls(_VERDICTS, columns)
    return table.append_column("steps", _lists(steps, pa.concat_arrays(steps)))
