"""The coordinator's answers for the groups of a task (KIP-848): from rows to rows."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np
import pyarrow as pa

from kassign_spark.client.missing import describe_left_out
from kassign_spark.coordinator.next_target import TargetOutcome, doubt_joiners, next_target
from kassign_spark.coordinator.reconcile import Pairs, Steps, actions_in, reconcile
from kassign_spark.coordinator.target_state import ConsumerGroupState
from kassign_spark.groups.batch import Batch, Claims
from kassign_spark.groups.coordinator_states import GroupStates, coordinator_order
from kassign_spark.groups.group_names import group_columns
from kassign_spark.groups.numbers import Longs, find, key, rows_by
from kassign_spark.groups.read import CLAIM, TARGET, read_kinds

PREDICTED = (
    "cluster_id string, group_id string, verdict string, detail string, assignor string, "
    "assigned array<struct<member_id: string, topic: string, partitions: array<int>>>, "
    "steps array<struct<round: int, member_id: string, topic: string, partition: int, "
    "action: string>>"
)
"""Columns that ``predict_consumer_arrow`` returns, one row per group."""

_AWAY, _NOT_KNOWN = -2, -1
"""Generations: of a static member that is away, and of one that has yet to join."""
_GROUPS_OF_A_PIECE = 1_000


@dataclass(frozen=True, slots=True)
class ConsumerGroup:
    """A group's state, and what its members own; topics there are positions in owned_names."""

    state: ConsumerGroupState
    generations: Longs
    owned_members: Longs
    owned_topics: Longs
    owned_partitions: Longs
    owned_names: list[str]


def predict_consumer_arrow(
    table: pa.Table, *, assignor: str | None, with_steps: bool
) -> Iterator[pa.Table]:
    """Compute the next target of each group, and with steps the rounds to get there: ``PREDICTED``.

    Rows are as ``consumer_groups.fold_consumer_groups`` makes them; without an assignor the
    members' votes choose.
    """
    batch, (claims, target), (_, target_rows) = read_kinds(table, (CLAIM, TARGET))
    positions = table["place"].to_numpy()[target_rows]
    groups = consumer_groups(table, batch, claims, target, positions)
    for first in range(0, batch.group_count, _GROUPS_OF_A_PIECE):
        outcomes: list[TargetOutcome] = []
        runs: list[pa.StructArray] = []
        steps: list[pa.StructArray] = []
        for group in islice(groups, _GROUPS_OF_A_PIECE):
            outcome = next_target(group.state, assignor)
            outcome = doubt_joiners(group.state, outcome, group.generations == _NOT_KNOWN)
            detail = "; ".join(filter(None, (outcome.detail, _left_out(group))))
            outcome = replace(outcome, detail=detail or None)
            outcomes.append(outcome)
            runs.append(_runs(group.state, outcome))
            steps.append(_steps(group, outcome) if with_steps else _no_steps())
        details = {
            name: pa.array([getattr(outcome, name) for outcome in outcomes], pa.string())
            for name in ("verdict", "detail", "assignor")
        }
        names = group_columns(batch, np.arange(first, first + len(outcomes)))
        yield pa.table(names | details | {"assigned": _lists(runs), "steps": _lists(steps)})


def _left_out(group: ConsumerGroup) -> str | None:
    """Return the topics that members ask for in vain, and whether they get anything."""
    state = group.state
    matched = [state.resolved.get(regex) or () for regex in state.regexes if regex is not None]
    names: set[str] = set().union(*state.subscriptions, *matched)
    missing = names.difference(state.topics)
    if names and not missing:
        return None
    counts = Counter(group.owned_names[topic] for topic in group.owned_topics.tolist())
    return describe_left_out(((name, counts[name]) for name in missing), is_idle=names == missing)


def consumer_groups(
    table: pa.Table, batch: Batch, claims: Claims, target: Claims, positions: Longs
) -> Iterator[ConsumerGroup]:
    """Read the groups of a batch; ``positions`` are of the rows of the last target, or -1."""
    states = GroupStates(table, batch)
    owned, owned_ends = claims.where(claims.member >= 0).by_group(batch.group_count)
    topic = find(key(batch.topic_group, batch.topic_name), key(target.group, target.topic))
    order = rows_by(target.group, positions, target.topic, target.partition)
    order = order[(target.member[order] >= 0) & (topic[order] >= 0)]
    last, last_ends = target.where(order).by_group(batch.group_count)
    topic, positions = topic[order], positions[order]
    for number in range(batch.group_count):
        members, is_known = coordinator_order(batch, number)
        place = np.argsort(members)
        first_member, first_topic = batch.first_member[number], batch.first_topic[number]
        rows = slice(*last_ends[number : number + 2])
        mine = slice(*owned_ends[number : number + 2])
        names, owned_topics = np.unique(owned.topic[mine], return_inverse=True)
        own_positions = positions[rows]
        state = replace(
            states.of(number, members),
            votes=states.votes(members),
            target_members=place[last.member[rows] - first_member],
            target_topics=topic[rows] - first_topic,
            target_partitions=last.partition[rows],
            target_positions=own_positions if (own_positions >= 0).all() else own_positions[:0],
            is_order_known=is_known,
        )
        yield ConsumerGroup(
            state,
            batch.generation[members],
            place[owned.member[mine] - first_member],
            owned_topics,
            owned.partition[mine],
            states.topic_names(names),
        )


