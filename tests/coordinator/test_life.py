"""Whole lives of groups: epochs, and targets in their order, are the coordinator's own."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.coordinator.lives import KINDS, Life, Seen, lives
from tests.kafka import coordinator


@pytest.fixture(scope="module")
def many_lives(spark: SparkSession) -> list[Life]:
    made = lives(150, seed=161)
    coordinator.run(spark, [life.script for life in made])
    return made


def test_a_life_is_as_the_coordinator_leads_it(many_lives: list[Life]) -> None:
    """Epochs, targets, what is owned; and the orders of members and lists, which decide targets."""
    differing, moments = [], Counter[str]()
    for number, life in enumerate(many_lives):
        for seen in life.seen:
            if seen.verdict != "ok":
                break
            described = life.script.answers[seen.answer]
            moments["epochs"] += 1
            result = list(_differing_epochs(seen, described))
            if seen.values["members"] != [m["member_id"] for m in described["members"]]:
                result.append("order of members")
            # Before a target is computed there is no new one to look at.
            if not seen.kind.endswith("noticed"):
                moments["targets"] += 1
                result += _differing_targets(seen, described)
                moments["lists in another order"] += not _lists_in_order(seen, described)
            for member in described["members"] if "states" in seen.values else ():
                is_same = seen.values["states"].get(member["member_id"]) == member["state"]
                moments["states" if is_same else "states otherwise"] += 1
            differing += [(number, seen.kind, difference) for difference in result]
    assert differing == [], moments
    assert moments["epochs"] > 5000
    assert moments["targets"] > 4000
    # A set of names and of what a regex finds is not modelled to the last.
    assert moments["lists in another order"] <= 5, moments
    # Of members that lose and gain while others are told.
    assert moments["states otherwise"] < 0.002 * moments["states"], moments


def test_lives_hold_every_kind_of_event(many_lives: list[Life]) -> None:
    seen = Counter(one.kind.split(", ")[0] for life in many_lives for one in life.seen)
    assert {kind: seen[kind] for kind in KINDS if seen[kind] < 20} == {}
    assert (
        Counter(one.kind.split(", ")[1] for life in many_lives for one in life.seen)["settled"]
        > 1000
    )


def _differing_epochs(seen: Seen, described: dict[str, Any]) -> Iterator[Any]:
    # When within the assignment interval an event's own heartbeat computes is not compared.
    names = ["group_epoch"]
    if not seen.kind.endswith("noticed"):
        names.append("assignment_epoch")
    for name in names:
        if seen.values[name] != described[name]:
            yield name, seen.values[name], described[name]


def _differing_targets(seen: Seen, described: dict[str, Any]) -> Iterator[Any]:
    for member in described["members"]:
        of = member["member_id"]
        result: dict[str, Any] = {
            "targets": sorted((t, p) for t, _, numbers in member["target"] for p in numbers),
            "epochs": member["epoch"],
            "owned": sorted((t, p) for t, p in member.get("owned", [])),
        }
        for name, value in result.items():
            value_there = seen.values.get(name, {}).get(of, value)
            if (sorted(value_there) if name == "targets" else value_there) != value:
                yield name, of, value_there, value


def _lists_in_order(seen: Seen, described: dict[str, Any]) -> bool:
    return all(
        seen.values["targets"][m["member_id"]] == [(t, p) for t, _, ns in m["target"] for p in ns]
        for m in described["members"]
    )
