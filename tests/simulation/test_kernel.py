"""Histories of many groups in one task, without Spark: what holds for every group and event."""

import random
from collections import Counter
from typing import Any

import numpy as np
import pytest

from kassign_spark.simulation.group_reading import read_groups
from kassign_spark.simulation.kernel import simulate_arrow
from tests.simulation.checked_states import check_states
from tests.simulation.histories import history
from tests.simulation.task_events import simulated, task_table

_SEEDS = range(12)


def _rows(tables: Any) -> Counter[Any]:
    return Counter(tuple(row.items()) for table in tables for row in table.to_pylist())


@pytest.mark.parametrize("seed", _SEEDS)
def test_a_rebalance_leaves_everything_with_one_subscriber(seed: int) -> None:
    problems, rebalanced = check_states(*read_groups(task_table(*history(seed).tables())))
    # Members that were refused are not there; histories know nothing of that.
    assert all("any more: it went before" in problem for problem in problems), problems
    assert rebalanced > 50


@pytest.mark.parametrize("seed", _SEEDS)
def test_the_order_of_rows_and_the_other_groups_change_nothing(seed: int) -> None:
    made = history(seed, groups=12)
    table = task_table(*made.tables())
    together = _rows(simulate_arrow(table))
    order = list(range(len(table)))
    random.Random(seed).shuffle(order)
    assert _rows(simulate_arrow(table.take(order))) == together
    number = np.array([int(name[1:]) for name in table["group_id"].to_pylist()])
    apart: Counter[Any] = Counter()
    for rest in range(3):
        apart += _rows(simulate_arrow(table.filter(number % 3 == rest)))
    assert apart == together


def test_every_kind_and_reason_is_met() -> None:
    rows = [row for seed in _SEEDS for row in simulated(*history(seed).tables())]
    assert {row["kind"] for row in rows} >= {"topic_grows", "member_restarts", "assignor_changes"}
    assert {row["protocol"] for row in rows} >= {"eager", "cooperative", "mixed"}
    assert {row["action"] for row in rows} == {
        None,
        "retained",
        "revoked",
        "assigned",
        "withheld",
        "lost",
    }
    assert len({row["reason"] for row in rows}) > 20


def test_a_group_that_is_too_large_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    members = [{"group_id": "g", "member_id": "a", "topics": ["t"], "assignor": "range"}]
    topics = [{"topic": "t", "num_partitions": 3}]
    grows = {"event": 1, "kind": "topic_grows", "topic": "t", "line": 4}
    [row] = simulated(members, topics, [], [{**grows, "num_partitions": 2**31 - 1}])
    assert row["problem"] == (
        'group "g" reads 2,147,483,647 partitions; simulate follows groups of at most 20,000,000: '
        "leave it out"
    )
    monkeypatch.setattr("kassign_spark.simulation.kernel.PARTITIONS_OF_A_GROUP", 1_000)
    fits = task_table(members, topics, [], [{**grows, "num_partitions": 1_000}])
    assert sum(map(len, simulate_arrow(fits))) == 1_000
    [row] = simulated(members, topics, [], [{**grows, "num_partitions": 1_001}])
    assert row["problem"].startswith('group "g" reads 1,001 partitions; ')


@pytest.mark.parametrize(
    ("group_type", "assignor"), [("classic", "range"), ("classic", "cooperative-sticky")]
)
def test_a_newcomer_takes_the_place_of_its_instance_id(group_type: str, assignor: str) -> None:
    """And the one that was fenced takes it back, and so on: they chase each other."""
    rows = simulated(*_with_instances(group_type, assignor))
    first, second, *later = rows
    for row, holder in ((first, "a"), (second, "newcomer")):
        assert (row["kind"], row["rebalance"]) == ("member_joins", False)
        assert f"group.instance.id of {holder}, takes its place" in row["reason"]
        assert "FENCED_INSTANCE_ID" in row["reason"]
    assert {row["member_id"] for row in later} == {"again", "b"}
    if assignor == "cooperative-sticky":
        retained = {(r["member_id"], r["partition"]) for r in later if r["action"] == "retained"}
        assert retained == {("again", 0), ("again", 2), ("b", 1), ("b", 3)}


def test_the_coordinator_refuses_an_instance_id_in_use() -> None:
    first, second, *later = simulated(*_with_instances("consumer", "uniform"))
    for row in (first, second):
        assert (row["rebalance"], row["group_epoch"], row["protocol"]) == (False, 3, "consumer")
        assert "is that of a, so the broker refuses" in row["reason"]
        assert "UNRELEASED_INSTANCE_ID" in row["reason"]
    assert {row["member_id"] for row in later} == {"a", "b"}


def _with_instances(group_type: str, assignor: str) -> tuple[list[dict[str, Any]], ...]:
    """Two static members; two others come with the id of the first; then the topic grows."""
    members = [
        {"group_id": "g", "member_id": member, "topics": ["t"], "assignor": assignor}
        | {"group_instance_id": f"i-{member}", "group_type": group_type, "generation": 3}
        for member in "ab"
    ]
    owned = [
        {"group_id": "g", "member_id": "ab"[p % 2], "topic": "t", "partition": p} for p in range(4)
    ]
    events: list[dict[str, Any]] = [
        {"event": number, "line": number, "kind": "member_joins", "group_id": "g"}
        | {"member_id": name, "group_instance_id": "i-a"}
        for number, name in enumerate(("newcomer", "again"), start=1)
    ]
    events.append({"event": 3, "line": 3, "kind": "topic_grows", "topic": "t", "num_partitions": 6})
    return members, [{"topic": "t", "num_partitions": 4}], owned, events
