"""The coordinator's `uniform` where members subscribe differently: deal, then balance by topic."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import NamedTuple

import numpy as np

from kassign_spark.coordinator.orders import Ints, inverse, topic_id_bits
from kassign_spark.coordinator.server_range import subscribers_by_topic
from kassign_spark.coordinator.target_state import NOBODY, ConsumerGroupState, Layout

_SWEEPS = 16
"""Bound of ``UniformHeterogeneousAssignmentBuilder``: so it always ends."""


class Peaks(NamedTuple):
    """The largest sizes of the assignor's tables before it removed some entries again.

    A Java table never shrinks, and its size decides the order of what it still has.

    Attributes:
        sets: of a member's position and a topic: numbers.
        maps: of a member's position: topics.
    """

    sets: dict[tuple[int, int], int]
    maps: dict[int, int]


NO_PEAKS = Peaks({}, {})


class Dealt(NamedTuple):
    """A target, and how it came about.

    Attributes:
        owner: for each partition of the layout a position in ``member_ids``, or ``NOBODY``.
        assigned_at: when it was given to that one, counted over all; 0 for those that stay.
        peaks: of the tables.
    """

    owner: Ints
    assigned_at: Ints
    peaks: Peaks


def assign_differing(
    state: ConsumerGroupState, layout: Layout, topic_ids: list[str], order: list[int]
) -> Dealt:
    """Return the owner of every partition by ``UniformHeterogeneousAssignmentBuilder``.

    What is still subscribed stays, free partitions are dealt to the least loaded subscribers, then
    each topic is levelled between its own subscribers, at most 16 times. The ids and ``order`` are
    as in ``assign_equal``.
    """
    # Inside, members are their places in the order: those break ties between equal loads.
    position = np.array(order, dtype=np.int64)
    place = inverse(order)
    topics = {topic: place[members] for topic, members in subscribers_by_topic(layout, position)}
    owner = np.full(int(layout.starts[-1]), NOBODY, dtype=np.int64)
    kept = _select_subscribed(state, layout)
    owned = layout.starts[state.target_topics[kept]] + state.target_partitions[kept]
    owner[owned] = place[state.target_members[kept]]
    loads = np.bincount(owner[owner != NOBODY], minlength=len(order)).tolist()
    sizes = np.diff(layout.starts)
    sorted_topics = sorted(
        (topic for topic in topics if sizes[topic]),
        key=lambda t: (-(sizes[t] / len(topics[t])), len(topics[t]), topic_id_bits(topic_ids[t])),
    )
    subscribers = {topic: topics[topic].tolist() for topic in sorted_topics}
    assigned_at, clock = np.zeros_like(owner), count(1)
    parts: dict[int, _Part] = {}
    for topic in sorted_topics:
        of_topic = slice(layout.starts[topic], layout.starts[topic + 1])
        part = parts[topic] = _Part(owner[of_topic], assigned_at[of_topic])
        free = np.flatnonzero(part.owner == NOBODY)
        if len(free):
            ends = _Ends(subscribers[topic], loads)
            part.owner[free] = [ends.give_to_lowest() for _ in range(len(free))]
            part.assigned_at[free] = [next(clock) for _ in range(len(free))]
    shared = [topic for topic in sorted_topics if len(subscribers[topic]) > 1]
    levelling = _Levelling(subscribers, parts, loads, clock, _topics_of(owner, layout, len(order)))
    levelling.level(shared)
    is_assigned = owner != NOBODY
    owner[is_assigned] = position[owner[is_assigned]]
    peaks = Peaks(
        {(order[m], topic): most for (m, topic), most in levelling.most_numbers.items()},
        {order[m]: most for m, most in levelling.most_topics.items()},
    )
    return Dealt(owner, assigned_at, peaks)


class _Part(NamedTuple):
    """One topic's partitions: views of the result of ``assign_differing``."""

    owner: Ints
    assigned_at: Ints


def _select_subscribed(state: ConsumerGroupState, layout: Layout) -> Ints:
    """Return rows of the last target whose member still subscribes to the topic."""
    count = len(state.topics)
    members = np.repeat(
        np.arange(len(layout.subscribed)), [len(topics) for topics in layout.subscribed]
    )
    none = np.zeros(0, dtype=np.int64)
    pairs = members * count + np.concatenate([none, *layout.subscribed])
    rows = state.target_members * count + state.target_topics
    return np.flatnonzero(np.isin(rows, pairs))


