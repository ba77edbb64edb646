"""The sticky assignors of librdkafka, kafka-python and aiokafka: as in Java's client until 2.4.

It knows no constrained pass for equal subscriptions; there it only goes through the partitions in
another order. The search itself is ``general.Balancing``.
"""

import heapq
from collections import Counter

from kassign_spark.client.general import Balancing, balance
from kassign_spark.client.group_state import (
    ClaimedIds,
    GroupState,
    Layout,
    Thrown,
    are_disputed,
    topics_of_members,
)
from kassign_spark.client.hash_order import scala_set_order
from kassign_spark.client.holdings import Holdings
from kassign_spark.client.members_in_order import members_in_order
from kassign_spark.client.rack_bits import Racks, need_matching, number_racks
from kassign_spark.client_libraries import AIOKAFKA, KAFKA_PYTHON, LIBRDKAFKA

_CRASHES = (
    "a partition's move meets the record of another: there this librdkafka's leader reads freed "
    "memory, and crashes"
)
_BY_SET = "a Python set of partitions decides, whose order differs from process to process"
_STALE = "librdkafka takes a partition from a member whose claim of it is an old one"
_BY_ORDER = "the order of members in JoinGroup decides on claims of several, and is not known"


def assign_older(
    state: GroupState, claims: ClaimedIds, *, had_claims: bool
) -> tuple[list[list[int]], dict[int, int], str | None]:
    """Return each member's partitions, those that change hands, and why this may not be so.

    ``claims`` are of partitions that exist; ``had_claims``: there were any, of others perhaps.

    Raises:
        Thrown, NeverEnds: as ``general.assign_general``.
        Crashes: librdkafka's leader does.
    """
    layout = claims.layout
    topics_of = topics_of_members(state, layout)
    by_id = members_in_order(AIOKAFKA, state.member_ids, state.member_instances) or []
    holdings = Holdings(layout, topics_of, by_id)
    is_librdkafka = state.client == LIBRDKAFKA
    owner, earlier = _claimants(state, claims)
    racks = _racks_of_librdkafka(state, layout, topics_of) if is_librdkafka else None
    must_revoke = holdings.keep(owner, racks)
    is_fresh = not any(holdings.sizes)
    unsure = None
    stale: dict[int, int] = {}
    if is_librdkafka:
        topics_of = [sorted(set(topics)) for topics in topics_of]
        # It takes the last claimant for the holder when it looks for a partition to move.
        last = _last_claimants(claims)
        stale = {p: m for p, m in owner.items() if holdings.owner[p] >= 0 and last[p] != m}
        for partition in stale:
            holdings.owner[partition] = last[partition]
    if had_claims and all(topics == topics_of[0] for topics in topics_of):
        # librdkafka lists what it is about to take away for its rack, too.
        partitions_of = (
            _group_by_member(owner, len(by_id)) if is_librdkafka else holdings.partitions_of
        )
        all_partitions = (
            _order_as_listed(state, layout) if is_librdkafka else holdings.all_partitions
        )
        holdings.all_partitions, had_choice = list_by_turns(
            partitions_of, all_partitions, earlier, by_id, from_front=is_librdkafka
        )
        unsure = _BY_SET if had_choice and not is_librdkafka else None
    pool = holdings.hand_out(racks)
    balancing = _OlderBalancing(
        holdings, earlier, by_id, undoes_both=state.client == KAFKA_PYTHON, stale=stale
    )
    assigned = balance(balancing, pool, must_revoke=must_revoke, is_fresh=is_fresh)
    if is_librdkafka and balancing.meets_freed_memory:
        raise Crashes(_CRASHES)
    if balancing.movements.had_choice:
        unsure = _BY_SET
    if balancing.moves_stale:
        unsure = _STALE
    if unsure is None and not state.is_order_known and are_disputed(claims):
        unsure = _BY_ORDER
    return [[*partitions] for partitions in assigned], _moving(claims, assigned), unsure


class Crashes(Exception):  # noqa: N818 - the library's end, predicted; not an error of ours
    """The library has no defined answer."""


class _OlderBalancing(Balancing):
    """Takes the partition that goes back in another's place from whoever has it by then.

    Attributes:
        undoes_both: that one gets the partition at hand for it (kafka-python 3).
        meets_freed_memory: a move met the record of another, in which librdkafka has freed what it
            points to.
        moves_stale: a partition moved whose holder was taken for another member.
    """

    def __init__(
        self,
        holdings: Holdings,
        earlier: dict[int, int],
        by_id: list[int],
        *,
        undoes_both: bool,
        stale: dict[int, int],
    ) -> None:
        super().__init__(holdings, earlier, by_id, by_id)
        self.undoes_both, self.meets_freed_memory = undoes_both, False
        self._stale, self.moves_stale = stale, False
        self._moved: set[int] = set()

    def _aside(self, partition: int) -> Thrown:
        return Thrown("KeyError", f"{self.layout.name(partition)} was owned by a member set aside")

    def _move(self, partition: int, target: int) -> None:
        if partition in self._stale:
            self.owner[partition], self.moves_stale = self._stale[partition], True
        source = self.owner[partition]
        instead = self.movements.instead(partition, source, target)
        self.meets_freed_memory |= instead != partition or partition in self._moved
        self._moved.add(partition)
        holder = self.owner[instead]
        if holder != source and self.undoes_both:
            self.transfer(partition, holder)
        self.transfer(instead, target)


