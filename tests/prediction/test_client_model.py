"""The sequential model gives the real client's answer, its exceptions and its endless loops.

That it does for the groups here, and for others, ``tests/assignors/test_kernels.py`` and
``tests/kafka/test_recorded.py`` say.
"""

from collections import Counter
from dataclasses import replace

import pytest
from pyspark.sql import SparkSession

from kassign_spark.client.group_state import Outcome
from kassign_spark.client.model import predict_group
from tests.kafka import oracle
from tests.kafka.failing_groups import failing_group
from tests.kafka.oracle import Group, Member
from tests.kafka.recorded import fleet
from tests.prediction.prediction_states import named, to_state
from tests.random_states import variants

# The model's part of the assignors: the others need no state within a group.
NAMES = ("range", "sticky", "cooperative-sticky")


def equals(group: Group, outcome: Outcome, answer: oracle.Assigned | str) -> bool:
    if isinstance(answer, str):
        verdict = "never_ends" if answer == "TimeLimit" else "throws"
        named_it = verdict == "never_ends" or str(outcome.detail).startswith(answer + ":")
        return outcome.verdict == verdict and named_it and not outcome.assigned
    return outcome.verdict == "ok" and named(group, outcome) == oracle.as_sets(answer)


def test_random_groups_hold_the_hard_cases() -> None:
    """Each kind of group is there often enough to prove something."""
    seen = Counter[str]()
    for group in fleet("states"):
        members = group.members
        sizes = {t: n if isinstance(n, int) else len(n) for t, n in group.topics.items()}
        claims = [(tp, m.generation) for m in members for tp in m.owned]
        partitions = Counter(tp for tp, _ in claims)
        seen[group.assignor] += 1
        seen["racks"] += any(not isinstance(n, int) for n in group.topics.values())
        seen["mixed"] += len({frozenset(m.topics) for m in members}) > 1
        seen["claims"] += bool(claims)
        seen["claimed twice"] += any(n > 1 for n in partitions.values())
        seen["claimed in one generation twice"] += len(claims) > len(set(claims))
        seen["one member twice"] += any(len(m.owned) > len(set(m.owned)) for m in members)
        seen["stale"] += len({m.generation for m in members if m.owned}) > 1
        seen["lost generation"] += any(m.generation is None and m.owned for m in members)
        seen["no such partition"] += any(p >= sizes.get(t, 0) for t, p in partitions)
        seen["unsubscribed"] += any(t not in m.topics for m in members for t, _ in m.owned)
        seen["user data"] += any(m.user_data is not None for m in members)
        seen["no topics"] += any(not m.topics for m in members)
        outcome = predict_group(to_state(group))
        seen[outcome.verdict] += 1
    expected = dict.fromkeys(NAMES, 1000) | {"racks": 1500, "mixed": 1300, "claims": 2500}
    expected |= {"claimed twice": 700, "claimed in one generation twice": 500, "stale": 700}
    expected |= {"one member twice": 300, "lost generation": 400, "no such partition": 250}
    expected |= {"unsubscribed": 700, "user data": 400, "no topics": 300, "ok": 3500, "throws": 20}
    lacking = {kind: (seen[kind], least) for kind, least in expected.items() if seen[kind] < least}
    assert lacking == {}


@pytest.mark.parametrize(
    ("case", "verdict", "detail"),
    [
        ("never-ends", "never_ends", "everything is as after pass 8"),
        ("null-pointer", "throws", "NullPointerException"),
        ("never-settles", "ok", None),
    ],
)
def test_recorded_failures(
    spark: SparkSession, case: str, verdict: str, detail: str | None
) -> None:
    group = failing_group(case)
    outcome = predict_group(to_state(group))
    assert outcome.verdict == verdict
    assert outcome.detail is None if detail is None else detail in str(outcome.detail)
    (answer,) = oracle.assign(spark, [group], seconds=1)
    assert equals(group, outcome, answer)


@pytest.mark.slow
def test_relatives_of_a_group_that_never_ends(spark: SparkSession) -> None:
    """Some of them still do not end, most do."""
    groups = variants(failing_group("never-ends"), 30, seed=8)
    answers = oracle.assign(spark, groups, seconds=0.5)
    outcomes = [predict_group(to_state(group)) for group in groups]
    assert 5 <= answers.count("TimeLimit") <= 15
    assert all(map(equals, groups, outcomes, answers))


def test_the_order_of_claims_does_not_matter() -> None:
    for group in fleet("states")[:500]:
        backwards = [replace(m, owned=m.owned[::-1]) for m in group.members]
        other = Group(group.topics, backwards, group.assignor)
        assert named(group, predict_group(to_state(group))) == named(
            group, predict_group(to_state(other))
        )


def test_without_the_order_of_members_it_is_unknown_which_keeps_one_more() -> None:
    # The ids Aa and BB have one hash.
    owned = {"Aa": [("t", 0), ("t", 1)], "BB": [("t", 2), ("t", 3)], "c": []}
    group = Group({"t": 4}, [Member(m, ["t"], tps, 4) for m, tps in owned.items()], "sticky")
    assert predict_group(to_state(group)).verdict == "ok"
    outcome = predict_group(replace(to_state(group), is_order_known=False))
    assert outcome.verdict == "inexact"
    assert "members of one bucket compete" in str(outcome.detail)
