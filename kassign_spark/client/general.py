"""The sticky assignors' pass over differing subscriptions (``GeneralAssignmentBuilder``).

A greedy search that repeats itself until nothing changes. Nothing bounds it: it may throw, or go on
for ever. Kafka's racks need no rule of their own while partitions are moved: a move inside a
rack happens only where the same move would happen without.
"""

from collections.abc import Sequence
from random import Random

from kassign_spark.client.claim_rules import Believed
from kassign_spark.client.group_state import (
    ClaimedIds,
    GroupState,
    NeverEnds,
    Thrown,
    topics_of_members,
)
from kassign_spark.client.hash_order import HashOrder, java_hash
from kassign_spark.client.holdings import Holdings, Movements
from kassign_spark.client.rack_bits import Racks

_PASSES_UNWATCHED = 8
"""Passes before states are compared: nearly all groups are done by then."""
_LEAST_PASS_LIMIT = 1000


def assign_general(
    state: GroupState,
    claims: ClaimedIds,
    believed: Believed,
    members: HashOrder,
    by_id: list[int],
    racks: Racks | None,
) -> tuple[list[list[int]], str | None]:
    """Keep claims, hand out the rest, then move partitions while that improves the balance.

    The arguments are as in ``assign_constrained``; ``claims`` are all of them.

    Returns:
        ids of partitions by position of the member, and why the client may answer something else.

    Raises:
        Thrown: the client ends with an exception.
        NeverEnds: it does not end.
    """
    layout = claims.layout
    holdings = Holdings(layout, topics_of_members(state, layout), by_id)
    must_revoke = holdings.keep(believed.owner, racks)
    is_fresh = not any(holdings.sizes)
    pool = holdings.hand_out(racks)
    earlier = _earlier_claims(state, claims, believed.max_generation, members.order)
    balancing = Balancing(holdings, earlier, members.order, by_id)
    assigned = balance(balancing, pool, must_revoke=must_revoke, is_fresh=is_fresh)
    tree = "a hash set of moved partitions became a tree, the order of which is not modelled"
    return assigned, tree if balancing.movements.met_tree else None


def balance(
    balancing: "Balancing", pool: list[int], *, must_revoke: bool, is_fresh: bool
) -> list[list[int]]:
    """Move partitions while that improves the balance, and undo it all where it does not.

    Args:
        balancing: the group, all of whose partitions have been handed out.
        pool: those that nobody had kept.
        must_revoke: some claims could not be kept.
        is_fresh: none was.

    Returns:
        ids of partitions by position of the member.

    Raises:
        Thrown, NeverEnds: as ``assign_general``.
    """
    holdings = balancing.holdings
    before = [list(partitions) for partitions in holdings.partitions_of]
    if not must_revoke:
        balancing.reassign(holdings.movable(pool))
    has_moved = balancing.reassign(holdings.movable(holdings.all_partitions))
    gained = balancing.score(list(map(len, before))) - balancing.score(holdings.sizes)
    # What began with claims is left as it was where the balance is no better.
    return before if has_moved and gained <= 0 and not is_fresh else holdings.partitions_of


def _earlier_claims(
    state: GroupState, claims: ClaimedIds, max_generation: int, order: list[int]
) -> dict[int, int]:
    """Return the member that claims a partition from the latest generation below the highest."""
    claimants: dict[int, int] = {}
    for member in order:
        generation = state.generations[member]
        if generation < max_generation:
            for partition in claims.by_member[member]:
                if (
                    partition not in claimants
                    or state.generations[claimants[partition]] < generation
                ):
                    claimants[partition] = member
    return claimants


