"""Many groups as arrays inside a task: what the kernels work on, and give their answers in.

All is numbered from 0 over the whole batch and sorted by group, so that a part of the groups is a
part of each array. Names are numbers too, in the order of Java's strings; they come back where an
answer leaves the task.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kassign_spark.client.hash_order import bucket_keys, java_hash_codes, map_capacities
from kassign_spark.coordinator.orders import inverse
from kassign_spark.groups.leading_clients import client_numbers, leading_clients, order_keys
from kassign_spark.groups.numbers import (
    Flags,
    Longs,
    find,
    key,
    ranges,
    rows_by,
    starts,
    utf_8_rank,
)
from kassign_spark.groups.racks import RackBits


@dataclass(frozen=True)
class Claims:
    """Claims of members to partitions, one per row; in no particular order.

    Attributes:
        member: who says so; -1: nobody of the group.
        name: code of the member's name.
        group: whose partition it is.
        topic: code of the topic's name.
        partition: its number.
        slot: the partition, where it exists and somebody subscribes to its topic; else -1.
    """

    member: Longs
    name: Longs
    group: Longs
    topic: Longs
    partition: Longs
    slot: Longs

    def where(self, rows: Flags | Longs) -> "Claims":
        """Return some of the rows."""
        if rows.dtype == bool and rows.all():
            return self
        return Claims(**{name: column[rows] for name, column in vars(self).items()})

    def by_group(self, group_count: int) -> "tuple[Claims, Longs]":
        """Return the rows group after group; and where those of each group begin, and the end."""
        sorted_claims = self.where(np.argsort(self.group, kind="stable"))
        return sorted_claims, starts(np.bincount(self.group, minlength=group_count))


class Subscribers(NamedTuple):
    """Members that may take a topic: ``size`` entries of ``Batch.rank`` from ``first``."""

    member: Longs
    first: Longs
    size: Longs


@dataclass(frozen=True)
class Batch:
    """Groups, their members, subscriptions, topics and partitions.

    Attributes:
        cluster_names, group_names, member_names, topic_names, texts: strings by code - 1.
        cluster: of each group its cluster's code; ``group``: its own name's code.
        member_group: of each member; members are sorted by group and Java's order of ids.
        member_name: code.
        generation: what the member says; -1: nothing.
        member_seq: its place in the coordinator's list; -1: not known.
        instance, rack, assignor, regex, client: codes of texts; 0: none.
        is_leader: of each member, as far as it is known.
        subscription: of each member the number of its list of topics.
        list_topics: names' codes of one list after the other, as given; ``list_start``: where each
            begins, and the end.
        subscribed: of each list the number of the set of topics that it names.
        set_topic: the topics (indices) of one set after the other, of those that exist, ascending;
            ``set_start``: where each begins, and the end.
        topic_group: of each topic that exists and is subscribed to; topics are sorted by group
            and Java's order of names. One that two groups read appears twice.
        topic_name: code.
        size: its partitions, at least one.
        racks: of replicas and members; None where either has none.
        has_positions: whether claims are in the order of their members' lists.
    """

    cluster_names: pa.Array
    group_names: pa.Array
    member_names: pa.Array
    topic_names: pa.Array
    texts: pa.Array
    cluster: Longs
    group: Longs
    member_group: Longs
    member_name: Longs
    generation: Longs
    member_seq: Longs
    instance: Longs
    rack: Longs
    assignor: Longs
    regex: Longs
    client: Longs
    is_leader: Flags
    subscription: Longs
    list_topics: Longs
    list_start: Longs
    subscribed: Longs
    set_topic: Longs
    set_start: Longs
    topic_group: Longs
    topic_name: Longs
    size: Longs
    racks: RackBits | None = None
    has_positions: bool = False

    @property
    def group_count(self) -> int:
        """Return the number of groups."""
        return len(self.group)

    @cached_property
    def first_slot(self) -> Longs:
        """Return the first slot of each topic, and the end: partitions are numbered as slots."""
        return starts(self.size)

    @cached_property
    def slot_topic(self) -> Longs:
        """Return the topic of each partition."""
        return np.repeat(np.arange(len(self.size)), self.size)

    @cached_property
    def slot_partition(self) -> Longs:
        """Return the number of each partition within its topic."""
        return np.arange(self.first_slot[-1]) - self.first_slot[self.slot_topic]

    @cached_property
    def slot_group(self) -> Longs:
        """Return the group of each partition."""
        return self.topic_group[self.slot_topic]

    @cached_property
    def member_set(self) -> Longs:
        """Return for each member the set of topics that it subscribes to."""
        return self.subscribed[self.subscription]

    @cached_property
    def is_alike(self) -> Flags:
        """Return for each group whether all members subscribe to the same topics, in any order."""
        least = np.full(self.group_count, len(self.set_start))
        most = np.full(self.group_count, -1)
        np.minimum.at(least, self.member_group, self.member_set)
        np.maximum.at(most, self.member_group, self.member_set)
        return least >= most

    @cached_property
    def rank(self) -> Longs:
        """Return each member's place in its group in the order of ``MemberInfo.compareTo``.

        Static members come first, by ``group.instance.id``; the others follow, by ``member.id``.
        Clients that know no instances, or compare bytes, do so here too (``client_libraries``).
        """
        return inverse(self.by_rank) - self.first_member[self.member_group]

    @cached_property
    def by_rank(self) -> Longs:
        """Return the members, group after group, as ``rank`` orders them."""
        instance, name = self.instance, self.member_name
        if self.client.any():
            by_bytes = utf_8_rank(self.member_names)[name - 1]
            family = self.leading_client[self.member_group]
            instance, name = order_keys(family, instance, name, by_bytes)
        return rows_by(self.member_group, instance == 0, instance, name)

    @cached_property
    def leading_client(self) -> Longs:
        """Return for each group the number of the client that leads it; see ``leading_clients``."""
        return leading_clients(
            self.client_number, self.is_leader, self.member_group, self.group_count
        )

    @cached_property
    def client_number(self) -> Longs:
        """Return the number of the library that each member runs; see ``client_numbers``."""
        return client_numbers(self.texts, self.client)

    @cached_property
    def first_member(self) -> Longs:
        """Return the first member of each group, and the end."""
        return starts(np.bincount(self.member_group, minlength=self.group_count))

    @cached_property
    def first_topic(self) -> Longs:
        """Return the first topic of each group, and the end."""
        return starts(np.bincount(self.topic_group, minlength=self.group_count))

    @cached_property
    def subscribers(self) -> "Subscribers":
        """Return the members that may take each topic; equal subscriptions share a list."""
        alike = self.is_alike[self.topic_group]
        member = self.by_rank[~self.is_alike[self.member_group[self.by_rank]]]
        of_set = self.member_set[member]
        counts = np.diff(self.set_start)[of_set]
        topic = self.set_topic[ranges(self.set_start[of_set], counts)]
        order = np.argsort(topic, kind="stable")
        own = np.bincount(topic, minlength=len(self.size))
        everybody = np.diff(self.first_member)[self.topic_group]
        return Subscribers(
            np.concatenate((self.by_rank, np.repeat(member, counts)[order])),
            np.where(
                alike, self.first_member[self.topic_group], len(self.by_rank) + starts(own)[:-1]
            ),
            np.where(alike, everybody, own),
        )

    @cached_property
    def hash_rank(self) -> Longs:
        """Rank members as Java's hash map of their ids iterates, group after group.

        The leader fills the map in the order of the JoinGroup response (``member_seq``).
        """
        capacity = map_capacities(np.bincount(self.member_group, minlength=self.group_count))
        bucket = bucket_keys(self.hash_code.astype(np.int64), capacity[self.member_group])
        order = rows_by(self.member_group, bucket, self.member_seq, self.member_name)
        return inverse(order)

    @cached_property
    def hash_code(self) -> npt.NDArray[np.uint32]:
        """Return ``String.hashCode`` of each member's id."""
        codes, of_member = np.unique(self.member_name, return_inverse=True)
        return java_hash_codes(self.member_names.take(pa.array(codes - 1)))[of_member]

    @cached_property
    def topic_order(self) -> Longs:
        """Return the rank of each topic's name (by code - 1) in Spark's order of strings."""
        return utf_8_rank(self.topic_names)

    def subscribes(self, member: Longs, topic_name: Longs) -> Flags:
        """Return whether a member's list names a topic, by its name's code; it need not exist."""
        return find(self._listed, key(self.subscription[member], topic_name)) >= 0

    @cached_property
    def _listed(self) -> Longs:
        of_list = np.repeat(np.arange(len(self.list_start) - 1), np.diff(self.list_start))
        return np.unique(key(of_list, self.list_topics))

    def part(self, groups: Flags) -> "tuple[Batch, Longs, Longs]":
        """Return some of the groups, and their members and slots in this batch."""
        members = np.flatnonzero(groups[self.member_group])
        is_theirs = groups[self.topic_group]
        topics = np.flatnonzero(is_theirs)
        kept = is_theirs[self.set_topic]
        slots = np.flatnonzero(groups[self.slot_group])
        number = np.cumsum(groups) - 1
        subset = replace(
            self,
            cluster=self.cluster[groups],
            group=self.group[groups],
            member_group=number[self.member_group[members]],
            member_name=self.member_name[members],
            generation=self.generation[members],
            member_seq=self.member_seq[members],
            instance=self.instance[members],
            rack=self.rack[members],
            assignor=self.assignor[members],
            regex=self.regex[members],
            client=self.client[members],
            is_leader=self.is_leader[members],
            subscription=self.subscription[members],
            set_topic=(np.cumsum(is_theirs) - 1)[self.set_topic[kept]],
            set_start=starts(kept.astype(np.int64))[self.set_start],
            topic_group=number[self.topic_group[topics]],
            topic_name=self.topic_name[topics],
            size=self.size[topics],
            racks=None if self.racks is None else self.racks.part(members, slots, topics),
        )
        return subset, members, slots


@dataclass(frozen=True)
class BatchAssignment:
    """The assignment of a batch: the owner of each partition.

    Attributes:
        owner: of each slot a member; -1: nobody, because there is no answer for the group.
        is_moving: whether another member has the slot now, so that a cooperative rebalance
            withholds it for one round.
    """

    owner: Longs
    is_moving: Flags


def claims_of(batch: Batch, group: Longs, name: Longs, topic: Longs, partition: Longs) -> Claims:
    """Find members and slots of claims by the codes of their names."""
    member = find(key(batch.member_group, batch.member_name), key(group, name))
    place = find(key(batch.topic_group, batch.topic_name), key(group, topic))
    exists = (place >= 0) & (partition < np.append(batch.size, 0)[place])
    slot = np.where(exists, batch.first_slot[place] + partition, -1)
    return Claims(member, name, group, topic, partition, slot)
