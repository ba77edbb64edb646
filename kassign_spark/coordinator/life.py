"""A group of the new protocol from event to event: what raises its epoch, and its targets.

The coordinator's side (``GroupMetadataManager``, Kafka 4.4.0): members in the order of its table,
the group's epoch, the last target with the order of its lists, and the regexes it has resolved.
Time is not in it: who calls says when a target is computed.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from kassign_spark.coordinator.assignor_votes import choose_assignor
from kassign_spark.coordinator.listing import list_targets
from kassign_spark.coordinator.member_table import MemberTable
from kassign_spark.coordinator.next_target import TargetOutcome, next_target
from kassign_spark.coordinator.orders import Ints, drawn_id
from kassign_spark.coordinator.target_state import ConsumerGroupState

Resolve = Callable[[str], tuple[str, ...]]
"""The names of existing topics that a regex finds."""


@dataclass(frozen=True, slots=True)
class GroupMember:
    """A member as the coordinator knows it.

    Attributes:
        member_id: drawn by its client.
        instance_id: ``group.instance.id``, or None.
        topics: names that it lists.
        regex: ``SubscriptionPattern``, or None.
        vote: ``group.remote.assignor``, or None.
        is_away: static, and gone with the epoch -2.
    """

    member_id: str
    instance_id: str | None = None
    topics: tuple[str, ...] = ()
    regex: str | None = None
    vote: str | None = None
    is_away: bool = False


class TopicState(NamedTuple):
    """A topic as it is now.

    Attributes:
        size: partitions.
        topic_id: Kafka's 22 characters; None: not known.
        key: the id, or what stands in for it; another one where the topic was made again.
        racks: of the replicas of each partition, in any form that can be compared.
    """

    size: int
    topic_id: str | None
    key: str
    racks: object = None


class TargetList(NamedTuple):
    """A member's target in the order of the coordinator's list.

    Attributes:
        topics: codes of ids, as in ``CoordinatedGroup.code``.
        partitions: numbers.
        is_ordered: whether the order is really the coordinator's.
    """

    topics: Ints
    partitions: Ints
    is_ordered: bool = True


NOTHING = TargetList(np.zeros(0, np.int64), np.zeros(0, np.int64))


@dataclass
class CoordinatedGroup:
    """A group between two events."""

    table: MemberTable[GroupMember] = field(default_factory=MemberTable)
    topics: dict[str, TopicState] = field(default_factory=dict)
    targets: dict[str, TargetList] = field(default_factory=dict)
    resolved: dict[str, tuple[str, ...]] = field(default_factory=dict)
    group_epoch: int = 1
    assignment_epoch: int = 1
    is_order_known: bool = True
    has_new_regex: bool = False
    keys: list[str] = field(default_factory=list)
    newcomers: frozenset[str] = frozenset()
    counts_as_differing: bool = False
    has_lost_topics: bool = False
    _codes: dict[str, int] = field(default_factory=dict)

    @property
    def members(self) -> list[GroupMember]:
        """Return the members in the coordinator's order."""
        return self.table.members

    def code(self, key: str) -> int:
        """Number a topic's id; the same for the group's whole life."""
        code = self._codes.setdefault(key, len(self.keys))
        if code == len(self.keys):
            self.keys.append(key)
        return code

    def join(self, member: GroupMember) -> bool:
        """Add a new member; return whether the epoch rises.

        One that subscribes to nothing yet raises nothing, unless its vote changes the choice of
        assignor; its regex does when it is resolved.
        """
        choice = self.choice()
        self.table.insert(member)
        self.newcomers |= {member.member_id}
        self.counts_as_differing = False
        rises = bool(member.topics) or member.regex in self.resolved or choice != self.choice()
        self.group_epoch += rises
        self.has_new_regex |= member.regex is not None and member.regex not in self.resolved
        return rises

    def leave(self, member_ids: Sequence[str]) -> int:
        """Remove members that leave for good or are fenced; each raises the epoch."""
        gone = set(member_ids)
        self.table.remove(gone)
        for member_id in gone:
            self.targets.pop(member_id, None)
        self.group_epoch += len(gone)
        if not self.members:
            self.assignment_epoch = self.group_epoch
        before = self.resolved
        self._forget_regexes()
        self.counts_as_differing = self._meets_forgotten(before)
        return len(gone)

    def _meets_forgotten(self, before: dict[str, tuple[str, ...]]) -> bool:
        """Return whether topics of forgotten regexes still make subscriptions differ.

        ``ConsumerGroup.removeMember`` says how the others subscribe while the regex of the member
        is still known; the next computation goes by that.
        """
        forgotten = {n for r, names in before.items() if r not in self.resolved for n in names}
        topics = set().union(*self.resolved.values())
        if any(member.regex for member in self.members):
            return bool(forgotten & topics)
        return any(forgotten.difference(member.topics) for member in self.members)

    def take_over(self, member_id: str, member: GroupMember) -> bool:
        """Bring back a static member that left with epoch -2; return whether the epoch rises.

        Its new member id inherits the target.
        """
        before, choice = self.table.get(member_id), self.choice()
        self.table.remove((member_id,))
        self.table.insert(replace(member, vote=member.vote or before.vote))
        self.newcomers |= {member.member_id}
        self.targets[member.member_id] = self.targets.pop(member_id, NOTHING)
        return self._changed(before, member, choice)

    def resubscribe(self, member: GroupMember) -> bool:
        """Change a member's topics or its vote for an assignor; return whether the epoch rises."""
        before, choice = self.table.get(member.member_id), self.choice()
        self.table.put(replace(member, vote=member.vote or before.vote))
        self.newcomers -= {member.member_id}
        return self._changed(before, member, choice)

    def change_topics(self, topics: dict[str, TopicState]) -> bool:
        """Change the cluster's topics; return whether the epoch rises at the next heartbeat.

        The hash of what is subscribed to covers ids, counts and racks; a created topic, of
        whatever name, has all regexes resolved again.
        """
        before = self.topics
        self.topics = topics
        subscribed = self._subscribed()
        rises = any(before.get(name) != topics.get(name) for name in subscribed)
        self.group_epoch += rises
        self.counts_as_differing &= not rises
        topic_keys = {topic.key for topic in before.values()}
        self.has_new_regex |= any(topic.key not in topic_keys for topic in topics.values())
        return rises

    def choice(self) -> str:
        """Return the assignor that the members' votes choose."""
        return choose_assignor([member.vote for member in self.members]).assignor

    def state(self, speaker: str | None = None) -> ConsumerGroupState:
        """Return the assignor's input; the member whose heartbeat computes comes last.

        Args:
            speaker: whose own heartbeat, in which it says something new, computes. Its names are
                in the order of its request, those of others sorted, as their records are.
        """
        last = speaker if speaker in self.newcomers else None
        members = sorted(self.members, key=lambda member: member.member_id == last)
        names = sorted(self._subscribed() & self.topics.keys())
        codes = [self.code(self.topics[name].key) for name in names]
        of_code = np.full(len(self.keys), -1)
        of_code[codes] = np.arange(len(names))
        lists = [self.targets.get(member.member_id, NOTHING) for member in members]
        counts = [len(target.topics) for target in lists]
        topics = of_code[np.concatenate([NOTHING.topics, *(target.topics for target in lists)])]
        exists = topics >= 0
        positions = np.concatenate([NOTHING.topics, *(np.arange(count) for count in counts)])
        is_ordered = all(target.is_ordered for target in lists)
        of_lists = np.repeat(np.arange(len(members)), counts)
        partitions = np.concatenate([NOTHING.topics, *(target.partitions for target in lists)])
        return ConsumerGroupState(
            member_ids=[member.member_id for member in members],
            subscriptions=[
                member.topics if member.member_id == speaker else tuple(sorted(member.topics))
                for member in members
            ],
            topics=names,
            num_partitions=[self.topics[name].size for name in names],
            topic_ids=[self.topics[name].topic_id for name in names],
            instance_ids=[member.instance_id for member in members],
            regexes=[member.regex for member in members],
            resolved=self.resolved,
            votes=[member.vote for member in members],
            target_members=of_lists[exists],
            target_topics=topics[exists],
            target_partitions=partitions[exists],
            target_positions=positions[exists] if is_ordered else positions[:0],
            is_order_known=self.is_order_known,
            counts_as_differing=self.counts_as_differing,
        )

    def compute(self, speaker: str | None = None) -> TargetOutcome:
        """Compute the target for the group's epoch, and keep it; ``speaker``: see ``state``."""
        state = self.state(speaker)
        self.newcomers, self.counts_as_differing = frozenset(), False
        outcome = next_target(state)
        codes = np.array([self.code(self.topics[name].key) for name in state.topics], np.int64)
        lists = list_targets(state, outcome, [self.keys[code] for code in codes.tolist()])
        for member_id, listed in zip(state.member_ids, lists, strict=True):
            before = self.targets.get(member_id, NOTHING)
            after = TargetList(codes[listed.topics], listed.partitions, listed.is_ordered)
            if not listed.is_unchanged or len(before.topics) != len(after.topics):
                self.targets[member_id] = after
        self.assignment_epoch = self.group_epoch
        return outcome

    def resolve_regexes(self, resolve: Resolve) -> bool:
        """Resolve all regexes, where one is new or a topic was created; whether the epoch rises.

        A broker does so in the background after a heartbeat, 10 s after the last time or later.
        """
        if not self.has_new_regex:
            return False
        self.has_new_regex = False
        regexes = dict.fromkeys(m.regex for m in self.members if m.regex is not None)
        topics_of = {regex: resolve(regex) for regex in regexes}
        rises = any(set(self.resolved.get(r, ())) != set(names) for r, names in topics_of.items())
        rises |= self.has_lost_topics
        self.resolved, self.has_lost_topics = topics_of, False
        self.group_epoch += rises
        return rises

    def _changed(self, before: GroupMember, after: GroupMember, choice: str) -> bool:
        self.counts_as_differing = False
        rises = set(before.topics) != set(after.topics) or choice != self.choice()
        subscribed = self._subscribed()
        if before.regex != after.regex:
            is_new = after.regex is not None and after.regex not in self.resolved
            self.has_new_regex |= is_new
            rises |= not is_new
        self.group_epoch += rises
        self._forget_regexes()
        # The hash of the subscribed topics is computed again when the next regex is resolved.
        gone = (subscribed - self._subscribed()) & self.topics.keys()
        self.has_lost_topics |= bool(gone) and not rises
        return rises

    def _forget_regexes(self) -> None:
        used = {member.regex for member in self.members}
        self.resolved = {r: names for r, names in self.resolved.items() if r in used}

    def _subscribed(self) -> set[str]:
        lists = {member.topics for member in self.members}
        return set().union(*lists, *self.resolved.values())


def topic_state(name: str, size: int, topic_id: str | None, racks: object = None) -> TopicState:
    """Return a topic that is there; a stand-in is drawn for an id that is not known."""
    return TopicState(size, topic_id, topic_id or drawn_id(name), racks)
