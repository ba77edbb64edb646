"""Loads by weight in the kernel of balance: by plain counting in fractions, in any row order."""

import random
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest

from kassign_spark.groups.task_rows import ASSIGNED, MEMBER, OWNED
from kassign_spark.measures.balance_tasks import measure_arrow
from kassign_spark.measures.weighted_loads import MISSING, WEIGHED, WEIGHT
from tests.oracles.mixed_groups import MixedGroup, mixed_groups
from tests.task_rows import MEASURED, as_table

SCHEMA = MEASURED.append(pa.field("value", pa.float64()))


def case(group: MixedGroup, rng: random.Random) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Rows of one group, and what its loads are."""
    key = {"cluster_id": "c", "group_id": group.name}
    capacity = {m: rng.choice([None, 2.0, 0.3]) for m in group.subscriptions}
    rows: list[dict[str, Any]] = [
        {**key, "kind": MEMBER, "member_id": m, "texts": list(topics), "value": capacity[m]}
        for m, topics in group.subscriptions.items()
    ]
    load = dict.fromkeys(group.subscriptions, Fraction(0))
    used, moved = set(), Fraction(0)
    owners = group.valid_owned()
    for topic, count in group.partitions.items():
        for p in range(count if group.subscribers(topic) else 0):
            at = {**key, "topic": topic, "partition": p}
            holder = rng.choice(sorted(group.subscribers(topic)))
            # Whole numbers of very different sizes, whose sums are exact.
            shared, own = float(rng.randint(0, 10)), float(rng.choice([0, 3, 10**9]))
            has_own = rng.random() < 0.5
            rows.append({**at, "kind": ASSIGNED, "member_id": holder})
            rows.append({**at, "kind": WEIGHT, "size": 0, "value": shared})
            if has_own:
                rows.append({**at, "kind": WEIGHT, "size": 1, "value": own})
            weight = Fraction(own if has_own else shared)
            load[holder] += weight
            used.add(topic)
            before = owners.get((topic, p))
            if before is not None:
                rows.append({**at, "kind": OWNED, "member_id": before})
                moved += weight if before != holder else 0
    by_capacity = {m: load[m] / Fraction(capacity[m] or 1.0) for m in load}
    serving = [m for m, topics in group.subscriptions.items() if used & set(topics)]
    room = sum((Fraction(capacity[m] or 1.0) for m in serving), Fraction(0))
    most, total = max(by_capacity.values()), sum(load.values())
    mean = total / room if room else Fraction(0)
    expected = {
        "total_weight": float(total),
        "max_load": float(most),
        "mean_load": float(mean),
        "load_skew": float(most / mean) if mean else None,
        "moved_weight": float(moved),
    }
    return rows, expected if used else dict.fromkeys(WEIGHED)


def measured(rows: list[dict[str, Any]], **options: float) -> dict[str, dict[str, Any]]:
    result = measure_arrow(as_table(rows, SCHEMA), **options).to_pylist()
    return {row["group_id"]: {name: row[name] for name in (*WEIGHED, MISSING)} for row in result}


def test_loads_of_random_groups() -> None:
    rng = random.Random(20261122)
    cases = {group.name: case(group, rng) for group in mixed_groups(200, seed=77)}
    rows = [row for of_group, _ in cases.values() for row in of_group]
    result = measured(rows)
    assert len(result) == 200
    for name, (_, expected) in cases.items():
        assert result[name].keys() == {*expected, MISSING}
        for column, value in expected.items():
            result_value = result[name][column]
            assert (result_value is None) is (value is None), (name, column)
            assert result_value is None or result_value == pytest.approx(value, rel=1e-14), (
                name,
                column,
            )
    assert sum(of_group["load_skew"] is not None for of_group in result.values()) > 150
    rng.shuffle(rows)
    assert measured(rows) == result
    some = next(name for name in result if result[name]["load_skew"] is not None)
    assert measured(cases[some][0]) == {some: result[some]}


def test_missing_weights_are_counted_or_filled() -> None:
    key = {"cluster_id": "c", "group_id": "g"}
    rows = [
        {**key, "kind": MEMBER, "member_id": "a", "texts": ["t"]},
        *(
            {**key, "kind": ASSIGNED, "member_id": "a", "topic": "t", "partition": p}
            for p in (0, 1)
        ),
        {**key, "kind": WEIGHT, "topic": "t", "partition": 1, "size": 0, "value": 5.0},
        {**key, "kind": WEIGHT, "topic": "u", "partition": 1, "size": 0, "value": 9.0},
    ]
    assert measured(rows)["g"][MISSING] == 1
    filled = measured(rows, missing=2.0, base=0.5)["g"]
    assert (filled["max_load"], filled[MISSING]) == (8.0, 0)
    nothing = measured(rows[:-2])["g"]
    assert set(nothing.values()) == {None, 0}
