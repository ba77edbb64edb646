"""The rounds of a rebalance, of many groups side by side inside a task.

EAGER: all members give up everything, then receive everything, in one round. COOPERATIVE: a
partition that changes hands is given up in one round and received in the next (KIP-429).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa

from kassign_spark.assignors.in_tasks import COOPERATIVE_STICKY, assign_batch, part_of
from kassign_spark.groups.batch import Batch, Claims
from kassign_spark.groups.group_names import PIECE, group_columns, member_ids
from kassign_spark.groups.numbers import Flags, Longs, key

RETAINED, REVOKED, ASSIGNED, WITHHELD = range(4)
ACTIONS = ("retained", "revoked", "assigned", "withheld")
STEPS = (
    "cluster_id string, group_id string, round int, member_id string, topic string, "
    "partition int, action string"
)


@dataclass(frozen=True)
class RebalanceSteps:
    """Changes of members' partitions, one per row.

    Attributes:
        round: from 1.
        member: whose.
        topic: code of the name.
        partition: its number, whether it exists or not.
        action: a number of ``ACTIONS``.
    """

    round: Longs
    member: Longs
    topic: Longs
    partition: Longs
    action: Longs

    def where(self, rows: Longs | slice) -> "RebalanceSteps":
        """Return some of the rows."""
        return RebalanceSteps(**{name: column[rows] for name, column in vars(self).items()})

    @classmethod
    def join(cls, parts: "list[RebalanceSteps]") -> "RebalanceSteps":
        """Return the rows of all parts, one part after the other."""
        none = cls(*np.zeros((5, 0), np.int64))
        columns = zip(*(vars(part).values() for part in (none, *parts)), strict=True)
        return cls(*map(np.concatenate, columns))


@dataclass(frozen=True)
class RebalanceRounds:
    """The rounds of the groups of a batch, and what they lead to.

    Attributes:
        steps: in no order.
        rounds: of each group, at least one.
        owner: of each slot who has it after the last round; -1: nobody.
        settles: of each group whether its last round withholds nothing.
    """

    steps: RebalanceSteps
    rounds: Longs
    owner: Longs
    settles: Flags


def follow(
    batch: Batch,
    claims: Claims,
    assignor: Longs,
    is_cooperative: Flags,
    *,
    racks_before_moves: bool = False,
    max_rounds: int = 1_000,
) -> RebalanceRounds:
    """Follow every group until nothing is withheld any more, or a state comes back.

    Args:
        batch: the groups; all members take part in every round.
        claims: what members own before; those of members that left are passed over.
        assignor: of each group a number of ``KAFKAS``.
        is_cooperative: of each group; its assignor is `cooperative-sticky` then. Under the eager
            protocol that one does not know what members owned.
        racks_before_moves: see ``Settings``.
        max_rounds: after which a group is left as it is, and does not settle.
    """
    claims_of_members = claims.where(claims.member >= 0)
    reported = claims_of_members.where(different(claims_of_members))
    rounds = _Rounds(batch, assignor, racks_before_moves)
    if not is_cooperative.all():
        rounds.eager(claims_of_members, reported, ~is_cooperative)
    if is_cooperative.any():
        rounds.cooperative(claims_of_members, reported, is_cooperative, max_rounds)
    return RebalanceRounds(
        RebalanceSteps.join(rounds.parts), rounds.numbers, rounds.owner, rounds.settles
    )


class _Rounds:
    """The rounds of the groups of a batch so far; see ``RebalanceRounds``."""

    def __init__(self, batch: Batch, assignor: Longs, racks_before_moves: bool) -> None:
        self.batch, self.assignor = batch, assignor
        self.assign = partial(assign_batch, racks_before_moves=racks_before_moves)
        self.parts: list[RebalanceSteps] = []
        self.numbers = np.ones(batch.group_count, np.int64)
        self.owner = np.full(int(batch.first_slot[-1]), -1)
        self.settles = np.ones(batch.group_count, bool)

    def eager(self, claims_of_members: Claims, reported: Claims, groups: Flags) -> None:
        """Follow the one round of some groups, in which all give up everything."""
        released = reported.where(groups[reported.group])
        forgetful = groups & (self.assignor == COOPERATIVE_STICKY)
        claims = claims_of_members.where(~forgetful[claims_of_members.group])
        target, _ = self._target(claims, self.batch.generation, groups)
        slots = np.flatnonzero(groups[self.batch.slot_group])
        self.owner[slots] = target[slots]
        self.parts += [
            steps_of_claims(released, 1, REVOKED),
            steps_of_slots(self.batch, slots, target[slots], 1, ASSIGNED),
        ]

    def cooperative(
        self, claims_of_members: Claims, reported: Claims, groups: Flags, max_rounds: int
    ) -> None:
        """Follow all rounds of some groups.

        Partitions of topics that a member has dropped are given up before it joins: nobody has to
        wait for them, and no round follows because of them (``ConsumerCoordinator.onJoinPrepare``).
        """
        batch, is_open = self.batch, groups.copy()
        claims, before = (
            claims.where(is_open[claims.group]) for claims in (claims_of_members, reported)
        )
        claims = claims.where(batch.subscribes(claims.member, claims.topic))
        keeps_topic = batch.subscribes(before.member, before.topic)
        self.parts.append(steps_of_claims(before.where(~keeps_topic), 1, REVOKED))
        before = before.where(keeps_topic)
        generation = batch.generation
        seen = _first_states(batch, before, is_open)
        for number in range(1, max_rounds + 1):
            target, is_moving = self._target(claims, generation, is_open)
            slots = np.flatnonzero(is_open[batch.slot_group])
            step, goes_on = _round(batch, before, slots, target, is_moving, number)
            self.parts.append(step)
            self.owner[slots] = np.where(is_moving, -1, target)[slots]
            self.numbers[is_open] = number
            self.settles[is_open] = True
            self.settles[batch.slot_group[slots[is_moving[slots]]]] = False
            is_open &= goes_on
            _close_repeating(batch, seen, self.owner, is_open)
            if not is_open.any():
                return
            slots = np.flatnonzero(is_open[batch.slot_group] & (self.owner >= 0))
            before = claims = claims_of_owners(batch, slots, self.owner[slots])
            # All have come through this round: one generation, known to all.
            generation = np.full(len(generation), number)
        self.settles[is_open] = False

    def _target(self, reported: Claims, generation: Longs, groups: Flags) -> tuple[Longs, Flags]:
        """Return the target of some groups for each slot: the owner, and whether it has to wait."""
        batch = self.batch
        if groups.all():
            whole = self.assign(batch, reported, generation, self.assignor)
            return whole.owner, whole.is_moving
        subset, members, slots = batch.part(groups)
        claims = part_of(reported, groups, members, slots)
        part = self.assign(subset, claims, generation[members], self.assignor[groups])
        target = np.full(len(self.owner), -1)
        target[slots] = members[part.owner]
        is_moving = np.zeros(len(target), bool)
        is_moving[slots] = part.is_moving
        return target, is_moving


def _round(
    batch: Batch, before: Claims, slots: Longs, target: Longs, is_moving: Flags, number: int
) -> tuple[RebalanceSteps, Flags]:
    """Compare what members own before a round with what it gives them; and who goes on."""
    has_slot = before.slot >= 0
    aimed = np.where(has_slot, target[before.slot], -1) == before.member
    stays = aimed & ~is_moving[before.slot]
    owned = np.zeros(len(target), bool)
    owned[before.slot[aimed]] = True
    received = slots[~is_moving[slots] & ~owned[slots]]
    withheld = slots[is_moving[slots]]
    step = RebalanceSteps.join(
        [
            steps_of_claims(before.where(stays), number, RETAINED),
            steps_of_claims(before.where(~stays), number, REVOKED),
            steps_of_slots(batch, received, target[received], number, ASSIGNED),
            steps_of_slots(batch, withheld, target[withheld], number, WITHHELD),
        ]
    )
    goes_on = np.zeros(batch.group_count, bool)
    goes_on[before.group[~stays]] = True
    goes_on[batch.slot_group[withheld]] = True
    return step, goes_on


def _first_states(batch: Batch, before: Claims, groups: Flags) -> set[tuple[int, bytes]]:
    """Return the first state of each group, as far as a round can lead back to it."""
    owner = np.full(int(batch.first_slot[-1]), -1)
    has_slot = before.slot >= 0
    owner[before.slot[has_slot]] = before.member[has_slot]
    odd = np.zeros(batch.group_count, bool)
    odd[before.group[~has_slot]] = True
    odd[before.group[has_slot & (owner[before.slot] != before.member)]] = True
    return {_state(batch, owner, group) for group in np.flatnonzero(groups & ~odd).tolist()}


def _close_repeating(
    batch: Batch, seen: set[tuple[int, bytes]], owner: Longs, is_open: Flags
) -> None:
    """Close groups that are back in a state in which they have been."""
    for group in np.flatnonzero(is_open).tolist():
        state = _state(batch, owner, group)
        is_open[group] = state not in seen
        seen.add(state)


def _state(batch: Batch, owner: Longs, group: int) -> tuple[int, bytes]:
    first, end = batch.first_slot[batch.first_topic[group : group + 2]]
    return group, owner[first:end].tobytes()


def different(claims: Claims) -> Longs:
    """Return the rows of ``claims`` without those that appear twice."""
    by_topic = np.unique(key(claims.member, claims.topic), return_inverse=True)[1]
    rows: Longs = np.unique(key(by_topic, claims.partition), return_index=True)[1]
    return rows


def claims_of_owners(batch: Batch, slots: Longs, member: Longs) -> Claims:
    """Return members that have slots, as claims on them."""
    topic = batch.slot_topic[slots]
    return Claims(
        member,
        batch.member_name[member],
        batch.topic_group[topic],
        batch.topic_name[topic],
        batch.slot_partition[slots],
        slots,
    )


def steps_of_claims(claims: Claims, number: int, action: int) -> RebalanceSteps:
    """Return one step for each claim."""
    same = np.ones(len(claims.member), np.int64)
    return RebalanceSteps(
        same * number, claims.member, claims.topic, claims.partition, same * action
    )


def steps_of_slots(
    batch: Batch, slots: Longs, member: Longs, number: int, action: int
) -> RebalanceSteps:
    """Return one step for each slot."""
    return steps_of_claims(claims_of_owners(batch, slots, member), number, action)


def step_tables(batch: Batch, steps: RebalanceSteps) -> Iterator[pa.Table]:
    """Name the steps: the columns of ``STEPS``, in pieces."""
    for first in range(0, len(steps.round), PIECE):
        yield pa.table(step_columns(batch, steps.where(slice(first, first + PIECE))))


def step_columns(batch: Batch, steps: RebalanceSteps) -> dict[str, pa.Array]:
    """Return the columns of ``STEPS``."""
    return {
        **group_columns(batch, batch.member_group[steps.member]),
        "round": pa.array(steps.round.astype(np.int32)),
        "member_id": member_ids(batch, steps.member),
        "topic": batch.topic_names.take(pa.array(steps.topic - 1)),
        "partition": pa.array(steps.partition.astype(np.int32)),
        "action": pa.array(ACTIONS).take(pa.array(steps.action)),
    }
