"""The kernel of balance, without Spark: by plain counting and the exact solver."""

import math
import random
from collections import Counter
from typing import Any

import pytest
from pyspark.sql.pandas.types import from_arrow_schema

from kassign_spark.groups.task_rows import ASSIGNED, MEMBER, OWNED
from kassign_spark.measures.balance_tasks import measure_arrow
from kassign_spark.report import plan
from kassign_spark.schemas import BALANCE
from tests.oracles.mixed_groups import MixedGroup, mixed_groups
from tests.oracles.optimal import least_cost
from tests.task_rows import as_table

SEED = 911
Placed = dict[tuple[str, int], str]
Row = dict[str, Any]


def _placed(group: MixedGroup, rng: random.Random) -> Placed:
    """Most partitions at some subscriber, some of them where they were."""
    owned = group.valid_owned()
    placed: Placed = {}
    for topic, count in group.partitions.items():
        for partition in range(count if group.subscribers(topic) else 0):
            at = rng.choice(sorted(group.subscribers(topic)))
            placed[topic, partition] = owned.get((topic, partition), at)
            if rng.random() < 0.3:
                placed[topic, partition] = at
    return placed


def _rows(group: MixedGroup, placed: Placed, cluster: str = "c") -> list[Row]:
    key = {"cluster_id": cluster, "group_id": group.name}
    rows = [
        {**key, "kind": MEMBER, "member_id": member, "texts": list(topics)}
        for member, topics in group.subscriptions.items()
    ]
    for kind, partitions in ((ASSIGNED, placed), (OWNED, group.owned)):
        rows += [
            {**key, "kind": kind, "member_id": m, "topic": topic, "partition": number}
            for (topic, number), m in partitions.items()
        ]
    return rows


def _measure(rows: list[Row]) -> dict[str, Row]:
    measured = measure_arrow(as_table(rows)).to_pylist()
    result = {row["group_id"]: row for row in measured}
    assert len(result) == len(measured)
    return result


def _add_racks(rows: list[Row], rng: random.Random) -> Counter[str]:
    """Give members and partitions racks: of each group how many partitions are not in theirs."""
    rack: dict[tuple[str, str], str | None] = {}
    for row in rows:
        if row["kind"] == MEMBER:
            row["rack_id"] = rng.choice(["e", "w", "", None])
            rack[row["group_id"], row["member_id"]] = row["rack_id"]
    crossing: Counter[str] = Counter()
    for row in rows:
        if row["kind"] == ASSIGNED:
            row["texts"] = rng.choice([["e"], ["e", "w"], ["n"], [], None])
            own = rack[row["group_id"], row["member_id"]]
            crossing[row["group_id"]] += bool(own and row["texts"] and own not in row["texts"])
    return +crossing


def test_counts_and_proofs_are_those_of_plain_counting_and_the_solver() -> None:
    rng = random.Random(SEED)
    answers = [(group, _placed(group, rng)) for group in mixed_groups(400, SEED)]
    rows = [row for group, placed in answers for row in _rows(group, placed)]
    crossing = _add_racks(rows, rng)
    assert len(crossing) > 100
    rng.shuffle(rows)
    result = _measure(rows)
    seen: Counter[tuple[object, ...]] = Counter()
    for group, placed in answers:
        row = result[group.name]
        loads = Counter(placed.values())
        counts = [loads[member] for member in group.subscriptions]
        mean = sum(counts) / len(counts)
        subscriptions = {frozenset(topics) for topics in group.subscriptions.values()}
        kept = sum(group.owned.get(tp) == member for tp, member in placed.items())
        assert row["member_count"] == len(counts)
        assert (row["partition_count"], row["min_assigned"], row["max_assigned"]) == (
            len(placed),
            min(counts),
            max(counts),
        )
        assert row["mean_assigned"] == mean
        deviation = math.sqrt(sum((n - mean) ** 2 for n in counts) / len(counts))
        assert row["stddev_assigned"] == pytest.approx(deviation)
        assert row["sum_of_squares"] == sum(n * n for n in counts)
        assert row["cross_rack_count"] == crossing[group.name]
        assert row["kept_count"] == kept
        assert row["moved_count"] == sum(tp in group.owned for tp in placed) - kept
        assert (row["subscription_type"] == "homogeneous") == (len(subscriptions) == 1), group
        if not placed:
            assert row["is_optimal"] is None
            assert row["least_moves"] is None
            continue
        best = least_cost(*group.counts())
        balanced = row["sum_of_squares"] == best.sum_of_squares
        assert row["is_balance_optimal"] == balanced
        assert row["is_optimal"] == (balanced and len(placed) - kept == best.moves), group
        assert row["least_sum_of_squares"] == best.sum_of_squares
        most_kept = len(placed) - best.moves
        assert row["least_moves"] == sum(tp in group.owned for tp in placed) - most_kept
        seen[row["is_balance_optimal"], row["is_optimal"]] += 1
    assert len(seen) == 3, seen


