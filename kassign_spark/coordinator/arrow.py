"""Groups of the new protocol to and from the model, batch by batch, through Arrow."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate
from typing import Any

import numpy as np
import pyarrow as pa

from kassign_spark.client.left_out import left_out_says
from kassign_spark.coordinator.next_target import TargetOutcome, doubt_joiners, next_target
from kassign_spark.coordinator.orders import Ints
from kassign_spark.coordinator.reconcile import Pairs, Steps, actions_in, reconcile
from kassign_spark.coordinator.target_state import ConsumerGroupState

PREDICTED = (
    "cluster_id string, group_id string, verdict string, detail string, assignor string, "
    "assigned array<struct<member_id: string, topic: string, partitions: array<int>>>, "
    "steps array<struct<round: int, member_id: string, topic: string, partition: int, "
    "action: string>>"
)
"""Columns that ``predict_batches`` returns, one row per group."""

_AWAY = -2


@dataclass(frozen=True, slots=True)
class _Group:
    """A group's state, and what its members hold besides; held topics are names' positions."""

    state: ConsumerGroupState
    epochs: list[int | None]
    held_members: Ints
    held_topics: Ints
    held_partitions: Ints
    held_names: list[str]


def predict_batches(
    batches: Iterable[pa.RecordBatch], assignor: str | None, with_steps: bool
) -> Iterator[pa.RecordBatch]:
    """Compute the next target of each group, and with steps the rounds to get there: ``PREDICTED``.

    Rows are as ``plans.consumer_groups`` folds them; without an assignor the members' votes choose.
    """
    for batch in batches:
        outcomes: list[TargetOutcome] = []
        runs: list[pa.StructArray] = []
        steps: list[pa.StructArray] = []
        for group in groups_of(batch):
            is_new = [epoch is None for epoch in group.epochs]
            outcome = doubt_joiners(group.state, next_target(group.state, assignor), is_new)
            detail = "; ".join(filter(None, (outcome.detail, _left_out(group))))
            outcome = replace(outcome, detail=detail or None)
            outcomes.append(outcome)
            runs.append(_runs(group.state, outcome))
            steps.append(_steps(group, outcome) if with_steps else _no_steps())
        details = {
            name: pa.array([getattr(outcome, name) for outcome in outcomes], pa.string())
            for name in ("verdict", "detail", "assignor")
        }
        names = {name: batch.column(name) for name in ("cluster_id", "group_id")}
        answers = {"assigned": _lists(runs), "steps": _lists(steps)}
        yield pa.RecordBatch.from_pydict(names | details | answers)


def _left_out(group: _Group) -> str | None:
    """Return the topics that members ask for in vain, and whether they get anything."""
    state = group.state
    sizes = dict(zip(state.topics, state.num_partitions, strict=True))
    matched = [state.resolved.get(regex) or () for regex in state.regexes if regex is not None]
    names: set[str] = set().union(*state.subscriptions, *matched)
    missing = {name for name in names if not sizes.get(name)}
    if names and not missing:
        return None
    counts = Counter(group.held_names[topic] for topic in group.held_topics.tolist())
    return left_out_says(((name, counts[name]) for name in missing), is_idle=names == missing)


def groups_of(batch: pa.RecordBatch) -> Iterator[_Group]:
    """Read the groups of a batch."""
    members, topics, regexes, target, owned = (
        _Lists(batch.column(name)) for name in ("members", "topics", "regexes", "target", "held")
    )
    for row in range(batch.num_rows):
        seqs, ids, instances, subscriptions, names_of, votes, epochs = members.values(row)
        names, topic_ids, counts = topics.values(row)
        resolved = dict(zip(*regexes.values(row), strict=True))
        place = {member: i for i, member in enumerate(ids)}
        t_members, t_topics, t_partitions, t_positions = target.of(row)
        index = {name: i for i, name in enumerate(names)}
        in_target = _coded(t_members, place), _coded(t_topics, index)
        known = (in_target[0] >= 0) & (in_target[1] >= 0)
        positions = _numbers(t_positions, missing=-1)[known]
        state = ConsumerGroupState(
            member_ids=ids,
            subscriptions=[names or () for names in subscriptions],
            topics=names,
            num_partitions=counts,
            topic_ids=topic_ids,
            instance_ids=instances,
            regexes=names_of,
            resolved=resolved,
            votes=votes,
            target_members=in_target[0][known],
            target_topics=in_target[1][known],
            target_partitions=_numbers(t_partitions)[known],
            target_positions=positions if (positions >= 0).all() else positions[:0],
            is_order_known=None not in seqs and len(set(seqs)) == len(seqs),
        )
        h_members, h_topics, h_partitions = owned.of(row)
        encoded = h_topics.dictionary_encode()
        holders = _coded(h_members, place)
        yield _Group(
            state,
            epochs,
            holders[holders >= 0],
            encoded.indices.to_numpy().astype(np.int64)[holders >= 0],
            _numbers(h_partitions)[holders >= 0],
            encoded.dictionary.to_pylist(),
        )


class _Lists:
    """A column of arrays of structs, to be cut row by row."""

    def __init__(self, column: pa.ListArray) -> None:
        self.ends = column.offsets.to_numpy()
        self.fields = column.values.flatten()

    @cached_property
    def listed(self) -> list[list[Any]]:
        """All fields of all rows as Python values."""
        return [_values(field) for field in self.fields]

    def values(self, row: int) -> list[list[Any]]:
        """Return the fields of a row's structs as Python values."""
        start, end = int(self.ends[row]), int(self.ends[row + 1])
        return [values[start:end] for values in self.listed]

    def of(self, row: int) -> list[pa.Array]:
        """Return the fields of a row's structs; nothing where the array is null."""
        start, end = int(self.ends[row]), int(self.ends[row + 1])
        return [field.slice(start, end - start) for field in self.fields]


