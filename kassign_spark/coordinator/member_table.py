"""The coordinator's table of a group's members, and the order in which it iterates."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

from kassign_spark.coordinator.orders import slot_of


class _HasId(Protocol):
    @property
    def member_id(self) -> str: ...


_Member = TypeVar("_Member", bound=_HasId)


@dataclass
class MemberTable(Generic[_Member]):
    """Members as ``TimelineHashMap`` iterates over them: by slot, the latest of a slot first.

    ``ConsumerGroupDescribe`` answers in this order, too. The table doubles and never shrinks.
    """

    members: list[_Member] = field(default_factory=list)
    _bits: int = 1

    def admit(self, members: Iterable[_Member]) -> None:
        """Start from members in the order that the coordinator lists them in."""
        self.members = list(members)
        self._grow(len(self.members))

    def insert(self, member: _Member) -> None:
        """Put a new member where the table has it: first of its slot."""
        self._grow(len(self.members) + 1)
        slot = slot_of(member.member_id, self._bits)
        place = sum(slot_of(other.member_id, self._bits) < slot for other in self.members)
        self.members.insert(place, member)

    def get(self, member_id: str) -> _Member:
        """Return the member of that id, which is there."""
        return self.members[self._place(member_id)]

    def put(self, member: _Member) -> None:
        """Replace a member in its place."""
        self.members[self._place(member.member_id)] = member

    def remove(self, member_ids: Collection[str]) -> None:
        """Forget members; the others keep their places."""
        self.members = [member for member in self.members if member.member_id not in member_ids]

    def copy(self) -> "MemberTable[_Member]":
        """Return another table of the same members."""
        return MemberTable(list(self.members), self._bits)

    def _place(self, member_id: str) -> int:
        return next(i for i, m in enumerate(self.members) if m.member_id == member_id)

    def _grow(self, count: int) -> None:
        """Double the table as often as this number of members needs.

        ``BaseHashTable`` looks for room for one more also when a member takes its own place, as
        each does after it has joined.
        """
        while 3 * (count + 1) > 4 << self._bits:
            self._bits += 1
            slots = {m.member_id: slot_of(m.member_id, self._bits) for m in self.members}
            self.members.sort(key=lambda member: slots[member.member_id])
