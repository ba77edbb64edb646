"""A group between two events inside a task, and the groups that rebalance as one batch."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from kassign_spark.groups.batch import Batch, Claims, claims_of
from kassign_spark.groups.numbers import Flags, Longs, key, starts
from kassign_spark.groups.racks import read_racks
from kassign_spark.groups.read import sets_of
from kassign_spark.inputs.rules import INT_MAX
from kassign_spark.limits import PARTITIONS_OF_A_GROUP
from kassign_spark.simulation.members import Event, Member, Texts
from kassign_spark.simulation.rebalance_timeline import RebalanceTimeline


class Codes:
    """Names as numbers, from 1, in Java's order of the strings; 0 is None."""

    def __init__(self, strings: pa.Array) -> None:
        self.strings = strings
        self.of: dict[str | None, int] = {None: 0}
        self.of.update(zip(strings.to_pylist(), range(1, len(strings) + 1), strict=True))
        self._of_lists: dict[int, tuple[Texts, Longs]] = {}

    def of_list(self, names: Texts) -> Longs:
        """Return the codes of a list; members share lists, and each is looked up once."""
        # The list is kept with them, so that no other one gets its id.
        coded = self._of_lists.get(id(names))
        if coded is None:
            codes = np.fromiter((self.of[name] for name in names), np.int64, len(names))
            coded = self._of_lists[id(names)] = names, codes
        return coded[1]


class Naming(NamedTuple):
    """All names that can turn up in a task."""

    members: Codes
    topics: Codes
    texts: Codes


class Topic(NamedTuple):
    """A topic as it is now: its partitions, and the racks of their replicas, where known.

    ``topic_id`` is Kafka's, or None; ``made`` how often it was made since the beginning.
    """

    size: int
    racks: list[list[str] | None] | None
    topic_id: str | None = None
    made: int = 0


class OwnedCodes(NamedTuple):
    """Claims of owners, by codes of names; in no order, and repeated as stated."""

    member: Longs
    topic: Longs
    partition: Longs

    def where(self, rows: Flags | Longs) -> "OwnedCodes":
        """Return some of the rows."""
        return OwnedCodes(*(column[rows] for column in self))


NOTHING = OwnedCodes(*(np.zeros(0, np.int64) for _ in range(3)))


@dataclass
class Group:
    """A group between two events.

    Attributes:
        cluster_id, group_id: its names; no group_id: it stands for a cluster without groups.
        members: also those that are away; empty: the group does not exist yet.
        topics: those that exist, of all that its members could ever read, and that events name.
        patterns: all names of topics that a pattern ever matches, in order; None: it is none.
        events: what is to happen to it, in order.
        owned: what members own.
        regexes: all names of topics that a regex of the broker's ever finds.
        target: the last target, in the order of its lists (groups of the new protocol).
        consumer: whether it is of the new protocol.
        target_is_ordered: whether the order of the target's lists is known.
        times_made: how many topics events have made.
        timelines: of a group of the new protocol, once it has had an event.
        drawn: the members whose ids are drawn.
        pending: those that are to come back before a target is computed.
        settings: of the group itself.
    """

    cluster_id: str
    group_id: str | None
    members: list[Member] = field(default_factory=list)
    topics: dict[str, Topic] = field(default_factory=dict)
    patterns: dict[str, Texts | None] = field(default_factory=dict)
    events: list[Event] = field(default_factory=list)
    owned: OwnedCodes = NOTHING
    regexes: dict[str, Texts] = field(default_factory=dict)
    target: OwnedCodes = NOTHING
    consumer: bool = False
    target_is_ordered: bool = True
    times_made: int = 0
    timelines: list[RebalanceTimeline] = field(default_factory=list)
    drawn: set[str] = field(default_factory=set)
    pending: set[str] = field(default_factory=set)
    settings: dict[str, int] = field(default_factory=dict)
    _resolved: dict[str, Texts | None] = field(default_factory=dict)

    def here(self) -> list[Member]:
        """Return the members that are not away."""
        return [member for member in self.members if not member.is_away]

    def change_topic(self, event: Event) -> None:
        """Create, grow or delete a topic."""
        topic, kind = event["topic"], event["kind"]
        before = self.topics.get(topic, Topic(0, None))
        if kind == "topic_disappears":
            self.topics.pop(topic, None)
        elif kind == "topic_changes_racks":
            self.topics[topic] = before._replace(racks=event["replica_racks"])
        elif kind == "topic_grows":
            # The racks of partitions that are yet to be made are not known.
            self.topics[topic] = before._replace(size=event["num_partitions"], racks=None)
        else:
            self.times_made += 1
            self.topics[topic] = Topic(event["num_partitions"], None, None, self.times_made)
        for pattern in list(self._resolved):
            if topic in (self.patterns[pattern] or ()):
                del self._resolved[pattern]

    def resolve(self, member: Member) -> Member:
        """Return the topics that a member subscribes to."""
        resolved = member.topics
        if member.pattern is not None and not member.topics:
            if member.pattern not in self._resolved:
                names = self.patterns[member.pattern]
                self._resolved[member.pattern] = (
                    None if names is None else tuple(n for n in names if n in self.topics)
                )
            resolved = self._resolved[member.pattern]
        return member if resolved is member.resolved else replace(member, resolved=resolved)

    def next_generation(self) -> None:
        """Move all members that took part in a rebalance to the group's new generation."""
        generations = [
            member.generation for member in self.members if member.generation is not None
        ]
        # Behind the largest there is none; that all who were in it have the same one is enough.
        following = min(max(generations, default=0), INT_MAX - 1) + 1
        self.members = [
            member if member.is_away else replace(member, generation=following)
            for member in self.members
        ]

    def partition_count(self) -> int:
        """Return how many partitions its members may get; or more, where those are few."""
        count = sum(topic.size for topic in self.topics.values())
        if count > PARTITIONS_OF_A_GROUP:
            read = {name for member in self.here() for name in member.resolved or ()}
            count = sum(topic.size for name, topic in self.topics.items() if name in read)
        return count


