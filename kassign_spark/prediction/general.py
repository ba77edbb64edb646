"""The sticky assignors' pass over differing subscriptions (``GeneralAssignmentBuilder``).

A greedy search that repeats itself until nothing changes. Nothing bounds it: it may throw, or go on
for ever. Kafka's racks need no rule of their own while partitions are moved: a move inside a
rack happens only where the same move would happen without.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from kassign_spark.prediction.claims import Believed
from kassign_spark.prediction.hash_order import HashOrder, java_hash
from kassign_spark.prediction.movements import Movements
from kassign_spark.prediction.racks import Racks
from kassign_spark.prediction.state import Claims, GroupState, Layout, NeverEnds, Thrown

_PASSES_UNWATCHED = 8
"""Passes before states are compared: nearly all groups are done by then."""
_LEAST_PASS_LIMIT = 1000


class General(NamedTuple):
    """The result of the pass.

    Attributes:
        assigned: ids of partitions by position of the member.
        unsure: None, or why the client may answer something else.
    """

    assigned: list[list[int]]
    unsure: str | None


def assign_general(
    state: GroupState,
    claims: Claims,
    believed: Believed,
    members: HashOrder,
    by_id: list[int],
    racks: Racks | None,
) -> General:
    """Keep claims, hand out the rest, then move partitions while that improves the balance.

    Args:
        state: the group.
        claims: all of them.
        believed: those that survive.
        members: the hash map's order.
        by_id: positions of the members, sorted by member id.
        racks: None where they are not in use.

    Raises:
        Thrown: the client ends with an exception.
        NeverEnds: it does not end.
    """
    layout = claims.layout
    search = _Search(layout, _topics_of(state, layout), members.order, by_id)
    must_revoke = search.keep(believed.owner, racks)
    is_fresh = not any(search.sizes)
    pool = search.hand_out(racks)
    search.set_fixed_aside()
    search.earlier = _earlier_claims(state, claims, believed.max_generation, members.order)
    before = list(search.owner), [list(held) for held in search.held], list(search.sizes)
    if not must_revoke:
        search.reassign(search.movable(pool))
    has_moved = search.reassign(search.movable(search.all_partitions))
    if not is_fresh and has_moved and search.score() >= search.score(before[2]):
        search.owner, search.held, search.sizes = before
    tree = "a hash set of moved partitions became a tree, the order of which is not modelled"
    return General(search.held, tree if search.movements.met_tree else None)


def _topics_of(state: GroupState, layout: Layout) -> list[list[int]]:
    """Give each member's topics in its own order; one given twice is there twice."""
    index = layout.index
    return [[index[name] for name in names if name in index] for names in state.subscriptions]


def _earlier_claims(
    state: GroupState, claims: Claims, max_generation: int, order: list[int]
) -> dict[int, int]:
    """Give the member that claims a partition from the latest generation below the highest."""
    found: dict[int, int] = {}
    for member in order:
        generation = state.generations[member]
        if generation < max_generation:
            for partition in claims.by_member[member]:
                if partition not in found or state.generations[found[partition]] < generation:
                    found[partition] = member
    return found


