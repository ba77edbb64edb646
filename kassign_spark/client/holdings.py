"""The partitions of each member in a group with differing subscriptions, and how they move.

The record of moves (``AbstractStickyAssignor.PartitionMovements``) may send another partition than
the one asked for: one about to go from B to A, where another of its topic has come from A to B,
lets that other one go back instead.
"""

from collections.abc import Iterable
from random import Random

from kassign_spark.client.group_state import Layout
from kassign_spark.client.hash_order import bucket, capacity_for, has_tree, topic_partition_hash
from kassign_spark.client.rack_bits import Racks


class Holdings:
    """Kept claims and what was handed out.

    Attributes:
        layout: of the group.
        topics_of: each member's topics in its own order; one given twice appears twice.
        subscribers: of each topic, by member id; as often as they name it.
        all_partitions: existing ones, those of topics with few subscribers first.
        owner: member by partition, -1 for nobody.
        partitions_of: partitions by member.
        sizes: how many each member holds.
    """

    def __init__(self, layout: Layout, topics_of: list[list[int]], by_id: list[int]) -> None:
        self.layout, self.topics_of = layout, topics_of
        self.subscribers: list[list[int]] = [[] for _ in layout.topics]
        for member in by_id:
            for topic in topics_of[member]:
                self.subscribers[topic].append(member)
        by_subscribers = sorted(range(len(layout.topics)), key=lambda t: len(self.subscribers[t]))
        self._topic_rank = {topic: rank for rank, topic in enumerate(by_subscribers)}
        self.all_partitions = [p for topic in by_subscribers for p in layout.existing(topic)]
        self.owner = [-1] * len(layout.topic_of)
        self.partitions_of: list[list[int]] = [[] for _ in by_id]
        self.sizes = [0] * len(by_id)

    def keep(self, owner: dict[int, int], racks: Racks | None) -> bool:
        """Keep the claims that members may still have; return whether some were dropped."""
        subscribed = [frozenset(topics) for topics in self.topics_of]
        topic_of = self.layout.topic_of
        must_revoke = False
        for partition, member in owner.items():
            if topic_of[partition] not in subscribed[member] or (
                racks is not None and racks.mismatch(member, partition)
            ):
                must_revoke = True
            else:
                self.take(partition, member)
        return must_revoke

    def take(self, partition: int, member: int) -> None:
        """Give a member an unowned partition."""
        self.owner[partition] = member
        self.partitions_of[member].append(partition)
        self.sizes[member] += 1

    def _unowned(self) -> list[int]:
        """Return partitions that nobody kept, in order.

        As in the constrained pass, the client's scan meets a kept partition that does not exist
        and takes everything after it for unowned.
        """
        layout, owner = self.layout, self.owner

        def place(partition: int) -> tuple[int, int]:
            return self._topic_rank[layout.topic_of[partition]], partition

        stuck = [place(p) for p in layout.missing if owner[p] >= 0]
        if not stuck:
            return [p for p in self.all_partitions if owner[p] < 0]
        end = min(stuck)
        return [p for p in self.all_partitions if owner[p] < 0 or place(p) > end]

    def hand_out(self, racks: Racks | None) -> list[int]:
        """Give unowned partitions to the least loaded subscribers; return those partitions."""
        pool = self._unowned()
        rest = pool
        size_of, topic_of = self.sizes.__getitem__, self.layout.topic_of
        if racks is not None:
            rest = []
            for partition in pool:
                fitting = [
                    member
                    for member in self.subscribers[topic_of[partition]]
                    if not racks.mismatch(member, partition)
                ]
                if fitting:
                    self.take(partition, min(fitting, key=size_of))
                else:
                    rest.append(partition)
        for partition in rest:
            self.take(partition, min(self.subscribers[topic_of[partition]], key=size_of))
        return pool

    def is_shared(self, topic: int) -> bool:
        """Return whether several members subscribe to the topic."""
        return len(self.subscribers[topic]) > 1

    def movable(self, partitions: Iterable[int]) -> list[int]:
        """Leave out partitions of topics that only one member subscribes to."""
        topic_of = self.layout.topic_of
        shared = [self.is_shared(topic) for topic in range(len(self.layout.topics))]
        return [partition for partition in partitions if shared[topic_of[partition]]]


class _HashSet:
    """Partitions of one topic in a ``java.util.HashSet``: the table grows and never shrinks."""

    def __init__(self) -> None:
        self.items: dict[int, int] = {}  # hash code by id, in the order of insertion
        self.capacity = capacity_for(0)

    def add(self, partition: int, code: int) -> None:
        self.items[partition] = code
        self.capacity = max(self.capacity, capacity_for(len(self.items)))

    def first(self) -> int:
        capacity = self.capacity
        return min(self.items, key=lambda partition: bucket(self.items[partition], capacity))


class Movements:
    """Partitions that have moved, with their source and destination.

    Attributes:
        met_tree: a set was asked for its first element whose order is not modelled.
        had_choice: a set of several was asked for an element.
    """

    def __init__(
        self, layout: Layout, topic_hashes: list[int], choose: Random | None = None
    ) -> None:
        """Start: ``choose`` draws an element of a set whose order is random."""
        self._layout, self._choose = layout, choose
        self._topic_hashes = topic_hashes
        self._moved: dict[int, tuple[int, int]] = {}
        self._sets: dict[tuple[int, int, int], _HashSet] = {}
        self.met_tree = self.had_choice = False

    def instead(self, partition: int, source: int, target: int) -> int:
        """Return the partition that moves where ``partition`` was asked to go to ``target``."""
        if not self._sets:
            return partition
        if partition in self._moved:
            source = self._moved[partition][0]
        reverse = self._sets.get((self._layout.topic_of[partition], target, source))
        if reverse is None:
            return partition
        self.had_choice = self.had_choice or len(reverse.items) > 1
        self.met_tree = self.met_tree or has_tree(reverse.items.values(), reverse.capacity)
        return reverse.first() if self._choose is None else self._choose.choice([*reverse.items])

    def record(self, partition: int, source: int, target: int) -> None:
        """Note a move; one back to where the partition came from first clears its record."""
        topic = self._layout.topic_of[partition]
        pair = self._moved.pop(partition, None)
        if pair is not None:
            source = pair[0]
            moved = self._sets[topic, *pair]
            del moved.items[partition]
            if not moved.items:
                del self._sets[topic, *pair]
            if source == target:
                return
        self._moved[partition] = (source, target)
        code = topic_partition_hash(self._topic_hashes[topic], self._layout.number_of[partition])
        self._sets.setdefault((topic, source, target), _HashSet()).add(partition, code)

    def snapshot(self) -> list[tuple[tuple[int, int, int], tuple[int, ...], int]]:
        """Return all that decides later moves, to compare states."""
        return sorted(
            (key, tuple(moved.items), moved.capacity) for key, moved in self._sets.items()
        )
