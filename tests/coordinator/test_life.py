"""Whole lives of groups: epochs, targets in their order and states are the coordinator's own."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.coordinator.lives import KINDS, Life, Seen, lives
from tests.kafka import coordinator


@pytest.fixture(scope="module")
def told(spark: SparkSession) -> list[Life]:
    made = lives(150, seed=16)
    coordinator.run(spark, [life.script for life in made])
    return made


def test_a_life_is_as_the_coordinator_leads_it(told: list[Life]) -> None:
    differing = [
        (number, seen.kind, what)
        for number, life in enumerate(told)
        for seen, what in _first_difference(life)
    ]
    assert differing == []


def test_lives_hold_every_kind_of_event(told: list[Life]) -> None:
    seen = Counter(one.kind.split(", ")[0] for life in told for one in life.seen)
    assert {kind: seen[kind] for kind in KINDS if seen[kind] < 20} == {}
    moments = Counter(one.kind.split(", ")[1] for life in told for one in life.seen)
    assert moments["settled"] > 1000
    assert moments["resolved and computed"] > 3
    verdicts = Counter(one.verdict for life in told for one in life.seen)
    assert verdicts["ok"] > 0.8 * sum(verdicts.values()), verdicts


def _first_difference(life: Life) -> Iterator[tuple[Seen, Any]]:
    for seen in life.seen:
        if seen.verdict != "ok":
            return
        for what in _differences(seen, life.script.answers[seen.answer]):
            yield seen, what
            return


def _differences(seen: Seen, described: dict[str, Any]) -> Iterator[Any]:
    said, members = seen.said, described["members"]
    for name in ("group_epoch", "assignment_epoch"):
        if said[name] != described[name]:
            yield name, said[name], described[name]
    if said["members"] != [member["member_id"] for member in members]:
        yield "members", said["members"], [member["member_id"] for member in members]
    for member in members:
        of = member["member_id"]
        target = [(t, p) for t, _, numbers in member["target"] for p in numbers]
        found = {
            "targets": target,
            "states": member["state"],
            "epochs": member["epoch"],
            "held": sorted((t, p) for t, p in member.get("owned", [])),
        }
        for name, value in found.items():
            if name in said and said[name].get(of) != value:
                yield name, of, said[name].get(of), value