class _Search:
    """The group while its partitions are moved about.

    Attributes:
        all_partitions: existing ones, those of topics with few subscribers first.
        owner: member by partition, -1 for nobody.
        held: partitions by member.
        sizes: how many each member holds.
        earlier: a former owner by partition.
    """

    def __init__(
        self, layout: Layout, topics_of: list[list[int]], order: list[int], by_id: list[int]
    ) -> None:
        self.layout, self.topics_of, self.by_id = layout, topics_of, by_id
        self.order = order
        self.subscribers: list[list[int]] = [[] for _ in layout.topics]
        for member in by_id:
            for topic in topics_of[member]:
                self.subscribers[topic].append(member)
        self.caps = [self._cap(topics) for topics in topics_of]
        by_subscribers = sorted(range(len(layout.topics)), key=lambda t: len(self.subscribers[t]))
        self.topic_rank = {topic: rank for rank, topic in enumerate(by_subscribers)}
        self.all_partitions = [p for topic in by_subscribers for p in layout.existing(topic)]
        self.owner = [-1] * len(layout.topic_of)
        self.held: list[list[int]] = [[] for _ in order]
        self.sizes = [0] * len(order)
        self.is_active = [True] * len(order)
        self.earlier: dict[int, int] = {}
        self.movements = Movements(layout, list(map(java_hash, layout.topics)))
        # How many partitions of a topic each member holds: what the test for balance looks at.
        self.counts: list[dict[int, int]] = [{} for _ in layout.topics]
        self.witness: tuple[int, int, int] | None = None

    def _cap(self, topics: list[int]) -> int:
        if len(topics) == len(self.layout.topics):
            return self.layout.partition_count
        return sum(self.layout.counts[topic] for topic in topics)

    def keep(self, owner: dict[int, int], racks: Racks | None) -> bool:
        """Let members keep claims that still suit them; say whether some did not."""
        subscribed = [frozenset(topics) for topics in self.topics_of]
        topic_of = self.layout.topic_of
        must_revoke = False
        for partition, member in owner.items():
            if topic_of[partition] not in subscribed[member] or (
                racks is not None and racks.mismatch(member, partition)
            ):
                must_revoke = True
            else:
                self._take(partition, member)
        return must_revoke

    def _take(self, partition: int, member: int) -> None:
        self.owner[partition] = member
        self.held[member].append(partition)
        self.sizes[member] += 1

    def _unowned(self) -> list[int]:
        """Give partitions that nobody kept, in order.

        As in the constrained pass, the client's scan meets a kept partition that does not exist
        and takes everything after it for unowned.
        """
        layout, owner = self.layout, self.owner

        def place(partition: int) -> tuple[int, int]:
            return self.topic_rank[layout.topic_of[partition]], partition

        stuck = [place(p) for p in layout.missing if owner[p] >= 0]
        if not stuck:
            return [p for p in self.all_partitions if owner[p] < 0]
        end = min(stuck)
        return [p for p in self.all_partitions if owner[p] < 0 or place(p) > end]

    def hand_out(self, racks: Racks | None) -> list[int]:
        """Give unowned partitions to the least loaded subscribers; give back which they were."""
        pool = self._unowned()
        rest = pool
        size_of, topic_of = self.sizes.__getitem__, self.layout.topic_of
        if racks is not None:
            rest = []
            for partition in pool:
                fitting = [
                    member
                    for member in self.subscribers[topic_of[partition]]
                    if not racks.mismatch(member, partition)
                ]
                if fitting:
                    self._take(partition, min(fitting, key=size_of))
                else:
                    rest.append(partition)
        for partition in rest:
            self._take(partition, min(self.subscribers[topic_of[partition]], key=size_of))
        return pool

    def set_fixed_aside(self) -> None:
        """Take out members that hold all they can get, and nothing that others could take."""
        topic_of = self.layout.topic_of
        for member, held in enumerate(self.held):
            self.is_active[member] = len(held) < self.caps[member] or any(
                self._is_shared(topic_of[partition]) for partition in held
            )
            for partition in held if self.is_active[member] else ():
                counts = self.counts[topic_of[partition]]
                if partition not in self.layout.missing:
                    counts[member] = counts.get(member, 0) + 1
        self.active = [member for member in self.by_id if self.is_active[member]]
        self.has_twins = sum(self.sizes) > sum(1 for member in self.owner if member >= 0)

    def _is_shared(self, topic: int) -> bool:
        return len(self.subscribers[topic]) > 1

    def movable(self, partitions: Iterable[int]) -> list[int]:
        """Leave out partitions of topics that only one member subscribes to."""
        topic_of = self.layout.topic_of
        shared = [self._is_shared(topic) for topic in range(len(self.layout.topics))]
        return [partition for partition in partitions if shared[topic_of[partition]]]

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
            now = (self.owner.copy(), self.movements.snapshot())
            if now == watched:
                raise NeverEnds(f"after pass {number} everything is as after pass {watched_at}")
            if number & (number - 1) == 0:
                watched, watched_at = now, number
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

    def _aside(self, partition: int) -> Thrown:
        why = "owned before by, or subscribed to by, a member that has all it can get"
        return Thrown("NullPointerException", f"{self.layout.name(partition)} is {why}")

    def _move(self, asked: int, target: int) -> None:
        partition = self.movements.instead(asked, self.owner[asked], target)
        source = self.owner[partition]
        self.movements.record(partition, source, target)
        self.held[source].remove(partition)
        self.held[target].append(partition)
        self.sizes[source] -= 1
        self.sizes[target] += 1
        self.owner[partition] = target
        counts = self.counts[self.layout.topic_of[partition]]
        counts[source] -= 1
        if not counts[source]:
            del counts[source]
        counts[target] = counts.get(target, 0) + 1

    def is_balanced(self) -> bool:
        """Whether nobody below its cap could take a partition from one that has two more."""
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
        """Whether it is where partitions are held twice: the client asks the last of their holders.

        That follows from claims of partitions that do not exist (see ``_unowned``).
        """
        sizes = self.sizes
        holder = {
            partition: member
            for member in self.order
            if self.is_active[member]
            for partition in self.held[member]
        }
        for member in sorted(self.active, key=sizes.__getitem__):
            if sizes[member] == self.caps[member]:
                continue
            held = set(self.held[member])
            for topic in self.topics_of[member]:
                for partition in self.layout.existing(topic):
                    if partition in held:
                        continue
                    if partition not in holder:
                        raise self._aside(partition)
                    if sizes[member] + 1 < sizes[holder[partition]]:
                        return False
        return True

    def score(self, sizes: Sequence[int] | None = None) -> int:
        """Give the sum over all pairs of members of the difference of their sizes."""
        of = self.sizes if sizes is None else sizes
        ordered = sorted(of[member] for member in self.active)
        return sum((2 * i - len(ordered) + 1) * size for i, size in enumerate(ordered))
