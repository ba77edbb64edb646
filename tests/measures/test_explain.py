"""``explain`` finds the assignor that the real client was, and the stale claim that decided."""

import random

import pytest
from pyspark.sql import Row, SparkSession

from kassign_spark.whatif.explain import explain
from tests.kafka import oracle
from tests.kafka.oracle import ASSIGNORS, Group, Member
from tests.random_states import random_states

SEED = 20261128
GROUPS = random_states(120, seed=SEED, assignors=ASSIGNORS, hostile_share=0.3)
STALE = Group(
    {"t": 2, "u": 2},
    [
        Member("a", ["t", "u"], [("t", 1), ("u", 1)], 5),
        Member("b", ["t", "u"], [("u", 0)], 3),
        Member("c", ["t", "u"], generation=5),
    ],
    "sticky",
)
WITH_STALE = {"a": [("t", 1), ("u", 1)], "b": [("u", 0)], "c": [("t", 0)]}
WITHOUT_STALE = {"a": [("t", 1), ("u", 1)], "b": [("t", 0)], "c": [("u", 0)]}
PAIR = Group({"t": 4}, [Member("a", ["t"]), Member("b", ["t"])], "range")
BY_NOBODY: oracle.Assigned = {"a": [("t", 0), ("t", 1), ("t", 2)], "b": []}

EVEN: oracle.Assigned = {name: [(topic, p) for p in range(3)] for name, topic in ("at", "bu")}
OF_RANGE = Group({"t": 3, "u": 3}, [Member(m, ["t", "u"], EVEN[m], 5) for m in "ab"], "range")
BY_HAND = [(STALE, WITH_STALE), (STALE, WITHOUT_STALE), (PAIR, BY_NOBODY), (OF_RANGE, EVEN)]
WITH, WITHOUT, NOBODY, OTHER = range(len(GROUPS), len(GROUPS) + len(BY_HAND))


@pytest.fixture(scope="module")
def by_name(spark: SparkSession) -> dict[str, list[oracle.Assigned | str]]:
    """The client's answers to ``GROUPS``, of each assignor."""
    return {name: oracle.assign(spark, GROUPS, assignor=name) for name in ASSIGNORS}


@pytest.fixture(scope="module")
def observed(by_name: dict[str, list[oracle.Assigned | str]]) -> list[oracle.Assigned | str]:
    """Half of the answers as they are, half with two partitions exchanged."""
    rng = random.Random(SEED)
    result = []
    for index, group in enumerate(GROUPS):
        answer = oracle.as_sets(by_name[group.assignor][index])
        result.append(_exchanged(rng, answer) if index % 2 else answer)
    return result


@pytest.fixture(scope="module")
def explained(spark: SparkSession, observed: list[oracle.Assigned | str]) -> dict[str, Row]:
    """All groups of this file in one call, those by hand last."""
    groups, answers = zip(*BY_HAND, strict=True)
    return _explained(spark, [*GROUPS, *groups], [*observed, *answers])


def test_random_assignments_of_the_real_client(
    by_name: dict[str, list[oracle.Assigned | str]],
    observed: list[oracle.Assigned | str],
    explained: dict[str, Row],
) -> None:
    exact = other = 0
    for index, (group, answer) in enumerate(zip(GROUPS, observed, strict=True)):
        if isinstance(answer, str):
            continue
        row = explained[oracle.group_id(index)]
        differing = {
            name: _differing(oracle.as_sets(by_name[name][index]), answer) for name in ASSIGNORS
        }
        fitting = {name for name, count in differing.items() if count == 0}
        if fitting:
            exact += 1
            expected = {group.assignor} if group.assignor in fitting else fitting
            assert row.assignor in expected, (index, group, row)
            assert row.differing_count == 0
            others = fitting - {row.assignor}
            assert all(name in str(row.detail) for name in others), row
        elif row.assignor is not None:
            assert "without the stale claims of" in row.detail, row
        else:
            other += 1
            answered = {n: c for n, c in differing.items() if c is not None}
            nearest = row.detail.split("nearest is ")[-1].split(":")[0].split(" ")[0]
            if differing[nearest] is not None:
                assert row.differing_count == min(answered.values()) == differing[nearest], row
    assert exact > 50
    assert other > 20


@pytest.mark.parametrize(
    ("index", "detail"),
    [
        (WITH, "because of the stale claims of b; cooperative-sticky would give the same"),
        (WITHOUT, "without the stale claims of b"),
    ],
)
def test_stale_claims(explained: dict[str, Row], index: int, detail: str) -> None:
    row = explained[oracle.group_id(index)]
    assert (row.assignor, row.differing_count, row.detail) == ("sticky", 0, detail)


def test_stale_claims_decide_in_the_client_too(spark: SparkSession) -> None:
    fresh_b = Member("b", ["t", "u"], generation=3)
    without_b = Group(STALE.topics, [STALE.members[0], fresh_b, STALE.members[2]], "sticky")
    real = oracle.assign(spark, [STALE, without_b])
    assert list(map(oracle.as_sets, real)) == [WITH_STALE, WITHOUT_STALE]


def test_what_nobody_would_do(explained: dict[str, Row]) -> None:
    row = explained[oracle.group_id(NOBODY)]
    assert (row.assignor, row.differing_count) == (None, 2)
    assert row.detail == "nearest is range: t-2 is with a, not with b"


def test_the_own_assignor_comes_first(explained: dict[str, Row]) -> None:
    """Three partitions would move: range gives a t-0, t-1, u-0, u-1."""
    row = explained[oracle.group_id(OTHER)]
    assert (row.assignor, row.own_assignor, row.differing_count) == ("sticky", "range", 0)
    own = "its own assignor range differs in 3 partitions: t-2 is with a, not with b"
    assert row.detail == f"{own}; cooperative-sticky would give the same"


def _explained(
    spark: SparkSession, groups: list[Group], observed: list[oracle.Assigned | str]
) -> dict[str, Row]:
    rows = [
        (f"c{index}", oracle.group_id(index), member, topic, partition)
        for index, answer in enumerate(observed)
        if isinstance(answer, dict)
        for member, tps in answer.items()
        for topic, partition in tps
    ]
    assignment = spark.createDataFrame(
        rows, "cluster_id string, group_id string, member_id string, topic string, partition int"
    )
    result = explain(assignment, *oracle.to_tables(spark, groups)).collect()
    assert len(result) == len(groups)
    return {row.group_id: row for row in result}


def _differing(answer: oracle.Assigned | str, other: oracle.Assigned) -> int | None:
    """Partitions that are with other members; None where the answer is none."""
    if isinstance(answer, str):
        return None
    here, there = _owners(answer), _owners(other)
    return sum(here.get(tp) != there.get(tp) for tp in here.keys() | there.keys())


def _owners(answer: oracle.Assigned) -> dict[tuple[str, int], list[str]]:
    owners: dict[tuple[str, int], list[str]] = {}
    for member in sorted(answer):
        for tp in answer[member]:
            owners.setdefault(tp, []).append(member)
    return owners


def _exchanged(rng: random.Random, answer: oracle.Assigned | str) -> oracle.Assigned | str:
    if isinstance(answer, str) or sum(map(bool, answer.values())) < 2:
        return answer
    one, other = rng.sample(sorted(member for member, tps in answer.items() if tps), 2)
    changed = {member: list(tps) for member, tps in answer.items()}
    first, second = changed[one].pop(), changed[other].pop()
    changed[one].append(second)
    changed[other].append(first)
    return changed