def test_the_kernel_and_the_report_have_the_types_that_are_declared() -> None:
    declared = [(field.name, field.dataType) for field in BALANCE.columns]
    assert [(f.name, f.dataType) for f in plan.BALANCE.columns][: len(declared)] == declared
    rows = _rows(MixedGroup("g", {"t": 1}, {"a": ("t",)}), {("t", 0): "a"})
    measured = measure_arrow(as_table(rows))
    assert from_arrow_schema(measured.schema).names == [name for name, _ in declared]
    assert [(f.name, f.dataType) for f in from_arrow_schema(measured.schema)] == declared


def test_the_order_of_rows_makes_no_difference() -> None:
    rng = random.Random(SEED + 1)
    rows = [row for group in mixed_groups(40, SEED) for row in _rows(group, _placed(group, rng))]
    first = _measure(rows)
    rng.shuffle(rows)
    assert _measure(rows) == first


def test_clusters_do_not_mix() -> None:
    group = MixedGroup("g", {"t": 2}, {"a": ("t",), "b": ("t",)})
    rows = _rows(group, {("t", 0): "a", ("t", 1): "b"})
    east = [{**row, "cluster_id": "east"} for row in rows]
    west = [{**row, "cluster_id": "west"} for row in rows if row["kind"] == MEMBER]
    measured = measure_arrow(as_table(east + west)).to_pylist()
    assert {row["cluster_id"]: row["partition_count"] for row in measured} == {"east": 2, "west": 0}


def test_what_has_no_meaning_belongs_to_nobody() -> None:
    """Null ids, topics and partitions match nothing; a doubled partition is no best answer."""
    key = {"cluster_id": "", "group_id": "g"}
    rows: list[Row] = [
        {**key, "kind": MEMBER, "member_id": "a", "texts": ["t", None]},
        {**key, "kind": MEMBER, "member_id": None, "texts": None},
        {**key, "kind": MEMBER, "group_id": None, "member_id": "a", "texts": []},
        {**key, "kind": ASSIGNED, "member_id": "a", "topic": "t", "partition": 0},
        {**key, "kind": ASSIGNED, "member_id": "a", "topic": "t", "partition": 0},
        {**key, "kind": ASSIGNED, "member_id": None, "topic": "t", "partition": 1},
        {**key, "kind": ASSIGNED, "member_id": "a", "topic": None, "partition": 2},
        {**key, "kind": ASSIGNED, "member_id": "a", "topic": "t", "partition": None},
        {**key, "kind": ASSIGNED, "group_id": None, "member_id": "a", "topic": "t", "partition": 0},
        {**key, "kind": OWNED, "member_id": None, "topic": "t", "partition": 0},
        {**key, "kind": OWNED, "member_id": "b", "topic": "t", "partition": 1},
    ]
    result = _measure(rows)
    assert result["g"]["member_count"] == 2
    assert result["g"]["partition_count"] == 4
    assert (result["g"]["kept_count"], result["g"]["moved_count"]) == (0, 0)
    assert result["g"]["is_balance_optimal"] is False
    assert result[None]["partition_count"] == 0  # type: ignore[index]
    assert result[None]["is_balance_optimal"] is None  # type: ignore[index]
