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
    """Epochs to the end; targets as long as the orders that decide are the same.

    The order of members after the table has grown, and of topics in one bucket, is not modelled to
    the last: from the first moment at which it differs, only epochs are compared.
    """
    differing, moments = [], Counter[str]()
    for number, life in enumerate(told):
        in_order = True
        for seen in life.seen:
            if seen.verdict != "ok":
                break
            described = life.script.answers[seen.answer]
            moments["epochs"] += 1
            found = list(_differing_epochs(seen, described))
            in_order &= seen.said["members"] == [m["member_id"] for m in described["members"]]
            # The very first target, of the first member alone, is not looked at.
            if in_order and seen is not life.seen[0] and not seen.kind.endswith("noticed"):
                moments["targets"] += 1
                found += _differing_targets(seen, described)
            in_order = in_order and _is_in_order(seen, described)
            differing += [(number, seen.kind, what) for what in found]
            if found:
                break
    assert differing == [], moments
    assert moments["epochs"] > 4000
    assert moments["targets"] > 1000


def test_lives_hold_every_kind_of_event(told: list[Life]) -> None:
    seen = Counter(one.kind.split(", ")[0] for life in told for one in life.seen)
    assert {kind: seen[kind] for kind in KINDS if seen[kind] < 20} == {}
    assert Counter(one.kind.split(", ")[1] for life in told for one in life.seen)["settled"] > 1000


def _differing_epochs(seen: Seen, described: dict[str, Any]) -> Iterator[Any]:
    # When within the assignment interval an event's own heartbeat computes is not compared.
    names = ["group_epoch"]
    if not seen.kind.endswith("noticed"):
        names.append("assignment_epoch")
    for name in names:
        if seen.said[name] != described[name]:
            yield name, seen.said[name], described[name]


def _differing_targets(seen: Seen, described: dict[str, Any]) -> Iterator[Any]:
    for member in described["members"]:
        of = member["member_id"]
        found: dict[str, Any] = {
            "targets": sorted((t, p) for t, _, numbers in member["target"] for p in numbers),
            "epochs": member["epoch"],
            "held": sorted((t, p) for t, p in member.get("owned", [])),
        }
        for name, value in found.items():
            said = seen.said.get(name, {}).get(of, value)
            if (sorted(said) if name == "targets" else said) != value:
                yield name, of, said, value


def _is_in_order(seen: Seen, described: dict[str, Any]) -> bool:
    members = {m["member_id"]: m for m in described["members"]}
    return seen.said["members"] == list(members) and all(
        seen.said["targets"][name] == [(t, p) for t, _, ns in member["target"] for p in ns]
        for name, member in members.items()
    )
