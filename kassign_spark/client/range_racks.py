"""RangeAssignor with racks: partitions go first to members of their replicas' racks."""

from itertools import groupby

from kassign_spark.client.group_state import GroupState, Layout
from kassign_spark.client.hash_order import java_string_key
from kassign_spark.client.rack_bits import Racks, need_matching, number_racks


class _Topic:
    """Room of each subscriber of a topic, and the partitions that nobody has yet."""

    def __init__(
        self, layout: Layout, topic: int, subscribers: list[int], racks: Racks | None
    ) -> None:
        self.start = layout.starts[topic]
        self.free = dict.fromkeys(layout.existing(topic))
        self.subscribers = subscribers
        self.base, self.extra = divmod(layout.counts[topic], len(subscribers))
        self.assigned_counts = dict.fromkeys(subscribers, 0)
        self.racks = racks
        of_members = [racks.of_member[m] for m in subscribers] if racks else []
        of_partitions = [racks.of_partition[p] for p in self.free] if racks else []
        self.needs_matching = need_matching(of_members, of_partitions)
        # Without a rack among its subscribers a topic is taken for one without partitions.
        count = layout.counts[topic] if any(of_members) else 0
        self.bucket = (tuple(subscribers), count)

    def room(self, member: int) -> int:
        return max(0, self.base + (self.extra > 0) - self.assigned_counts[member])

    def matches(self, member: int, partition: int) -> bool:
        return self.racks is None or not self.racks.mismatch(member, partition)

    def give(self, member: int, partitions: list[int], assigned: list[list[int]]) -> None:
        for partition in partitions:
            del self.free[partition]
        assigned[member] += partitions
        self.assigned_counts[member] += len(partitions)
        if partitions and self.assigned_counts[member] > self.base:
            self.extra -= 1

    def fill(self, assigned: list[list[int]], *, matching: bool) -> None:
        """Give each subscriber in order the first free partitions, up to its room."""
        for member in self.subscribers:
            room = self.room(member)
            fitting = (p for p in self.free if not matching or self.matches(member, p))
            self.give(member, [p for p, _ in zip(fitting, range(room), strict=False)], assigned)


def assign_range(state: GroupState, layout: Layout) -> list[list[int]]:
    """Return partitions by member as Kafka's ``RangeAssignor`` does, with racks or without."""
    racks = number_racks(state, layout)
    subscribers: list[list[int]] = [[] for _ in layout.topics]
    for member in _in_member_order(state):
        for name in dict.fromkeys(state.subscriptions[member]):
            if name in layout.index:
                subscribers[layout.index[name]].append(member)
    topics = [_Topic(layout, topic, members, racks) for topic, members in enumerate(subscribers)]
    assigned: list[list[int]] = [[] for _ in state.member_ids]
    if any(topic.needs_matching for topic in topics):
        by_bucket = sorted(topics, key=lambda topic: topic.bucket)
        for (_, count), bucket in groupby(by_bucket, key=lambda topic: topic.bucket):
            _match_racks(list(bucket), count, assigned)
    for topic in topics:
        topic.fill(assigned, matching=False)
    return assigned


def _match_racks(topics: list[_Topic], count: int, assigned: list[list[int]]) -> None:
    """Topics of the same subscribers and size share partition numbers: those go to one member."""
    if len(topics) == 1:
        if topics[0].needs_matching:
            topics[0].fill(assigned, matching=True)
        return
    remaining = list(topics[0].subscribers)
    for number in range(count):
        for member in remaining:
            if all(t.room(member) > 0 and t.matches(member, t.start + number) for t in topics):
                break
        else:
            continue
        for topic in topics:
            topic.give(member, [topic.start + number], assigned)
        if not any(topic.room(member) > 0 for topic in topics):
            remaining.remove(member)


def _in_member_order(state: GroupState) -> list[int]:
    """Positions in the order of ``MemberInfo``: static members first, by ``group.instance.id``."""
    instances, ids = state.member_instances, state.member_ids
    keys = [
        (instance is None, java_string_key(instance or ""), java_string_key(member_id))
        for instance, member_id in zip(instances, ids, strict=True)
    ]
    return sorted(range(len(keys)), key=keys.__getitem__)