def batch_of(groups: Sequence[Group], naming: Naming) -> tuple[Batch, Claims, list[Member]]:
    """Build a batch of the present members, their topics and what they own.

    Returns:
        The batch, what is claimed in it, and its members, in its order.
    """
    present: list[Member] = []
    member_group: list[int] = []
    subscription: list[int] = []
    lists: list[Longs] = []
    member_code, text_code = naming.members.of, naming.texts.of
    places: dict[tuple[int, int], int] = {}
    for number, group in enumerate(groups):
        members = sorted(group.here(), key=lambda member: member_code[member.member_id])
        for member in members:
            names = member.resolved or ()
            place = places.setdefault((number, id(names)), len(lists))
            if place == len(lists):
                lists.append(naming.topics.of_list(names))
            subscription.append(place)
        present += members
        member_group += [number] * len(members)
    topics_of_lists = np.concatenate([np.zeros(0, np.int64), *lists])
    lengths = np.array([len(names) for names in lists], np.int64)
    of_list = np.array([number for number, _ in places], np.int64)
    by_key = {
        number << 32 | naming.topics.of[name]: topic
        for number, group in enumerate(groups)
        for name, topic in group.topics.items()
    }
    topic_keys = key(np.repeat(of_list, lengths), topics_of_lists)
    keys = np.intersect1d(topic_keys, np.fromiter(by_key, np.int64, len(by_key)))
    topics = [by_key[number] for number in keys.tolist()]
    size = np.array([topic.size for topic in topics], np.int64)
    subscribed, set_topic, set_start = sets_of(of_list, topics_of_lists, starts(lengths), keys)
    rack = np.array([text_code[member.rack] for member in present], np.int64)
    of_members = naming.texts.strings.take(pa.array(rack - 1, mask=rack == 0))
    of_topics = pa.array([topic.racks for topic in topics], pa.list_(pa.list_(pa.string())))
    batch = Batch(
        cluster_names=pa.array([group.cluster_id for group in groups], pa.string()),
        group_names=pa.array([group.group_id for group in groups], pa.string()),
        member_names=naming.members.strings,
        topic_names=naming.topics.strings,
        texts=naming.texts.strings,
        cluster=np.arange(1, len(groups) + 1),
        group=np.arange(1, len(groups) + 1),
        member_group=np.array(member_group, np.int64),
        member_name=np.array([member_code[member.member_id] for member in present], np.int64),
        generation=_numbers([member.generation for member in present]),
        member_seq=_numbers([member.seq for member in present]),
        instance=np.array([text_code[member.instance] for member in present], np.int64),
        rack=rack,
        assignor=np.array([text_code[member.assignor] for member in present], np.int64),
        regex=np.zeros(len(present), np.int64),
        client=np.array([text_code[member.client] for member in present], np.int64),
        is_leader=np.array([member.is_leader for member in present], bool),
        subscription=np.array(subscription, np.int64),
        list_topics=topics_of_lists,
        list_start=starts(lengths),
        subscribed=subscribed,
        set_topic=set_topic,
        set_start=set_start,
        topic_group=keys >> 32,
        topic_name=keys & 0xFFFF_FFFF,
        size=size,
        racks=read_racks(of_topics, size, of_members),
    )
    counts = np.array([len(group.owned.member) for group in groups], np.int64)
    owned = OwnedCodes(
        *(np.concatenate(column) for column in zip(*(g.owned for g in groups), strict=True))
    )
    claims = claims_of(batch, np.repeat(np.arange(len(groups)), counts), *owned)
    return batch, claims, present


def owned_of(batch: Batch, owner: Longs) -> list[OwnedCodes]:
    """Return the partitions of each group's members; ``owner`` of each slot is a member or -1."""
    slots = np.flatnonzero(owner >= 0)
    topic = batch.slot_topic[slots]
    ends = np.searchsorted(batch.topic_group[topic], np.arange(1, batch.group_count))
    columns = (
        batch.member_name[owner[slots]],
        batch.topic_name[topic],
        batch.slot_partition[slots],
    )
    cut = (np.split(column, ends) for column in columns)
    return [OwnedCodes(*of_group) for of_group in zip(*cut, strict=True)]


def _numbers(values: Sequence[int | None]) -> Longs:
    return np.array([-1 if value is None else value for value in values], np.int64)
