"""franz-go's sticky assignors for members that subscribe to different topics (kgo, 1.22).

Partitions that nobody has go to the reader with the fewest, topic by topic. Then whoever has least
steals, along the shortest path, from somebody who has at least two more, until nobody can. At last
rotations give back what moved in vain (``franz_go_repair``). Given the order of topics, nothing is
drawn.
"""

import heapq
from collections.abc import Sequence
from typing import NamedTuple

from kassign_spark.client.franz_go_repair import repair_plan
from kassign_spark.client.lots import NotModelled
from kassign_spark.client.member_heap import MemberHeap

_MOST_WORK = 50_000_000
"""Subscriptions times partitions: each steal may look at all subscriptions."""


class Readers(NamedTuple):
    """Topics in the order that was drawn, and who reads them; members are in the library's order.

    Attributes:
        partitions: ids of each topic's partitions, ascending.
        of_topic: members that read it.
        topics_of: of each member the places of its topics.
    """

    partitions: Sequence[Sequence[int]]
    of_topic: list[list[int]]
    topics_of: list[list[int]]


def assign_differing(readers: Readers, plan: list[list[int]]) -> list[list[int]]:
    """Assign the partitions of a group.

    Args:
        readers: the group.
        plan: what each member keeps.

    Returns:
        partitions by member.

    Raises:
        NotModelled: the group is too large for it.
    """
    subscriptions, sizes = map(len, readers.topics_of), map(len, readers.partitions)
    if sum(subscriptions) * sum(sizes) > _MOST_WORK:
        raise NotModelled
    original = {p: member for member, partitions in enumerate(plan) for p in partitions}
    balancing = _Balancing(readers, plan)
    balancing.hand_out(original)
    balancing.balance()
    return repair_plan(readers.of_topic, readers.partitions, balancing.plan, original)


class _Balancing:
    """A group while members steal; lists change as the library changes them.

    Attributes:
        plan: partitions by member.
    """

    def __init__(self, readers: Readers, plan: list[list[int]]) -> None:
        self.plan, self._readers = plan, readers
        self._topic_of = {p: t for t, each in enumerate(readers.partitions) for p in each}
        self._levels: dict[int, list[int]] = {}
        # Of each topic its holders in the order in which they first held some, and what they hold.
        self._holders: list[dict[int, list[int]]] = [{} for _ in readers.partitions]
        self._holder: dict[int, int] = {}

    def hand_out(self, original: dict[int, int]) -> None:
        """Give unowned partitions to the least loaded reader."""
        for topic, partitions in enumerate(self._readers.partitions):
            free = [partition for partition in partitions if partition not in original]
            if free and self._readers.of_topic[topic]:
                counts = [*map(len, self.plan)]
                takers = MemberHeap(self._readers.of_topic[topic], counts).take(len(free))
                for partition, member in zip(free, takers, strict=True):
                    self.plan[member].append(partition)

    def balance(self) -> None:
        """Steal for the least loaded members until none can."""
        holder = {p: member for member, partitions in enumerate(self.plan) for p in partitions}
        for topic, partitions in enumerate(self._readers.partitions):
            for partition in partitions:
                if partition in holder:
                    self._holders[topic].setdefault(holder[partition], []).append(partition)
        self._holder = holder
        for member, partitions in enumerate(self.plan):
            self._levels.setdefault(len(partitions), []).append(member)
        while len(self._levels) > 1:
            least, most = min(self._levels), max(self._levels)
            if most <= least + 1:
                return
            level, top = self._levels[least], self._levels[most]
            while level:
                path = self._path(level[0])
                for source, target, partition in path:
                    self._steal(source, target, partition)
                if not path:
                    self._leave(least, level[0])
                elif not top:
                    break

    def _path(self, member: int) -> list[tuple[int, int, int]]:
        """Find a path of steals that ends at a member with at least two more, last steal first.

        Of the members that can be reached the most loaded comes first, then the nearest, then the
        first.
        """
        size = len(self.plan[member])
        reached: dict[int, tuple[int, int] | None] = {member: None}
        heap = [(-size, 0, member)]
        while heap:
            negative, distance, current = heapq.heappop(heap)
            if -negative > size + 1:
                path = []
                while (step := reached[current]) is not None:
                    path.append((current, *step))
                    current = step[0]
                return path
            for topic in self._readers.topics_of[current]:
                for holder, partitions in self._holders[topic].items():
                    if partitions and holder not in reached:
                        reached[holder] = current, partitions[0]
                        entry = (-len(self.plan[holder]), distance + 1, holder)
                        heapq.heappush(heap, entry)
        return []

    def _steal(self, source: int, target: int, partition: int) -> None:
        before = len(self.plan[source]), len(self.plan[target])
        swap_out(self.plan[source], partition)
        self.plan[target].append(partition)
        for member, size in zip((source, target), before, strict=True):
            self._leave(size, member)
            self._levels.setdefault(len(self.plan[member]), []).append(member)
        holders = self._holders[self._topic_of[partition]]
        swap_out(holders[self._holder[partition]], partition)
        self._holder[partition] = target
        holders.setdefault(target, []).append(partition)

    def _leave(self, size: int, member: int) -> None:
        """Remove a member from a level, unless it has been set aside."""
        level = self._levels.get(size)
        if level is None:
            raise NotModelled  # the library fails
        if member in level:
            swap_out(level, member)
        if not level:
            del self._levels[size]


def swap_out(items: list[int], item: int) -> None:
    """Remove an item; the last one takes its place."""
    items[items.index(item)] = items[-1]
    items.pop()
