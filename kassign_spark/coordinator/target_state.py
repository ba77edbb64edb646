"""One group of the new protocol as the coordinator's assignors see it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from kassign_spark.coordinator.orders import Ints

NOBODY = -1


def _none() -> Ints:
    return np.zeros(0, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class ConsumerGroupState:
    """The coordinator's knowledge when it computes a target.

    Sequences of members have one element per member, in the order of ``ConsumerGroupDescribe``;
    those of topics, one element per topic of the cluster, in any order; those named ``target_...``
    one per partition of the last target.

    Attributes:
        member_ids: distinct. A member that joins in the very heartbeat that computes comes last.
        subscriptions: topic names, those that do not exist included.
        topics: names.
        num_partitions: of each topic.
        topic_ids: Kafka's 22 characters, or None where not known.
        instance_ids: ``group.instance.id`` or None; empty: nobody has one.
        regexes: ``SubscriptionPattern`` or None; empty: nobody has one.
        resolved: the names that each regex finds.
        votes: ``group.remote.assignor`` or None; empty: nobody votes.
        target_members: positions in ``member_ids``.
        target_topics: positions in ``topics``.
        target_partitions: numbers.
        target_positions: places in the member's list as the coordinator has it; empty: not known.
        is_order_known: whether members are really in the coordinator's order.
        counts_as_differing: whether the coordinator still takes subscriptions as differing, though
            they no longer do.
    """

    member_ids: Sequence[str]
    subscriptions: Sequence[Sequence[str]]
    topics: Sequence[str]
    num_partitions: Sequence[int]
    topic_ids: Sequence[str | None] = ()
    instance_ids: Sequence[str | None] = ()
    regexes: Sequence[str | None] = ()
    resolved: Mapping[str, Sequence[str]] = field(default_factory=dict)
    votes: Sequence[str | None] = ()
    target_members: Ints = field(default_factory=_none)
    target_topics: Ints = field(default_factory=_none)
    target_partitions: Ints = field(default_factory=_none)
    target_positions: Ints = field(default_factory=_none)
    is_order_known: bool = True
    counts_as_differing: bool = False


@dataclass(frozen=True, slots=True)
class Layout:
    """Partitions as integers: those of topic t are ``starts[t]`` up to ``starts[t + 1]``.

    Attributes:
        starts: first id of each topic of the state, and the end of the last one.
        subscribed: for each member the topics that it subscribes to and that exist, ascending;
            members with equal subscriptions share one array.
        is_homogeneous: whether all members subscribe alike, as the coordinator sees it.
    """

    starts: Ints
    subscribed: list[Ints]
    is_homogeneous: bool


def reorder_members(state: ConsumerGroupState, order: Sequence[int]) -> ConsumerGroupState:
    """Return the group of these members alone, in this order; ``NOBODY`` has what others had."""
    place = np.full(len(state.member_ids), NOBODY)
    place[list(order)] = np.arange(len(order))

    def sorted_by(values: Sequence[Any]) -> list[Any]:
        return [values[i] for i in order] if len(values) else []

    return replace(
        state,
        member_ids=sorted_by(state.member_ids),
        subscriptions=sorted_by(state.subscriptions),
        instance_ids=sorted_by(state.instance_ids),
        regexes=sorted_by(state.regexes),
        votes=sorted_by(state.votes),
        target_members=place[state.target_members],
    )


def lay_out(state: ConsumerGroupState) -> Layout:
    """Number the partitions, and resolve the names and regexes of the members."""
    starts = np.concatenate(([0], np.cumsum(np.asarray(state.num_partitions, dtype=np.int64))))
    index = {topic: number for number, topic in enumerate(state.topics)}
    regexes = state.regexes or [None] * len(state.member_ids)
    existing_of: dict[tuple[frozenset[str], str | None], Ints] = {}
    kinds: list[tuple[frozenset[str], str | None]] = []
    # Names that are one object, or equal, are gone through once.
    sets: dict[tuple[str, ...], frozenset[str]] = {}
    for names, regex in zip(state.subscriptions, regexes, strict=True):
        ordered_names = tuple(names)
        if ordered_names not in sets:
            sets[ordered_names] = frozenset(ordered_names)
        kind = sets[ordered_names], regex or None
        kinds.append(kind)
        if kind not in existing_of:
            subscribed = kind[0].union(state.resolved.get(regex, ()) if regex else ())
            existing = [index[name] for name in subscribed if name in index]
            existing_of[kind] = np.array(sorted(existing), dtype=np.int64)
    is_homogeneous = not state.counts_as_differing and _is_homogeneous(list(existing_of))
    return Layout(starts, [existing_of[kind] for kind in kinds], is_homogeneous)


def _is_homogeneous(kinds: Sequence[tuple[frozenset[str], str | None]]) -> bool:
    """Return whether subscriptions are equal (``ConsumerGroup.subscriptionType``)."""
    if len(kinds) > 1:
        return False
    return not kinds or kinds[0][1] is None or not kinds[0][0]
