"""The general pass with racks against the exact optimum of balance, moves and crossed racks."""

import random
from dataclasses import replace

import pyarrow as pa
import pytest
from chispa import assert_df_equality
from pyspark.sql import SparkSession

from kassign_spark import Settings, assign
from kassign_spark.assignors.differing import assign_with_racks
from kassign_spark.groups.paths import Paths
from kassign_spark.groups.read import read_batch
from kassign_spark.plans.assign import assign_on_paths
from tests.kafka import oracle
from tests.kafka.oracle import Assigned, Group, Member
from tests.oracles.mixed_groups import MixedGroup, mixed_groups
from tests.oracles.optimal import RackOptimum, least_cost_with_racks
from tests.task_rows import name_of, table_of

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


def measure(group: Group, answer: Assigned) -> RackOptimum:
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


def assigned(groups: list[Group], *, racks_before_moves: bool) -> list[Assigned]:
    """What the groups' members get, by the general pass whatever the subscriptions."""
    batch, claims = read_batch(table_of(groups))
    existing = claims.where((claims.slot >= 0) & (claims.member >= 0))
    answer = assign_with_racks(
        batch, existing, batch.generation, racks_before_moves=racks_before_moves
    )
    group = batch.group_names.take(pa.array(batch.group[batch.slot_group] - 1)).to_pylist()
    topic = batch.topic_names.take(pa.array(batch.topic_name[batch.slot_topic] - 1)).to_pylist()
    member = batch.member_names.take(pa.array(batch.member_name[answer.owner] - 1)).to_pylist()
    answers: dict[str, Assigned] = {
        name_of(number): {m.member_id: [] for m in each.members}
        for number, each in enumerate(groups)
    }
    for name, owner, *place in zip(group, member, topic, batch.slot_partition, strict=True):
        answers[name][owner].append((place[0], int(place[1])))
    return [*answers.values()]


@pytest.mark.parametrize("racks_before_moves", [False, True])
def test_every_group_has_the_best_there_is(racks_before_moves: bool) -> None:
    off = []
    answers = assigned(GROUPS, racks_before_moves=racks_before_moves)
    for group, answer in zip(GROUPS, answers, strict=True):
        got = measure(group, answer)
        expected = best(group, racks_before_moves=racks_before_moves)
        if got != expected:
            off.append((group, got, expected))
    assert not off, f"seed {SEED}: {len(off)} of {len(GROUPS)} are off, such as {off[0]}"


@pytest.mark.slow
@pytest.mark.parametrize("racks_before_moves", [False, True])
def test_rounds_give_what_tasks_give(spark: SparkSession, racks_before_moves: bool) -> None:
    tables = oracle.to_tables(spark, GROUPS[::6])
    paths = Paths()
    settings = Settings(
        engine="rounds", racks_before_moves=racks_before_moves, bytes_per_task=10**6
    )
    in_rounds = assign_on_paths(*tables, settings=settings, paths=paths)
    in_tasks = assign(*tables, settings=replace(settings, engine="task"))
    assert_df_equality(in_rounds, in_tasks, ignore_row_order=True)
    path_rows = paths.frame()
    assert path_rows is not None
    assert {row.path for row in path_rows.distinct().collect()} == {"rounds", "task"}
    assert path_rows.where("path = 'rounds'").count() > len(GROUPS[::12]) / 2


def test_a_group_may_have_more_racks_than_a_number_has_bits() -> None:
    """A rack for each host: nothing of the sets of bits by which others are told apart."""
    topics = {"t": [[f"r{number}"] for number in range(100)], "u": [["r1"], []]}
    members = [Member(f"m{number:02}", ["t"], rack_id=f"r{number}") for number in range(100)]
    members[1] = replace(members[1], topics=["t", "u"])
    group = Group(topics, members, "sticky")
    [answer] = assigned([group], racks_before_moves=True)
    assert measure(group, answer) == best(group, racks_before_moves=True)
    assert answer["m77"] == [("t", 77)]


def test_the_two_orders_differ_and_racks_matter() -> None:
    """Else the groups would prove little."""
    after = [best(group, racks_before_moves=False) for group in GROUPS]
    before = [best(group, racks_before_moves=True) for group in GROUPS]
    differing = sum(a != b for a, b in zip(after, before, strict=True))
    assert differing > 100
    assert sum(a.crossings > 0 for a in after) > 200
