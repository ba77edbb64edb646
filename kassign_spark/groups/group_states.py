"""Groups of a batch one by one, as the model of Kafka's client takes them."""

from itertools import pairwise

import numpy as np

from kassign_spark.client.group_state import GroupState, Outcome
from kassign_spark.client.mixed_families import libraries
from kassign_spark.client_libraries import JAVA
from kassign_spark.coordinator.orders import inverse
from kassign_spark.groups.batch import Batch, Claims
from kassign_spark.groups.numbers import Longs, rows_by


class States:
    """Reads groups of a batch, and finds the slots that the model answers with."""

    def __init__(self, batch: Batch, claims: Claims, generation: Longs) -> None:
        """Read everything once: a group is a slice of each list."""
        self.batch = batch
        topic_names: list[str] = batch.topic_names.to_pylist()
        lists = [topic_names[code - 1] for code in batch.list_topics.tolist()]
        bounds = batch.list_start.tolist()
        by_number = [lists[first:end] for first, end in pairwise(bounds)]
        # In the order of the JoinGroup response; by id where it is not known.
        self._joined = rows_by(batch.member_group, batch.member_seq, batch.member_name)
        joined = self._joined
        names, texts = batch.member_names.to_pylist(), [None, *batch.texts.to_pylist()]
        self._ids = [names[code - 1] for code in batch.member_name[joined].tolist()]
        self._racks = [texts[code] for code in batch.rack[joined].tolist()]
        self._instances = [texts[code] for code in batch.instance[joined].tolist()]
        self._lists = [by_number[number] for number in batch.subscription[joined].tolist()]
        self._generations: list[int] = generation[joined].tolist()
        self._seqs: list[int] = batch.member_seq[joined].tolist()
        self._topics = [topic_names[code - 1] for code in batch.topic_name.tolist()]
        self._sizes: list[int] = batch.size.tolist()
        self._first_member: list[int] = batch.first_member.tolist()
        self._first_topic: list[int] = batch.first_topic.tolist()
        known_claims, first_claim = claims.where(claims.member >= 0).by_group(batch.group_count)
        places = inverse(joined)[known_claims.member] - batch.first_member[known_claims.group]
        self._claim_places: list[int] = places.tolist()
        self._claim_topics = [topic_names[code - 1] for code in known_claims.topic.tolist()]
        self._claim_partitions: list[int] = known_claims.partition.tolist()
        self._first_claim: list[int] = first_claim.tolist()
        self._clients = [texts[code] or JAVA for code in batch.client[joined].tolist()]
        self._is_leader: list[bool] = batch.is_leader[joined].tolist()

    def members(self, group: int) -> Longs:
        """Return the group's members in the order of its state."""
        return self._joined[self._first_member[group] : self._first_member[group + 1]]

    def of(self, group: int, assignor: str) -> GroupState:
        """Read a group."""
        members = slice(*self._first_member[group : group + 2])
        topics = slice(*self._first_topic[group : group + 2])
        claims = slice(*self._first_claim[group : group + 2])
        racks, seqs = self.batch.racks, self._seqs[members]
        sizes = self._sizes[topics]
        generations = self._generations[members]
        is_leader = self._is_leader[members]
        leader = is_leader.index(True) if True in is_leader else None
        clients, member_clients = libraries(assignor, self._clients[members], leader)
        return GroupState(
            assignor=assignor,
            clients=clients,
            member_clients=member_clients,
            leader=leader,
            member_ids=self._ids[members],
            subscriptions=self._lists[members],
            topics=self._topics[topics],
            num_partitions=sizes,
            member_racks=self._racks[members],
            member_instances=self._instances[members],
            generations=generations,
            field_generations=generations,
            has_positions=self.batch.has_positions,
            claim_members=self._claim_places[claims],
            claim_topics=self._claim_topics[claims],
            claim_partitions=self._claim_partitions[claims],
            replica_racks=(
                [None] * len(sizes) if racks is None else racks.replica_racks[topics].to_pylist()
            ),
            is_order_known=min(seqs) >= 0 and len(set(seqs)) == len(seqs),
        )

    def slots(self, group: int, outcome: Outcome) -> Longs:
        """Return the slot of each id in an answer; -1 for a partition that does not exist."""
        layout = outcome.layout
        slot_of = np.full(len(layout.topic_of), -1)
        slot = int(self.batch.first_slot[self._first_topic[group]])
        for first, count in zip(layout.starts, layout.counts, strict=False):
            slot_of[first : first + count] = np.arange(slot, slot + count)
            slot += count
        return slot_of
