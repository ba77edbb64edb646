"""The sticky assignors of franz-go (kgo's internal/sticky, 1.22).

The library numbers topics in the order of a Go map, which is drawn anew in each call, and so is the
order in which partitions return to an earlier owner. Nothing else is drawn.
"""

from collections.abc import Iterator, Sequence
from itertools import chain, permutations
from math import factorial
from random import Random
from typing import TypeVar

from kassign_spark.client.franz_go_differing import Readers, assign_differing, swap_out
from kassign_spark.client.group_state import ClaimedIds, GroupState, Layout, topics_of_members
from kassign_spark.client.lots import SEED, are_alike, count_draws
from kassign_spark.client.member_heap import MemberHeap
from kassign_spark.client.members_in_order import members_in_order
from kassign_spark.client_libraries import FRANZ_GO

_Topic = TypeVar("_Topic")


def draw_answers(state: GroupState, claims: ClaimedIds) -> Iterator[list[list[int]]]:
    """Iterate over the orders of topics, or draw some of them if there are too many.

    Args:
        state: the group.
        claims: of partitions that exist.

    Returns:
        answers, partitions by member.

    Raises:
        NotModelled: as ``franz_go_differing.assign_differing``.
    """
    order = members_in_order(FRANZ_GO, state.member_ids, state.member_instances)
    assert order is not None, "the library's comparison is an order"
    owner, older = _claims(state, claims, order)
    if are_alike(state):
        return _dealt(claims.layout, order, owner, older)
    return _stolen(state, claims.layout, order, owner, older)


def _dealt(
    layout: Layout, order: list[int], owner: dict[int, int], older: dict[int, int]
) -> Iterator[list[list[int]]]:
    """Deal partitions to members that all subscribe alike."""
    free = [[p for p in layout.existing(t) if p not in owner] for t in range(len(layout.topics))]
    open_topics = [partitions for partitions in free if partitions]
    drawing = Random(SEED)
    for topics in _orders(open_topics, drawing, layout.partition_count, is_drawn=len(older) > 1):
        plan: list[list[int]] = [[] for _ in order]
        for partition, member in owner.items():
            plan[member].append(partition)
        # What is claimed twice returns, in the order of another Go map.
        for partition in drawing.sample([*older], len(older)):
            holder, member = owner[partition], older[partition]
            if len(plan[member]) + 1 < len(plan[holder]):
                plan[holder].remove(partition)
                plan[member].append(partition)
        takers = MemberHeap(order, [*map(len, plan)]).take(sum(map(len, open_topics)))
        for partition, member in zip(chain.from_iterable(topics), takers, strict=True):
            plan[member].append(partition)
        # Whoever gives partitions gives those with the highest numbers, of all topics in turn.
        for partitions in plan:
            partitions.sort(key=lambda p: (layout.number_of[p], layout.topic_of[p]))
        _level(plan, order)
        yield plan


def _stolen(
    state: GroupState,
    layout: Layout,
    order: list[int],
    owner: dict[int, int],
    older: dict[int, int],
) -> Iterator[list[list[int]]]:
    """Yield what members with different subscriptions steal; ``order`` numbers the members."""
    number = {member: place for place, member in enumerate(order)}
    topics_of = topics_of_members(state, layout)
    subscribed = [{*topics_of[member]} for member in order]
    all_topics = [*range(len(layout.topics))]
    drawing = Random(SEED)
    for topics in _orders(all_topics, drawing, layout.partition_count, is_drawn=len(older) > 1):
        partitions = [layout.existing(topic) for topic in topics]
        readers = Readers(
            partitions,
            [[m for m, own in enumerate(subscribed) if topic in own] for topic in topics],
            [[place for place, t in enumerate(topics) if t in own] for own in subscribed],
        )
        plan: list[list[int]] = [[] for _ in order]
        holder: dict[int, int] = {}
        for topic, of_topic in zip(topics, partitions, strict=True):
            for partition in of_topic:
                member = number.get(owner.get(partition, -1), -1)
                if member >= 0 and topic in subscribed[member]:
                    plan[member].append(partition)
                    holder[partition] = member
        for partition in drawing.sample([*older], len(older)):
            member, now = number[older[partition]], holder.get(partition)
            if layout.topic_of[partition] not in subscribed[member]:
                continue
            if now is None or len(plan[member]) + 1 < len(plan[now]):
                if now is not None:
                    swap_out(plan[now], partition)
                plan[member].append(partition)
        answer = assign_differing(readers, plan)
        yield [answer[number[member]] for member in range(len(order))]


def _orders(
    topics: list[_Topic], drawing: Random, partition_count: int, *, is_drawn: bool
) -> Iterator[Sequence[_Topic]]:
    """Return all orders of topics; or some, if they are too many or something else is drawn too."""
    count = count_draws(partition_count)
    if is_drawn or factorial(len(topics)) > count:
        for _ in range(count):
            yield drawing.sample(topics, len(topics))
    else:
        yield from permutations(topics)


def withheld(state: GroupState, claims: ClaimedIds, assigned: list[list[int]]) -> dict[int, int]:
    """Return what `cooperative-sticky` holds back for a round, with the member that is to have it.

    A claim of an older generation than another's does not make its member the owner.
    """
    newest: dict[int, int] = {}
    for member, partitions in enumerate(claims.by_member):
        for partition in partitions:
            newest[partition] = max(newest.get(partition, -1), state.generations[member])
    planned = [set(partitions) for partitions in assigned]
    revoked = {
        partition
        for member, partitions in enumerate(claims.by_member)
        for partition in partitions
        if partition not in planned[member]
    }
    owned = [
        {p for p in partitions if state.generations[member] >= newest[p]}
        for member, partitions in enumerate(claims.by_member)
    ]
    return {
        partition: member
        for member, partitions in enumerate(planned)
        for partition in sorted(partitions & revoked - owned[member])
    }


def _claims(
    state: GroupState, claims: ClaimedIds, order: Sequence[int]
) -> tuple[dict[int, int], dict[int, int]]:
    """Return who owns each claimed partition, and who claims it with the next older generation.

    Of equal generations the first member counts; without one it is 0.
    """
    owner: dict[int, tuple[int, int]] = {}
    older: dict[int, tuple[int, int]] = {}
    for member in order:
        generation = max(state.generations[member], 0)
        for partition in claims.by_member[member]:
            if generation > owner.get(partition, (-1, -1))[0]:
                if partition in owner:
                    older[partition] = owner[partition]
                owner[partition] = (generation, member)
            elif generation > older.get(partition, (-1, -1))[0]:
                older[partition] = (generation, member)
    return (
        {partition: member for partition, (_, member) in owner.items()},
        {partition: member for partition, (_, member) in older.items()},
    )


def _level(plan: list[list[int]], order: Sequence[int]) -> None:
    """Move last partitions from those with the most to those with the fewest, level by level."""
    members_with: dict[int, list[int]] = {}
    for member in order:
        members_with.setdefault(len(plan[member]), []).append(member)
    while (least := min(members_with)) + 1 < (most := max(members_with)):
        takers, givers = members_with[least], members_with[most]
        count = min(len(takers), len(givers))
        for taker, giver in zip(takers[:count], givers[:count], strict=True):
            plan[taker].append(plan[giver].pop())
        members_with.setdefault(least + 1, []).extend(takers[:count])
        members_with.setdefault(most - 1, []).extend(givers[:count])
        for level in (least, most):
            del members_with[level][:count]
            if not members_with[level]:
                del members_with[level]
