"""The sticky assignors of sarama (``stickyBalanceStrategy``, 1.61): Java's until 2.4, over Go maps.

The order of members whose claims are read, of partitions that are handed out and of those that a
member holds is that of a Go map, which is drawn anew in each call.
"""

from collections.abc import Iterator
from random import Random

from kassign_spark.client.general import Balancing
from kassign_spark.client.group_state import (
    ClaimedIds,
    GroupState,
    topics_of_members,
)
from kassign_spark.client.holdings import Holdings
from kassign_spark.client.lots import SEED, NotModelled, count_draws
from kassign_spark.client.members_in_order import members_in_order
from kassign_spark.client.older_sticky import list_by_turns
from kassign_spark.client_libraries import SARAMA


def draw_answers(
    state: GroupState, claims: ClaimedIds, *, had_claims: bool
) -> Iterator[list[list[int]]]:
    """Draw answers: partitions by member.

    ``claims`` are of partitions that exist; ``had_claims``: there were any, of others perhaps.

    Raises:
        NotModelled: a former owner of a partition has all that it may have.
        NeverEnds: as ``general.assign_general``.
    """
    drawing = Random(SEED)
    by_id = members_in_order(SARAMA, state.member_ids, state.member_instances)
    assert by_id is not None, "the library's comparison is an order"
    topics_of = [sorted(set(topics)) for topics in topics_of_members(state, claims.layout)]
    is_alike = all(topics == topics_of[0] for topics in topics_of)
    for _ in range(count_draws(claims.layout.partition_count)):
        holdings = Holdings(claims.layout, topics_of, by_id)
        owner, earlier = _claimants(state, claims, drawing)
        holdings.keep(owner, None)
        if had_claims and is_alike:
            drawing.shuffle(holdings.all_partitions)
            holdings.all_partitions, _ = list_by_turns(
                holdings.partitions_of, holdings.all_partitions, earlier, by_id, from_front=False
            )
        has_empty = min(holdings.sizes) == 0
        _hand_out(holdings, owner, drawing)
        yield _balance(
            _DrawnBalancing(holdings, earlier, by_id, by_id, drawing), has_empty=has_empty
        )


class _DrawnBalancing(Balancing):
    def _aside(self, partition: int) -> Exception:
        return NotModelled(self.layout.name(partition))


def _claimants(
    state: GroupState, claims: ClaimedIds, drawing: Random
) -> tuple[dict[int, int], dict[int, int]]:
    """Return who keeps each claimed partition, and who had it in the generation before.

    Of two claims of one generation the first that is read counts.
    """
    by_generation: dict[int, dict[int, int]] = {}
    for member in drawing.sample(range(len(claims.by_member)), len(claims.by_member)):
        for partition in claims.by_member[member]:
            by_generation.setdefault(partition, {}).setdefault(state.generations[member], member)
    owner, earlier = {}, {}
    for partition in drawing.sample([*by_generation], len(by_generation)):
        latest, *others = sorted(by_generation[partition], reverse=True)
        owner[partition] = by_generation[partition][latest]
        if others:
            earlier[partition] = by_generation[partition][others[0]]
    return owner, earlier


def _hand_out(holdings: Holdings, owner: dict[int, int], drawing: Random) -> None:
    """Give unowned partitions to the least loaded, first those whose owner no longer subscribes."""
    size_of, topic_of = holdings.sizes.__getitem__, holdings.layout.topic_of
    free = [p for p, member in enumerate(holdings.owner) if member < 0]
    drawing.shuffle(free)
    for partition in sorted(free, key=lambda p: p not in owner):
        holdings.take(partition, min(holdings.subscribers[topic_of[partition]], key=size_of))


def _balance(balancing: Balancing, *, has_empty: bool) -> list[list[int]]:
    """Move partitions while that improves the balance.

    Where it did not, the library means to undo it all, but it does so in a copy: the moves stay,
    and members that were set aside get nothing.
    """
    holdings = balancing.holdings
    before = balancing.score(holdings.sizes)
    has_moved = balancing.reassign(holdings.movable(holdings.all_partitions))
    if has_moved and not has_empty and balancing.score(holdings.sizes) >= before:
        return [
            partitions if balancing.is_active[member] else []
            for member, partitions in enumerate(holdings.partitions_of)
        ]
    return holdings.partitions_of
