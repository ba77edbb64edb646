"""Compute the answers of the coordinator's assignors for groups as they are (KIP-848).

A classic group that goes over takes what its members own as its first target
(``ConsumerGroup.fromClassicGroup``); the target that is computed then sticks to that.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from kassign_spark.client.group_state import OK
from kassign_spark.coordinator.next_target import next_target
from kassign_spark.coordinator.reconcile import Pairs, action_numbers, actions_in, reconcile
from kassign_spark.coordinator.target_state import ConsumerGroupState
from kassign_spark.groups.batch import Batch, Claims
from kassign_spark.groups.coordinator_states import GroupStates, coordinator_order
from kassign_spark.groups.numbers import Longs
from kassign_spark.plans.exact import ClientOutcomes
from kassign_spark.plans.rebalance_rounds import RebalanceSteps


def group_states(
    table: pa.Table, batch: Batch, claims: Claims
) -> Iterator[tuple[ConsumerGroupState, Longs]]:
    """Return each group as the coordinator would see it, and its members' places.

    The topics' ids are read from ``table``, rows of ``rows.fold``.
    """
    states = GroupStates(table, batch)
    owned = claims.where((claims.member >= 0) & (claims.slot >= 0))
    owned = owned.where(np.unique(owned.slot, return_index=True)[1])
    by_group, ends = owned.by_group(batch.group_count)
    for number in range(batch.group_count):
        members, is_known = coordinator_order(batch, number)
        place = np.argsort(members)
        mine = by_group.where(np.arange(ends[number], ends[number + 1]))
        state = replace(
            states.of(number, members),
            target_members=place[mine.member - batch.first_member[number]],
            target_topics=batch.slot_topic[mine.slot] - batch.first_topic[number],
            target_partitions=mine.partition,
            is_order_known=is_known,
        )
        yield state, members


def follow_coordinator(
    batch: Batch,
    claims: Claims,
    states: Sequence[tuple[ConsumerGroupState, Longs] | None],
    assignor: str,
) -> ClientOutcomes:
    """Follow groups to the target of an assignor, by heartbeats; those without a state lose all."""
    verdicts: list[tuple[str, str | None]] = []
    owner = np.full(int(batch.first_slot[-1]), -1)
    for number, of_group in enumerate(states):
        if of_group is None:
            verdicts.append((OK, None))
            continue
        state, members = of_group
        outcome = next_target(state, assignor)
        verdicts.append((outcome.verdict, outcome.detail))
        first = int(batch.first_slot[batch.first_topic[number]])
        assigned = np.flatnonzero(outcome.owner >= 0)
        owner[first + assigned] = members[outcome.owner[assigned]]
    return ClientOutcomes(verdicts, _steps(batch, claims, owner))


def _steps(batch: Batch, claims: Claims, owner: Longs) -> RebalanceSteps:
    """Follow the heartbeats of all groups at once: no partition belongs to two of them."""
    claims_of_members = claims.where(claims.member >= 0)
    pairs = np.stack(
        (claims_of_members.group, claims_of_members.topic, claims_of_members.partition), axis=1
    )
    # Of a partition that several claim, and of one that does not exist, the first claim counts.
    first = np.unique(pairs, axis=0, return_index=True)[1]
    owned = claims_of_members.where(np.sort(first))
    slots = len(owner)
    number = np.where(owned.slot >= 0, owned.slot, slots + np.arange(len(owned.slot)))
    assigned = np.flatnonzero(owner >= 0)
    followed = reconcile(
        Pairs(owned.member, number),
        Pairs(owner[assigned], assigned),
        np.zeros(len(batch.member_group), bool),
    )
    topic = np.concatenate((batch.topic_name[batch.slot_topic], owned.topic))
    partition = np.concatenate((batch.slot_partition, owned.partition))
    last = np.ones(batch.group_count, np.int64)
    np.maximum.at(last, batch.member_group[followed.members], followed.changed_in)
    parts = []
    for in_round in range(1, max(followed.round_count, 1) + 1):
        action = actions_in(followed, in_round)
        goes_on = last[batch.member_group[followed.members]] >= in_round
        rows = np.flatnonzero((action != "") & goes_on)
        slot, member = followed.partitions[rows], followed.members[rows]
        same = np.full(len(rows), in_round)
        parts.append(
            RebalanceSteps(same, member, topic[slot], partition[slot], action_numbers(action[rows]))
        )
    return RebalanceSteps.join(parts)
