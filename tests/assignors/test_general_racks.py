"""The general pass with racks against the exact optimum of balance, moves and crossed racks."""

import random

import pytest

from kassign_spark.assignors.general_racks import assign_with_racks
from kassign_spark.client.state import without_missing
from tests.kafka.oracle import Assigned, Group, Member
from tests.oracles.mixed_groups import MixedGroup, mixed_groups
from tests.oracles.optimal import RackOptimum, least_cost_with_racks
from tests.prediction.states import named, to_state

SEED = 20_261_201
RACKS = "abc"


def racked(count: int, seed: int, **options: int) -> list[Group]:
    """Every shape and change of ``mixed_groups``, with replicas and members in racks."""
    rng = random.Random(seed)
    return [_racked(rng, group) for group in mixed_groups(count, seed, **options)]


def _racked(rng: random.Random, group: MixedGroup) -> Group:
    racks = RACKS[: rng.randint(1, 3)]
    replicas = rng.choice((1, 1, 2, 3))

    def of_partition() -> list[str | None]:
        if rng.random() < 0.05:
            return rng.choice(([], [None]))
        return list(rng.sample(racks, min(replicas, len(racks))))

    owned: dict[str, list[tuple[str, int]]] = {member: [] for member in group.subscriptions}
    for tp, member in group.owned.items():
        if member in owned:
            owned[member].append(tp)
    members = [
        Member(m, topics, owned[m], 3, rack_id=rng.choice((*racks, *racks, None, "", "elsewhere")))
        for m, topics in group.subscriptions.items()
    ]
    topics = {topic: [of_partition() for _ in range(n)] for topic, n in group.partitions.items()}
    return Group(topics, members, "sticky")


GROUPS = racked(588, SEED)


def is_cross(group: Group, member: Member, topic: str, partition: int) -> bool:
    racks = group.topics[topic]
    assert not isinstance(racks, int)
    known = {rack for rack in racks[partition] if rack is not None}
    return bool(member.rack_id) and bool(known) and member.rack_id not in known


def best(group: Group, *, racks_before_moves: bool) -> RackOptimum:
    """Every partition is a class of its own: the oracle knows nothing of classes."""
    owners = {tp: m.member_id for m in group.members for tp in m.owned}
    supply, owned, crossing = {}, {}, set()
    for topic, racks in group.topics.items():
        assert not isinstance(racks, int)
        for partition in range(len(racks)):
            name = f"{topic}-{partition}"
            supply[name] = 1
            for m in group.members:
                if topic in m.topics:
                    owned[name, m.member_id] = int(owners.get((topic, partition)) == m.member_id)
                    if is_cross(group, m, topic, partition):
                        crossing.add((name, m.member_id))
    return least_cost_with_racks(supply, owned, crossing, racks_before_moves=racks_before_moves)


def found(group: Group, answer: Assigned) -> RackOptimum:
    """Measures of a valid assignment; anything else fails here."""
    owned = {m.member_id: set(m.owned) for m in group.members}
    subscribed = {topic for m in group.members for topic in m.topics if topic in group.topics}
    expected = [(t, p) for t in subscribed for p in range(len(group.topics[t]))]  # type: ignore[arg-type]
    assert sorted(tp for tps in answer.values() for tp in tps) == sorted(expected)
    moves = crossings = 0
    for m in group.members:
        for topic, partition in answer[m.member_id]:
            assert topic in m.topics
            moves += (topic, partition) not in owned[m.member_id]
            crossings += is_cross(group, m, topic, partition)
    return RackOptimum(sum(len(tps) ** 2 for tps in answer.values()), moves, crossings)


@pytest.mark.parametrize("racks_before_moves", [False, True])
def test_every_group_has_the_best_there_is(racks_before_moves: bool) -> None:
    states = [without_missing(to_state(group)) for group in GROUPS]
    outcomes = assign_with_racks(states, racks_before_moves=racks_before_moves)
    off = []
    for group, outcome in zip(GROUPS, outcomes, strict=True):
        whole = outcome.assigned
        for partition, member in outcome.withheld.items():
            whole[member].append(partition)
        got = found(group, named(group, outcome))
        expected = best(group, racks_before_moves=racks_before_moves)
        if got != expected:
            off.append((group, got, expected))
    assert not off, f"seed {SEED}: {len(off)} of {len(GROUPS)} are off, such as {off[0]}"


def test_the_two_orders_differ_and_racks_matter() -> None:
    """Else the groups would prove little."""
    after = [best(group, racks_before_moves=False) for group in GROUPS]
    before = [best(group, racks_before_moves=True) for group in GROUPS]
    differing = sum(a != b for a, b in zip(after, before, strict=True))
    assert differing > 100
    assert sum(a.crossings > 0 for a in after) > 200