def _claimants(state: GroupState, claims: ClaimedIds) -> tuple[dict[int, int], dict[int, int]]:
    """Return who keeps each claimed partition, and who had it before.

    The latest generation keeps it, the one before had it. Of two claims of one generation the
    first in the order of JoinGroup counts, of generation 0 the last; with librdkafka none counts.
    `cooperative-sticky` sends no generation, but librdkafka's does.
    """
    by_generation: dict[int, dict[int, int]] = {}
    is_cooperative = state.assignor == "cooperative-sticky" and state.client != LIBRDKAFKA
    for member, partitions in enumerate(claims.by_member):
        generation = -1 if is_cooperative else state.generations[member]
        # Where their order is not known: the library keeps what it was given sorted.
        for partition in partitions if state.has_positions else sorted(partitions):
            claimants = by_generation.setdefault(partition, {})
            if generation == 0 or generation not in claimants:
                claimants[generation] = member
    owner, earlier = {}, {}
    twice = _claimed_twice(state, claims) if state.client == LIBRDKAFKA else ()
    for partition, claimants in by_generation.items():
        if partition in twice:
            continue
        latest, *others = sorted(claimants, reverse=True)
        owner[partition] = claimants[latest]
        if others:
            earlier[partition] = claimants[others[0]]
    return owner, earlier


def list_by_turns(
    own: list[list[int]],
    all_partitions: list[int],
    earlier: dict[int, int],
    by_id: list[int],
    *,
    from_front: bool,
) -> tuple[list[int], bool]:
    """List kept partitions, each time one of the member with most left, then the others.

    A partition that had an earlier owner comes first, else the last one in the member's list.
    ``from_front``, as librdkafka: the first one of the sorted list; and the others backwards.

    Returns:
        all partitions; and whether there were several to choose from.
    """
    turns: list[list[int]] = []  # the next one last
    had_choice = False
    for partitions in own:
        in_order = sorted(partitions, reverse=True) if from_front else partitions
        moved = [partition for partition in in_order if partition in earlier]
        turns.append([p for p in in_order if p not in earlier] + moved[::-1])
        had_choice = had_choice or len(moved) > 1
    heap = [(-len(turns[member]), -place, member) for place, member in enumerate(by_id)]
    heapq.heapify(heap)
    ordered: list[int] = []
    while heap:
        left, place, member = heapq.heappop(heap)
        if left:
            ordered.append(turns[member].pop())
            heapq.heappush(heap, (left + 1, place, member))
    placed = set(ordered)
    others = [partition for partition in all_partitions if partition not in placed]
    return ordered + (others[::-1] if from_front and ordered else others), had_choice


def _group_by_member(owner: dict[int, int], member_count: int) -> list[list[int]]:
    partitions_of: list[list[int]] = [[] for _ in range(member_count)]
    for partition, member in owner.items():
        partitions_of[member].append(partition)
    return partitions_of


def _racks_of_librdkafka(
    state: GroupState, layout: Layout, topics_of: list[list[int]]
) -> Racks | None:
    """Return the racks where they can change anything; no partition is in the rack of who has none.

    Members that read no topic do not count.
    """
    racks = number_racks(state, layout)
    if racks is None:
        return None
    counting = [
        rack if topics else 0 for rack, topics in zip(racks.of_member, topics_of, strict=True)
    ]
    if not need_matching(counting, racks.of_partition):
        return None
    nowhere = 1 << max(*racks.of_member, *racks.of_partition).bit_length()
    return racks._replace(of_member=[rack or nowhere for rack in racks.of_member])


def _order_as_listed(state: GroupState, layout: Layout) -> list[int]:
    """Return partitions as a broker (Kafka 4.4) lists their topics, which the leader asks for."""
    asked = dict.fromkeys(name for topics in state.subscriptions for name in sorted(topics))
    topics_in_order = [
        layout.index[name] for name in scala_set_order(asked) if name in layout.index
    ]
    return [partition for topic in topics_in_order for partition in layout.existing(topic)]


def _claimed_twice(state: GroupState, claims: ClaimedIds) -> set[int]:
    """Return partitions that are claimed twice in one generation."""
    counts = Counter(
        (partition, state.generations[member])
        for member, partitions in enumerate(claims.by_member)
        for partition in partitions
    )
    return {partition for (partition, _), count in counts.items() if count > 1}


def _last_claimants(claims: ClaimedIds) -> dict[int, int]:
    return {p: member for member, own in enumerate(claims.by_member) for p in own}


def _moving(claims: ClaimedIds, assigned: list[list[int]]) -> dict[int, int]:
    """Return the new owners of partitions that another member claims, the last one counting."""
    claimant = _last_claimants(claims)
    return {
        partition: member
        for member, partitions in enumerate(assigned)
        for partition in partitions
        if claimant.get(partition, member) != member
    }
