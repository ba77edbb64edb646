"""Groups of a batch one by one, as the model of Kafka's client takes them."""

import numpy as np

from kassign_spark.groups.batch import Batch, Claims
from kassign_spark.groups.numbers import Longs, starts
from kassign_spark.prediction.state import GroupState, Outcome


class States:
    """Reads groups of a batch, and writes what the model answers back into its slots."""

    def __init__(self, batch: Batch, claims: Claims, generation: Longs) -> None:
        self.batch = batch
        self._member_names = batch.member_names.to_pylist()
        self._topic_names = batch.topic_names.to_pylist()
        self._texts = [None, *batch.texts.to_pylist()]
        lists = [self._topic_names[code - 1] for code in batch.list_topics.tolist()]
        at = batch.list_start.tolist()
        self._lists = [lists[a:b] for a, b in zip(at, at[1:], strict=False)]
        self._generation = generation
        self.claims(claims)
        # In the order of the JoinGroup response; ids where it is not known.
        self._joined = np.lexsort((batch.member_name, batch.member_seq, batch.member_group))

    def claims(self, claims: Claims) -> None:
        """Take other claims, of the same members."""
        known = np.flatnonzero(claims.member >= 0)
        known = known[np.argsort(claims.group[known], kind="stable")]
        self._claims = claims.where(known)
        count = np.bincount(self._claims.group, minlength=self.batch.group_count)
        self._first_claim = starts(count)

    def members(self, group: int) -> Longs:
        """The group's members in the order of its state."""
        first, end = self.batch.first_member[group : group + 2]
        members: Longs = self._joined[first:end]
        return members

    def of(self, group: int, assignor: str) -> GroupState:
        """Read a group."""
        batch = self.batch
        members = self.members(group)
        first, end = self._first_claim[group : group + 2]
        place = np.empty(len(members), np.int64)
        place[members - batch.first_member[group]] = np.arange(len(members))
        topics = slice(*batch.first_topic[group : group + 2].tolist())
        generations = self._generation[members].tolist()
        racks = batch.racks
        counts = batch.size[topics].tolist()
        seq = batch.member_seq[members]
        return GroupState(
            assignor=assignor,
            member_ids=[self._member_names[c - 1] for c in batch.member_name[members].tolist()],
            subscriptions=[self._lists[n] for n in batch.subscription[members].tolist()],
            topics=[self._topic_names[c - 1] for c in batch.topic_name[topics].tolist()],
            num_partitions=counts,
            member_racks=[self._texts[c] for c in batch.rack[members].tolist()],
            member_instances=[self._texts[c] for c in batch.instance[members].tolist()],
            generations=generations,
            field_generations=generations,
            claim_members=place[
                self._claims.member[first:end] - batch.first_member[group]
            ].tolist(),
            claim_topics=[
                self._topic_names[c - 1] for c in self._claims.topic[first:end].tolist()
            ],
            claim_partitions=self._claims.partition[first:end].tolist(),
            replica_racks=(
                [None] * len(counts) if racks is None else racks.replica_racks[topics].to_pylist()
            ),
            is_order_known=bool((seq >= 0).all()) and len(np.unique(seq)) == len(seq),
        )


    def slots(self, group: int, outcome: Outcome) -> Longs:
        """Of each id in an answer the slot; -1 for a partition that does not exist."""
        layout = outcome.layout
        found = np.full(len(layout.topic_of), -1)
        at = int(self.batch.first_slot[self.batch.first_topic[group]])
        for first, count in zip(layout.starts, layout.counts, strict=False):
            found[first : first + count] = np.arange(at, at + count)
            at += count
        return found