def _runs(state: ConsumerGroupState, outcome: TargetOutcome) -> pa.StructArray:
    """Return one element per member and topic: struct<member_id, topic, partitions>."""
    starts = outcome.layout.starts
    assigned = np.flatnonzero(outcome.owner >= 0)
    topics = np.repeat(np.arange(len(state.topics)), np.diff(starts))[assigned]
    by_member = np.argsort(outcome.owner[assigned], kind="stable")
    members, topics, assigned = (
        outcome.owner[assigned][by_member],
        topics[by_member],
        assigned[by_member],
    )
    begins = np.ones(len(assigned), dtype=bool)
    begins[1:] = (np.diff(members) != 0) | (np.diff(topics) != 0)
    firsts = np.flatnonzero(begins)
    ends = pa.array(np.append(firsts, len(assigned)), type=pa.int32())
    return pa.StructArray.from_arrays(
        [
            _take_names(state.member_ids, members[firsts]),
            _take_names(state.topics, topics[firsts]),
            pa.ListArray.from_arrays(ends, pa.array((assigned - starts[topics]).astype(np.int32))),
        ],
        names=["member_id", "topic", "partitions"],
    )


def _steps(group: ConsumerGroup, outcome: TargetOutcome) -> pa.StructArray:
    """Follow the members to the target: struct<round, member_id, topic, partition, action>."""
    state, starts = group.state, outcome.layout.starts
    names = list(dict.fromkeys([*state.topics, *group.owned_names]))
    index = {name: i for i, name in enumerate(names)}
    topics = np.array([index[name] for name in group.owned_names], dtype=np.int64)
    sizes = np.zeros(len(names), dtype=np.int64)
    sizes[: len(state.topics)] = np.diff(starts)
    owned_topics = topics[group.owned_topics] if len(topics) else group.owned_topics
    np.maximum.at(sizes, owned_topics, group.owned_partitions + 1)
    firsts = np.concatenate(([0], np.cumsum(sizes)))
    assigned = np.flatnonzero(outcome.owner >= 0)
    assigned_topics = np.repeat(np.arange(len(state.topics)), np.diff(starts))[assigned]
    is_away = group.generations == _AWAY
    followed = reconcile(
        Pairs(group.owned_members, firsts[owned_topics] + group.owned_partitions),
        Pairs(
            outcome.owner[assigned], firsts[assigned_topics] + assigned - starts[assigned_topics]
        ),
        is_away,
    )
    return _rows_of(followed, state.member_ids, names, firsts)


def _rows_of(
    steps: Steps, member_ids: Sequence[str], topics: Sequence[str], firsts: Longs
) -> pa.StructArray:
    # A group in which nothing changes has one round as well, in which all is retained.
    numbers = range(1, max(steps.round_count, 1) + 1)
    actions = np.array([actions_in(steps, number) for number in numbers])
    rounds, step = np.nonzero(actions != "")
    topic = np.searchsorted(firsts, steps.partitions[step], side="right") - 1
    return pa.StructArray.from_arrays(
        [
            pa.array((rounds + 1).astype(np.int32)),
            _take_names(member_ids, steps.members[step]),
            _take_names(topics, topic),
            pa.array((steps.partitions[step] - firsts[topic]).astype(np.int32)),
            pa.array(actions[rounds, step].tolist(), type=pa.string()),
        ],
        names=["round", "member_id", "topic", "partition", "action"],
    )


def _no_steps() -> pa.StructArray:
    none = np.zeros(0, dtype=np.int64)
    steps = reconcile(Pairs(none, none), Pairs(none, none), np.zeros(0, dtype=bool))
    return _rows_of(steps, [], [], np.zeros(1, dtype=np.int64))


def _take_names(names: Sequence[str], codes: Longs) -> pa.Array:
    return pa.array(list(names), type=pa.string()).take(pa.array(codes, type=pa.int64()))


def _lists(parts: Sequence[pa.StructArray]) -> pa.ListArray:
    """Return one list per group."""
    ends = np.concatenate(([0], np.cumsum([len(part) for part in parts])))
    return pa.ListArray.from_arrays(
        pa.array(ends, type=pa.int32()), pa.concat_arrays(parts) if parts else _no_steps()
    )
