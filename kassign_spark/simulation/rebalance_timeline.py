"""A possible timeline of a group of the new protocol: the ids that members draw decide it.

A client draws its member id when it starts, and `uniform` goes through members by their ids. So a
simulation follows several draws side by side: what is the same in all does not depend on them.
"""

import base64
import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from kassign_spark.coordinator.life import (
    NOTHING,
    CoordinatedGroup,
    GroupMember,
    TargetList,
    TopicState,
)
from kassign_spark.coordinator.next_target import TargetOutcome
from kassign_spark.coordinator.reconcile import Pairs, reconcile
from kassign_spark.coordinator.reconcile import Steps as Reconciled
from kassign_spark.groups.numbers import Longs, key

_ID = re.compile(r"[A-Za-z0-9_-]{22}")


class Spread(NamedTuple):
    """The spread of an outcome, whatever the names.

    Attributes:
        loads: how many partitions members have, ascending.
        moved: partitions that have another owner than before.
        owners: who has which, by names.
    """

    loads: list[int]
    moved: int
    owners: dict[str, list[int]]


@dataclass
class RebalanceTimeline:
    """A group, and what its clients hold, by the names that events use.

    Attributes:
        salt: which draw it is; 0: the one that is reported.
        life: the coordinator's side.
        ids: of each name the member id.
        owned: what the client of each name has.
        before: ``owned`` before the event, members that go included.
        names: of topics by their ids, also of those that are no more.
    """

    salt: int
    life: CoordinatedGroup
    ids: dict[str, str]
    owned: dict[str, TargetList]
    before: dict[str, TargetList] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._name(self.life.topics)

    def copy(self, salt: int) -> "RebalanceTimeline":
        """Return a copy of the timeline so far."""
        life = replace(
            self.life,
            table=self.life.table.copy(),
            topics=dict(self.life.topics),
            targets=dict(self.life.targets),
            resolved=dict(self.life.resolved),
            keys=list(self.life.keys),
            _codes=dict(self.life._codes),
        )
        return RebalanceTimeline(
            salt, life, dict(self.ids), dict(self.owned), dict(self.before), self.names
        )

    def join(self, name: str, member: GroupMember) -> bool:
        """Add a member under an id of its own."""
        self.ids[name] = member.member_id
        return self.life.join(member)

    def leave(self, names: list[str]) -> bool:
        """Remove members."""
        self.life.leave([self.ids.pop(name) for name in names])
        for name in names:
            self.owned.pop(name, None)
        return bool(names)

    def take_over(self, name: str, new_name: str, member: GroupMember) -> bool:
        """Bring back a static member under another id."""
        before = self.ids.pop(name)
        self.ids[new_name] = member.member_id
        self.owned[new_name] = self.owned.pop(name, NOTHING)
        self.before[new_name] = self.before.pop(name, NOTHING)
        return self.life.take_over(before, member)

    def resubscribe(self, name: str, member: GroupMember) -> bool:
        """Change a member's subscription."""
        return self.life.resubscribe(replace(member, member_id=self.ids[name]))

    def change_topics(self, topics: dict[str, TopicState]) -> bool:
        """Change the topics."""
        self._name(topics)
        return self.life.change_topics(topics)

    def _name(self, topics: dict[str, TopicState]) -> None:
        self.names.update({topic.key: name for name, topic in topics.items()})

    def compute(self, joiner: str | None) -> TargetOutcome:
        """Compute the target; ``joiner`` by its name, where it is its own heartbeat."""
        return self.life.compute(None if joiner is None else self.ids[joiner])

    def targets(self) -> dict[str, TargetList]:
        """Return the target by names."""
        return {
            name: self.life.targets.get(member_id, NOTHING) for name, member_id in self.ids.items()
        }

    def reconcile(self) -> tuple[Reconciled, list[str]]:
        """Follow the members from what they hold to the target; and their names, by place."""
        names = sorted(self.ids)
        away = {member.member_id for member in self.life.members if member.is_away}
        is_away = np.array([self.ids[name] in away for name in names], bool)
        owned, target = pairs_of(self.owned, names), pairs_of(self.targets(), names)
        return reconcile(owned, target, is_away), names

    def spread(self) -> Spread:
        """Return the spread of the target."""
        after = self.targets()
        had = self._owners(self.before)
        has = self._owners(after)
        moved = sum(had[partition] != name for partition, name in has.items() if partition in had)
        return Spread(
            sorted(len(listed.topics) for listed in after.values()),
            moved,
            {name: sorted(numbers_of(listed).tolist()) for name, listed in after.items()},
        )

    @staticmethod
    def _owners(lists: Mapping[str, TargetList]) -> dict[int, str]:
        return {p: name for name, listed in lists.items() for p in numbers_of(listed).tolist()}


def numbers_of(listed: TargetList) -> Longs:
    """Return partitions as single numbers: above 32 bits the code of the topic's id."""
    return key(listed.topics, listed.partitions)


def pairs_of(lists: Mapping[str, TargetList], names: list[str]) -> Pairs:
    """Return the partitions of members, who are numbered by their places in ``names``."""
    lists_of_members = [lists.get(name, NOTHING) for name in names]
    counts = [len(listed.topics) for listed in lists_of_members]
    return Pairs(
        np.repeat(np.arange(len(names)), counts),
        np.concatenate([NOTHING.topics, *map(numbers_of, lists_of_members)]),
    )


def is_kafka_id(name: str) -> bool:
    """Return whether a name looks like a member id that the Java client draws."""
    return _ID.fullmatch(name) is not None


def draw_id(*parts: object) -> str:
    """Draw a member id in the client's form, always the same for the same things."""
    text = "\0".join(map(str, parts))
    drawn = bytearray(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:16])
    drawn[6], drawn[8] = drawn[6] & 0x0F | 0x40, drawn[8] & 0x3F | 0x80
    return base64.urlsafe_b64encode(bytes(drawn)).decode().rstrip("=")
