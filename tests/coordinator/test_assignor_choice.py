"""Votes for an assignor: what the coordinator uses, and the tie that never settles."""

from collections.abc import Sequence

import pytest
from pyspark.sql import SparkSession

from kassign_spark.coordinator.assignor_votes import choose_assignor
from tests.kafka import coordinator
from tests.kafka.coordinator import Script

CASES: list[tuple[str | None, ...]] = [
    (None,),
    (None, None, "range"),
    ("uniform", "range"),
    ("range", "uniform"),
    ("uniform", None, None, "range"),
    ("uniform", "uniform", "range", "range"),
    ("uniform", "range", "range"),
    ("range", "uniform", "uniform"),
    ("range", "range", "range"),
]
_ROUNDS = 4


def _script(votes: Sequence[str | None]) -> Script:
    script = Script()
    script.topics({"t": ("J6V0K9wQRmmjVk2nq0Y1zA", 5)})
    members = [f"member-{i}" for i in range(len(votes))]
    for member, vote in zip(members, votes, strict=True):
        script.heartbeat(member, topics=["t"], assignor=vote)
    for _ in range(_ROUNDS):
        script.sleep()
        script.round(members)
        script.round(members, confirm=True)
        script.describe()
    return script


@pytest.fixture(scope="module")
def scripts(spark: SparkSession) -> list[Script]:
    made = [_script(votes) for votes in CASES]
    coordinator.run(spark, made)
    return made


def test_the_coordinator_chooses_the_same(scripts: list[Script]) -> None:
    for votes, script in zip(CASES, scripts, strict=True):
        described = [answer for answer in script.answers if "group_epoch" in answer]
        choice = choose_assignor(votes)
        assert described[-1]["assignor"] == choice.assignor, votes
        rises = described[-1]["group_epoch"] - described[-2]["group_epoch"]
        assert (rises > 0) == bool(choice.undecided), votes
        assert choice.unknown == ()


def test_exactly_one_vote_each_is_undecided() -> None:
    assert choose_assignor(("uniform", None, "range")).undecided == (0, 2)
    assert choose_assignor(("uniform", "range", "uniform", "range")).undecided == ()


def test_a_broker_with_other_defaults() -> None:
    assert choose_assignor((None,), ("range", "uniform")).assignor == "range"
    assert choose_assignor((None,), ("uniform",)).assignor == "uniform"


def test_an_unknown_name_has_no_vote() -> None:
    choice = choose_assignor(("Uniform", "range", None))
    assert (choice.assignor, choice.unknown) == ("range", (0,))