class Balancing:
    """A group while it is balanced; changes the holdings that it is given.

    Members that hold all they can get, and nothing that others could take, are set aside.
    """

    def __init__(
        self,
        holdings: Holdings,
        earlier: dict[int, int],
        order: list[int],
        by_id: list[int],
        choose: Random | None = None,
    ) -> None:
        """Start: ``earlier`` has a former owner by partition, ``by_id`` members by their ids.

        ``choose`` is as in ``Movements``.
        """
        self.holdings, self.earlier, self.order = holdings, earlier, order
        self.layout, self.subscribers = holdings.layout, holdings.subscribers
        self.owner, self.partitions_of, self.sizes = (
            holdings.owner,
            holdings.partitions_of,
            holdings.sizes,
        )
        self.caps = [self._cap(topics) for topics in holdings.topics_of]
        self.is_active = [self._can_take_part(member) for member in range(len(self.sizes))]
        self.active = [member for member in by_id if self.is_active[member]]
        self.has_twins = sum(self.sizes) > sum(1 for member in self.owner if member >= 0)
        self.movements = Movements(self.layout, list(map(java_hash, self.layout.topics)), choose)
        # How many partitions of a topic each member holds: what the test for balance looks at.
        self.counts: list[dict[int, int]] = [{} for _ in self.layout.topics]
        for member in self.active:
            for partition in self.partitions_of[member]:
                if partition not in self.layout.missing:
                    counts = self.counts[self.layout.topic_of[partition]]
                    counts[member] = counts.get(member, 0) + 1
        self.witness: tuple[int, int, int] | None = None

    def _cap(self, topics: list[int]) -> int:
        if len(topics) == len(self.layout.topics):
            return self.layout.partition_count
        return sum(self.layout.counts[topic] for topic in topics)

    def _can_take_part(self, member: int) -> bool:
        topic_of, is_shared = self.layout.topic_of, self.holdings.is_shared
        return self.sizes[member] < self.caps[member] or any(
            is_shared(topic_of[partition]) for partition in self.partitions_of[member]
        )

    def reassign(self, partitions: list[int]) -> bool:
        """Repeat passes over the partitions until one changes nothing; say whether any did.

        Raises:
            Thrown: a former owner was set aside.
            NeverEnds: a state came back, or the bound of passes was reached.
        """
        limit = max(_LEAST_PASS_LIMIT, 10 + len(partitions))
        watched, watched_at = None, 0
        for number in range(1, limit + 1):
            if not self._pass(partitions):
                return number > 1
            if number < _PASSES_UNWATCHED:
                continue
            state = (self.owner.copy(), self.movements.snapshot())
            if state == watched:
                raise NeverEnds(f"after pass {number} everything is as after pass {watched_at}")
            if number & (number - 1) == 0:
                watched, watched_at = state, number
        raise NeverEnds(f"{limit} passes, the bound, were not enough")

    def _pass(self, partitions: list[int]) -> bool:
        """Move what can be moved for a better balance, once; say whether anything was."""
        sizes, owner, topic_of = self.sizes, self.owner, self.layout.topic_of
        size_of = sizes.__getitem__
        modified = False
        is_balanced = not partitions or self.is_balanced()
        for partition in partitions:
            if is_balanced:
                break
            size = sizes[owner[partition]]
            former = self.earlier.get(partition)
            if former is not None:
                if not self.is_active[former]:
                    raise self._aside(partition)
                if size > sizes[former] + 1:
                    self._move(partition, former)
                    modified, is_balanced = True, self.is_balanced()
                    continue
            target = min(self.subscribers[topic_of[partition]], key=size_of)
            if not self.is_active[target]:
                raise self._aside(partition)
            if size > sizes[target] + 1:
                self._move(partition, target)
                modified, is_balanced = True, self.is_balanced()
        return modified

    def _aside(self, partition: int) -> Exception:
        reason = "owned before by, or subscribed to by, a member that has all it can get"
        return Thrown("NullPointerException", f"{self.layout.name(partition)} is {reason}")

    def _move(self, partition: int, target: int) -> None:
        self.transfer(self.movements.instead(partition, self.owner[partition], target), target)

    def transfer(self, partition: int, target: int) -> None:
        """Give a partition to another member, and record that."""
        source = self.owner[partition]
        self.movements.record(partition, source, target)
        self.partitions_of[source].remove(partition)
        self.partitions_of[target].append(partition)
        self.sizes[source] -= 1
        self.sizes[target] += 1
        self.owner[partition] = target
        counts = self.counts[self.layout.topic_of[partition]]
        counts[source] -= 1
        if not counts[source]:
            del counts[source]
        counts[target] = counts.get(target, 0) + 1

    def is_balanced(self) -> bool:
        """Return whether no member below its cap could take one from a member with two more."""
        sizes, caps = self.sizes, self.caps
        if self.witness is not None:
            topic, taker, giver = self.witness
            if (
                sizes[taker] + 1 < sizes[giver]
                and sizes[taker] != caps[taker]
                and giver in self.counts[topic]
            ):
                return False
        self.witness = None
        of_active = [sizes[member] for member in self.active]
        if min(of_active) >= max(of_active) - 1:
            return True
        if self.has_twins:
            return self._is_balanced_with_twins()
        size_of = sizes.__getitem__
        for topic, counts in enumerate(self.counts):
            if not counts:
                continue
            giver = max(counts, key=size_of)
            most = sizes[giver] - 1
            for taker in self.subscribers[topic]:
                size = sizes[taker]
                if size < most and size != caps[taker] and self.is_active[taker]:
                    self.witness = topic, taker, giver
                    return False
        return True

    def _is_balanced_with_twins(self) -> bool:
        """Return whether it is balanced where partitions have two holders; the last one counts.

        That follows from claims of partitions that do not exist (see ``_unowned``).
        """
        sizes = self.sizes
        holder = {
            partition: member
            for member in self.order
            if self.is_active[member]
            for partition in self.partitions_of[member]
        }
        for member in sorted(self.active, key=sizes.__getitem__):
            if sizes[member] == self.caps[member]:
                continue
            owned = set(self.partitions_of[member])
            for topic in self.holdings.topics_of[member]:
                for partition in self.layout.existing(topic):
                    if partition in owned:
                        continue
                    if partition not in holder:
                        raise self._aside(partition)
                    if sizes[member] + 1 < sizes[holder[partition]]:
                        return False
        return True

    def score(self, sizes: Sequence[int]) -> int:
        """Return the sum over all pairs of members of the difference of their sizes."""
        ordered = sorted(sizes[member] for member in self.active)
        return sum((2 * i - len(ordered) + 1) * size for i, size in enumerate(ordered))