def _values(column: pa.Array) -> list[Any]:
    """Like ``to_pylist``, but equal strings are one object: far faster where they repeat."""
    if pa.types.is_list(column.type):
        flat = _values(column.flatten())
        lengths = column.value_lengths().fill_null(-1).to_pylist()
        ends = accumulate(max(length, 0) for length in lengths)
        return [
            None if length < 0 else tuple(flat[end - length : end])
            for length, end in zip(lengths, ends, strict=True)
        ]
    if pa.types.is_string(column.type):
        encoded = column.dictionary_encode()
        names = [*encoded.dictionary.to_pylist(), None]
        codes = encoded.indices.fill_null(len(names) - 1).to_numpy().tolist()
        return [names[code] for code in codes]
    values: list[Any] = column.to_pylist()
    return values


def _coded(column: pa.Array, codes: Mapping[str, int]) -> Ints:
    """Return the code of each string, -1 where it has none."""
    encoded = column.dictionary_encode()
    known = np.array([codes.get(text, -1) for text in encoded.dictionary.to_pylist()], dtype="i8")
    numbers: Ints = known[encoded.indices.to_numpy()] if len(known) else np.zeros(0, dtype=np.int64)
    return numbers


def _numbers(column: pa.Array, missing: int = 0) -> Ints:
    return np.asarray(column.fill_null(missing).to_numpy(zero_copy_only=False), dtype=np.int64)


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
            _named(state.member_ids, members[firsts]),
            _named(state.topics, topics[firsts]),
            pa.ListArray.from_arrays(ends, pa.array((assigned - starts[topics]).astype(np.int32))),
        ],
        names=["member_id", "topic", "partitions"],
    )


def _steps(group: _Group, outcome: TargetOutcome) -> pa.StructArray:
    """Follow the members to the target: struct<round, member_id, topic, partition, action>."""
    state, starts = group.state, outcome.layout.starts
    names = list(dict.fromkeys([*state.topics, *group.held_names]))
    index = {name: i for i, name in enumerate(names)}
    topics = np.array([index[name] for name in group.held_names], dtype=np.int64)
    sizes = np.zeros(len(names), dtype=np.int64)
    sizes[: len(state.topics)] = np.diff(starts)
    held_topics = topics[group.held_topics] if len(topics) else group.held_topics
    np.maximum.at(sizes, held_topics, group.held_partitions + 1)
    firsts = np.concatenate(([0], np.cumsum(sizes)))
    assigned = np.flatnonzero(outcome.owner >= 0)
    given_topics = np.repeat(np.arange(len(state.topics)), np.diff(starts))[assigned]
    is_away = np.array([epoch == _AWAY for epoch in group.epochs], dtype=bool)
    followed = reconcile(
        Pairs(group.held_members, firsts[held_topics] + group.held_partitions),
        Pairs(outcome.owner[assigned], firsts[given_topics] + assigned - starts[given_topics]),
        is_away,
    )
    return _rows_of(followed, state.member_ids, names, firsts)


def _rows_of(
    steps: Steps, member_ids: Sequence[str], topics: Sequence[str], firsts: Ints
) -> pa.StructArray:
    # A group in which nothing changes has one round as well, in which all is retained.
    numbers = range(1, max(steps.round_count, 1) + 1)
    actions = np.array([actions_in(steps, number) for number in numbers])
    rounds, step = np.nonzero(actions != "")
    topic = np.searchsorted(firsts, steps.partitions[step], side="right") - 1
    return pa.StructArray.from_arrays(
        [
            pa.array((rounds + 1).astype(np.int32)),
            _named(member_ids, steps.members[step]),
            _named(topics, topic),
            pa.array((steps.partitions[step] - firsts[topic]).astype(np.int32)),
            pa.array(actions[rounds, step].tolist(), type=pa.string()),
        ],
        names=["round", "member_id", "topic", "partition", "action"],
    )


def _no_steps() -> pa.StructArray:
    none = np.zeros(0, dtype=np.int64)
    steps = reconcile(Pairs(none, none), Pairs(none, none), np.zeros(0, dtype=bool))
    return _rows_of(steps, [], [], np.zeros(1, dtype=np.int64))


def _named(names: Sequence[str], codes: Ints) -> pa.Array:
    return pa.array(list(names), type=pa.string()).take(pa.array(codes, type=pa.int64()))


def _lists(parts: Sequence[pa.StructArray]) -> pa.ListArray:
    """One list per group."""
    ends = np.concatenate(([0], np.cumsum([len(part) for part in parts])))
    return pa.ListArray.from_arrays(
        pa.array(ends, type=pa.int32()), pa.concat_arrays(parts) if parts else _no_steps()
    )
