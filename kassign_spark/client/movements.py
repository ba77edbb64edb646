"""The sticky assignors' record of moves, which may send another partition than the one asked for.

(``AbstractStickyAssignor.PartitionMovements``.) A partition about to go from B to A, where another
of its topic has come from A to B, lets that other one go back instead.
"""

from kassign_spark.client.hash_order import bucket, capacity_for, has_tree, topic_partition_hash
from kassign_spark.client.state import Layout

Snapshot = list[tuple[tuple[int, int, int], tuple[int, ...], int]]


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
    """Which partitions have moved, from where and to where.

    Attributes:
        met_tree: a set was asked for its first element whose order is not modelled.
    """

    def __init__(self, layout: Layout, topic_hashes: list[int]) -> None:
        self._layout = layout
        self._topic_hashes = topic_hashes
        self._moved: dict[int, tuple[int, int]] = {}
        self._sets: dict[tuple[int, int, int], _HashSet] = {}
        self.met_tree = False

    def instead(self, partition: int, source: int, target: int) -> int:
        """Give the partition that moves where ``partition`` was asked to go to ``target``."""
        if not self._sets:
            return partition
        if partition in self._moved:
            source = self._moved[partition][0]
        reverse = self._sets.get((self._layout.topic_of[partition], target, source))
        if reverse is None:
            return partition
        self.met_tree = self.met_tree or has_tree(reverse.items.values(), reverse.capacity)
        return reverse.first()

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

    def snapshot(self) -> Snapshot:
        """Give all that decides later moves, to compare states."""
        return sorted(
            (key, tuple(moved.items), moved.capacity) for key, moved in self._sets.items()
        )
