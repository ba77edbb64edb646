"""RangeAssignor with racks: partitions go first to members of their replicas' racks."""

from itertools import groupby

from kassign_spark.client.group_state import GroupState, Layout, readers_of_topics
from kassign_spark.client.rack_bits import Racks, need_matching, number_racks
from kassign_spark.client_libraries import LIBRDKAFKA


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

    def has_rack(self, member: int) -> bool:
        return self.racks is not None and self.racks.of_member[member] != 0

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


def assign_range(state: GroupState, layout: Layout, order: list[int]) -> list[list[int]]:
    """Return partitions by member as Kafka's ``RangeAssignor`` does, with racks or without.

    Args:
        state: the group, of Java's client or librdkafka.
        layout: its partitions.
        order: positions of its members, in that client's order.

    librdkafka differs in topics of the same readers and size: there it does not ask whether racks
    matter, and a member without a rack matches no partition.
    """
    racks = number_racks(state, layout)
    readers = readers_of_topics(state, layout, order)
    topics = [_Topic(layout, topic, members, racks) for topic, members in enumerate(readers)]
    assigned: list[list[int]] = [[] for _ in state.member_ids]
    is_librdkafka = state.client == LIBRDKAFKA
    if any(topic.needs_matching for topic in topics) or (is_librdkafka and racks is not None):
        by_bucket = sorted(topics, key=lambda topic: topic.bucket)
        for (_, count), bucket in groupby(by_bucket, key=lambda topic: topic.bucket):
            _match_racks(list(bucket), count, assigned, needs_rack=is_librdkafka)
    for topic in topics:
        topic.fill(assigned, matching=False)
    return assigned


def _match_racks(
    topics: list[_Topic], count: int, assigned: list[list[int]], *, needs_rack: bool
) -> None:
    """Assign topics with the same subscribers and size together: equal numbers go to one member.

    ``needs_rack``: a member without a rack matches none of them.
    """
    if len(topics) == 1:
        if topics[0].needs_matching:
            topics[0].fill(assigned, matching=True)
        return
    remaining = [
        member for member in topics[0].subscribers if not needs_rack or topics[0].has_rack(member)
    ]
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
