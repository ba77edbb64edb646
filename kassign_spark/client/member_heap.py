"""A binary heap of members by the number of their partitions, as franz-go keeps it.

Ties are decided by the shape of the heap, so a heap of another kind would give another order.
"""

from collections.abc import Sequence


class MemberHeap:
    """Members, the one with the fewest partitions on top; ``counts`` grow as they take some."""

    def __init__(self, members: Sequence[int], counts: list[int]) -> None:
        self._members, self._counts = [*members], counts
        for place in reversed(range(len(self._members) // 2)):
            self._sink(place)

    def take(self, count: int) -> list[int]:
        """Return the member that gets each of ``count`` partitions in turn."""
        takers = []
        for _ in range(count):
            takers.append(self._members[0])
            self._counts[self._members[0]] += 1
            self._sink(0)
        return takers

    def _sink(self, place: int) -> None:
        members, counts = self._members, self._counts
        while (child := 2 * place + 1) < len(members):
            other = child + 1
            if other < len(members) and counts[members[other]] < counts[members[child]]:
                child = other
            if counts[members[place]] <= counts[members[child]]:
                return
            members[place], members[child] = members[child], members[place]
            place = child