def _topics_of(owner: Ints, layout: Layout, count: int) -> list[int]:
    """Return the number of topics that each member has partitions of."""
    topics = np.repeat(np.arange(len(layout.starts) - 1), np.diff(layout.starts))
    is_assigned = owner != NOBODY
    pairs = np.unique(owner[is_assigned] * len(layout.starts) + topics[is_assigned])
    counts: list[int] = np.bincount(pairs // len(layout.starts), minlength=count).tolist()
    return counts


@dataclass
class _Levelling:
    """Topics that are levelled; parts, loads and counts change.

    Attributes:
        subscribers: of each topic.
        parts: of each topic.
        loads: of each member.
        clock: counts what is given.
        topics: of how many topics each member has some.
        most_numbers: ``Peaks.sets``, by places in the order.
        most_topics: ``Peaks.maps``, by places in the order.
    """

    subscribers: dict[int, list[int]]
    parts: dict[int, _Part]
    loads: list[int]
    clock: Iterator[int]
    topics: list[int]
    most_numbers: dict[tuple[int, int], int] = field(default_factory=dict)
    most_topics: dict[int, int] = field(default_factory=dict)

    def level(self, topics: list[int]) -> None:
        """Level topic by topic until the one that last changed anything comes round again."""
        last = -1
        for _ in range(_SWEEPS):
            for i, topic in enumerate(topics):
                if i == last:
                    return
                if self._level_topic(topic) or last == -1:
                    last = i

    def _level_topic(self, topic: int) -> bool:
        """Move partitions of one topic from high to low."""
        subscribers, part, loads = self.subscribers[topic], self.parts[topic], self.loads
        of_subscribers = [loads[member] for member in subscribers]
        if max(of_subscribers) - min(of_subscribers) <= 1:
            return False
        # What each held when the pass began, ascending: given back from the end.
        holding: dict[int, list[int]] = {}
        for number, member in enumerate(part.owner.tolist()):
            holding.setdefault(member, []).append(number)
        sizes = {member: len(numbers) for member, numbers in holding.items()}
        ends = _Ends(subscribers, loads)
        is_changed = False
        while not ends.is_level():
            high = ends.highest()
            while high != NOBODY and not holding.get(high):
                ends.exclude_highest()
                high = ends.highest()
            if high == NOBODY:
                break
            number = holding[high].pop()
            low = ends.lowest()
            if ends.is_level():
                break
            self._take(topic, high, sizes)
            sizes[low] = sizes.get(low, 0) + 1
            self.topics[low] += sizes[low] == 1
            part.owner[number], part.assigned_at[number] = low, next(self.clock)
            loads[high] -= 1
            loads[low] += 1
            is_changed = True
        return is_changed

    def _take(self, topic: int, member: int, sizes: dict[int, int]) -> None:
        """Count a partition that a member loses; its set is dropped when it becomes empty."""
        most = self.most_numbers
        most[member, topic] = max(most.get((member, topic), 0), sizes[member])
        sizes[member] -= 1
        if not sizes[member]:
            del most[member, topic]
            self.most_topics[member] = max(self.most_topics.get(member, 0), self.topics[member])
            self.topics[member] -= 1


class _Ends:
    """The least and the most loaded subscribers of a topic, each going round in a window.

    A window holds the members at one level; when it has been gone through, the level moves by one
    towards the other end and takes in the members that are there.
    """

    def __init__(self, subscribers: list[int], loads: list[int]) -> None:
        self.loads = loads
        self.members = sorted(subscribers, key=loads.__getitem__)  # stable: by place in the order
        self.low_end, self.low_next = 0, 0
        self.low_level = loads[self.members[0]] - 1
        self.high_start = self.high_end = len(self.members)
        self.high_next = len(self.members) - 1
        self.high_level = loads[self.members[-1]] + 1

    def is_level(self) -> bool:
        return self.high_level - self.low_level <= 1

    def lowest(self) -> int:
        if self.low_next >= self.low_end:
            self.low_level += 1
            members, loads, end = self.members, self.loads, self.low_end
            while end < len(members) and loads[members[end]] == self.low_level:
                end += 1
            self.low_end, self.low_next = end, 0
        self.low_next += 1
        return self.members[self.low_next - 1]

    def give_to_lowest(self) -> int:
        member = self.lowest()
        self.loads[member] += 1
        return member

    def highest(self) -> int:
        """Return the next one from above, or ``NOBODY`` where all have been excluded."""
        if self.high_next < self.high_start:
            if self.high_end <= self.high_start and self.high_start > 0:
                self.high_level = self.loads[self.members[self.high_start - 1]]
            else:
                self.high_level -= 1
            members, loads, start = self.members, self.loads, self.high_start
            while start > 0 and loads[members[start - 1]] == self.high_level:
                start -= 1
            self.high_start, self.high_next = start, self.high_end - 1
        if self.high_next < 0:
            return NOBODY
        self.high_next -= 1
        return self.members[self.high_next + 1]

    def exclude_highest(self) -> None:
        """Leave out the member that came last: it has nothing more of this topic to give."""
        i, last = self.high_next + 1, self.high_end - 1
        self.members[i], self.members[last] = self.members[last], self.members[i]
        self.high_end -= 1
