"""A group on its way between the protocols, member by member: restarts in a mixed group (KIP-848).

While some members speak the new protocol and others the classic one, the coordinator assigns for
all. Each step here settles before the next begins, so between steps everybody has its target.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from kassign_spark.coordinator.next_target import next_target
from kassign_spark.coordinator.orders import Ints, drawn_id
from kassign_spark.coordinator.target_state import NOBODY, ConsumerGroupState, reorder_members

Flags = NDArray[np.bool_]

LEAVE, JOIN, REPLACE = "leave", "join", "replace"
"""A dynamic member that restarts leaves and joins; a static one takes its own place."""


@dataclass(frozen=True, slots=True)
class Change:
    """The change that one step of a restart makes.

    Attributes:
        member: position of the member that restarts.
        event: ``LEAVE``, ``JOIN`` or ``REPLACE``.
        before: of each partition who had it, or ``NOBODY``.
        after: who has it when all have settled.
        pauses: of each partition whether a member that stays stops reading it for a while.
        is_rebalance: whether a target is computed, or the classic members rebalance.
    """

    member: int
    event: str
    before: Ints
    after: Ints
    pauses: Flags
    is_rebalance: bool

    @property
    def moves(self) -> Ints:
        """Return the partitions that change their member, ascending."""
        is_held = (self.before != NOBODY) & (self.after != NOBODY)
        return np.flatnonzero(is_held & (self.before != self.after))

    @property
    def unread(self) -> int:
        """Return the number of the member's partitions that nobody reads until the step is over."""
        return 0 if self.event == JOIN else int((self.before == self.member).sum())


@dataclass(slots=True)
class MixedGroup:
    """A settled group with members of both protocols.

    Attributes:
        state: topics and members; the last target is not looked at.
        owner: of each partition the position of who has it, or ``NOBODY``.
        is_new: of each member whether it speaks the new protocol.
        is_eager: of each member whether, as a classic one, it revokes all at every rebalance.
        assignor: `uniform` or `range`, or None for what the votes choose.
    """

    state: ConsumerGroupState
    owner: Ints
    is_new: Flags
    is_eager: Flags
    assignor: str | None = None

    def restart(self, member: int, *, as_new: bool) -> Iterator[Change]:
        """Restart one member with the other protocol, while the others stay.

        A static one takes over its target and partitions without a rise of the group's epoch;
        else its leaving and its joining each lead to a new target (kip-848.md, 1, 7 and 8). In
        between the change settles: a restart so quick that one computation serves both is cheaper.
        """
        if self.state.instance_ids and self.state.instance_ids[member]:
            yield self.replace(member, as_new=as_new)
            return
        yield self.leave(member)
        yield self.join(member, as_new=as_new)

    def replace(self, member: int, *, as_new: bool) -> Change:
        """Bring back a static member under its instance id: nothing is computed."""
        self.is_new[member] = as_new
        nothing = np.zeros(len(self.owner), dtype=bool)
        return Change(member, REPLACE, self.owner, self.owner, nothing, is_rebalance=False)

    def leave(self, member: int) -> Change:
        """Remove a member; the next heartbeat computes the target of the others."""
        is_present = np.arange(len(self.is_new)) != member
        return self._computed(member, LEAVE, is_present)

    def join(self, member: int, *, as_new: bool) -> Change:
        """Bring the member that left back, under an id of its own."""
        self.is_new[member] = as_new
        ids = list(self.state.member_ids)
        # A Java client makes one at random; counts hardly depend on it, the partitions do.
        ids[member] = drawn_id(f"restarted {ids[member]}")
        self.state = replace(self.state, member_ids=ids, is_order_known=False)
        return self._computed(member, JOIN, np.ones(len(self.is_new), dtype=bool))

    def target(self, is_present: Flags) -> Ints:
        """Compute the next target of the members that are here."""
        members = np.flatnonzero(is_present)
        if not len(members):
            return np.full(len(self.owner), NOBODY)
        sizes = np.asarray(self.state.num_partitions, dtype=np.int64)
        topic = np.repeat(np.arange(len(sizes)), sizes)
        first = np.cumsum(sizes) - sizes
        place = np.full(len(is_present) + 1, NOBODY)
        place[members] = np.arange(len(members))
        owner = place[self.owner]
        owned = np.flatnonzero(owner != NOBODY)
        some = replace(
            reorder_members(self.state, members.tolist()),
            target_members=owner[owned],
            target_topics=topic[owned],
            target_partitions=owned - first[topic[owned]],
            target_positions=np.zeros(0, dtype=np.int64),
        )
        target_owner = next_target(some, self.assignor).owner
        numbers = np.append(members, NOBODY)
        return numbers[target_owner]

    def _computed(self, member: int, event: str, is_present: Flags) -> Change:
        before, after = self.owner, self.target(is_present)
        stays = np.append(is_present, False)
        stays[member] = False
        is_kept = stays[before]
        # Classic eager members give up everything at every target, also where nothing changes.
        gives_up_all = np.append(~self.is_new & self.is_eager, False)[before]
        pauses = is_kept & ((before != after) | gives_up_all)
        self.owner = after
        return Change(member, event, before, after, pauses, is_rebalance=bool(is_present.any()))
