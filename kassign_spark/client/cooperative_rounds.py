"""The rounds of a cooperative rebalance of one group, each answered as the client does it."""

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from kassign_spark.client.group_state import INEXACT, NEVER_SETTLES, OK, GroupState, Outcome
from kassign_spark.client.model import predict_group

RETAINED, REVOKED, ASSIGNED, WITHHELD = "retained", "revoked", "assigned", "withheld"

_MOST_ROUNDS = 100

Partition = tuple[str, int]
Owned = list[set[Partition]]


class Step(NamedTuple):
    """The change of a member's partitions in one round."""

    round: int
    member: int
    action: str
    partitions: set[Partition]


class Rebalance(NamedTuple):
    """All rounds, and how they end.

    Attributes:
        verdict: as in ``Outcome``, or never_settles.
        detail: why, where the verdict is not ok; or what is wrong with the answer.
        steps: of the rounds up to the one that throws, never ends, is the last, or repeats one.
    """

    verdict: str
    detail: str | None
    steps: list[Step]


def follow_rounds(state: GroupState) -> Rebalance:
    """Follow a group of `cooperative-sticky` until nobody gives up anything any more.

    A member gives up topics that it no longer subscribes to before it joins; that alone starts no
    further round. Whoever has to give up a partition after a round joins again at once. The claims
    of ``state`` are what the members own as the rebalance begins.
    """
    owned = _claimed_partitions(state)
    steps: list[Step] = []
    seen: dict[tuple[frozenset[Partition], ...], int] = {}
    is_exact, detail = True, None
    for number in range(1, _MOST_ROUNDS + 1):
        claimed = _keep_subscribed(state, owned)
        # Sorted: a set's order differs from run to run.
        claims = [(member, *tp) for member, own in enumerate(claimed) for tp in sorted(own)]
        outcome = predict_group(state.with_claims(claims))
        if outcome.verdict not in (OK, INEXACT):
            return Rebalance(outcome.verdict, f"round {number}: {outcome.detail}", steps)
        is_exact &= outcome.verdict == OK
        if outcome.detail is not None and detail is None:
            detail = f"round {number}: {outcome.detail}"
        assigned = _name_partitions(outcome, outcome.assigned)
        steps += _steps(number, owned, assigned, _withheld(outcome, len(owned)))
        goes_on = any(own - assignment for own, assignment in zip(claimed, assigned, strict=True))
        owned = assigned
        if not goes_on:
            return Rebalance(OK if is_exact else INEXACT, detail, steps)
        ownership = tuple(map(frozenset, owned))
        if ownership in seen:
            reason = f"after round {number} all own what they owned after round {seen[ownership]}"
            return Rebalance(NEVER_SETTLES, reason, steps)
        seen[ownership] = number
        # All have come through this round: one generation, known to all.
        generations = [number] * len(owned)
        state = replace(state, generations=generations, field_generations=generations)
    return Rebalance(NEVER_SETTLES, f"{_MOST_ROUNDS} rounds, the bound, were not enough", steps)


def _claimed_partitions(state: GroupState) -> Owned:
    owned: Owned = [set() for _ in state.member_ids]
    for member, topic, partition in state.claims():
        owned[member].add((topic, partition))
    return owned


def _keep_subscribed(state: GroupState, owned: Owned) -> Owned:
    return [
        {partition for partition in own if partition[0] in topics}
        for own, topics in zip(owned, map(frozenset, state.subscriptions), strict=True)
    ]


def _name_partitions(outcome: Outcome, by_member: list[list[int]]) -> Owned:
    layout = outcome.layout
    return [
        {(layout.topics[layout.topic_of[p]], layout.number_of[p]) for p in partitions}
        for partitions in by_member
    ]


def _withheld(outcome: Outcome, member_count: int) -> Owned:
    by_member: list[list[int]] = [[] for _ in range(member_count)]
    for partition, member in outcome.withheld.items():
        by_member[member].append(partition)
    return _name_partitions(outcome, by_member)


def _steps(number: int, owned: Owned, assigned: Owned, withheld: Owned) -> Iterator[Step]:
    for member, (own, assignment, later) in enumerate(zip(owned, assigned, withheld, strict=True)):
        actions = {
            RETAINED: own & assignment,
            REVOKED: own - assignment,
            ASSIGNED: assignment - own,
            WITHHELD: later,
        }
        for action, partitions in actions.items():
            if partitions:
                yield Step(number, member, action, partitions)
