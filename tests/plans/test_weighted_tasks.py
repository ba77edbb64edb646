"""The kernels of a task on rows as ``fold_weights`` makes them, without Spark."""

import json
import random
from typing import Any

import pyarrow as pa
import pytest

from kassign_spark.assignors.weighted.options import Bounds, Limit
from kassign_spark.assignors.weighted.small import PlanOptions
from kassign_spark.groups.read import CLAIM, MEMBER, ROWS, SUBSCRIPTION, TOPIC
from kassign_spark.plans.weight_rows import CAPACITY, WEIGHT
from kassign_spark.plans.weighted_groups import WeightOptions
from kassign_spark.plans.weighted_tasks import curve_arrow, plan_arrow
from tests.benchmarks.weighted_task import one_group, peak_gb

SCHEMA = pa.schema([*ROWS, ("value", pa.float64()), ("cost", pa.float64())])
OPTIONS = WeightOptions(False, None, 0.0, {})
DEFAULT = PlanOptions(Limit(), Bounds(), "default")


def group(
    name: str,
    topics: dict[str, list[float]],
    members: dict[str, list[str]],
    owned: dict[str, str] | None = None,
    capacity: dict[str, float] | None = None,
) -> list[dict[str, Any]]:
    """Rows of one group: weights by topic, topics by member, owners by ``topic-partition``."""
    rows: list[dict[str, Any]] = []
    lists = sorted({tuple(t) for t in members.values()})
    rows += [
        {"kind": SUBSCRIPTION, "list_number": i, "texts": json.dumps(one)}
        for i, one in enumerate(lists)
    ]
    texts = json.dumps([None, None, None])
    for member, of_member in members.items():
        at = lists.index(tuple(of_member))
        mine = {"member_id": member, "number": -1, "place": -1}
        rows.append({"kind": MEMBER, "list_number": at, "texts": texts, **mine})
    for topic, weights in topics.items():
        rows.append({"kind": TOPIC, "topic": topic, "number": len(weights)})
        rows += [
            {"kind": WEIGHT, "topic": topic, "number": p, "value": w}
            for p, w in enumerate(weights)
            if w >= 0
        ]
    for partition, member in (owned or {}).items():
        topic, _, number = partition.rpartition("-")
        rows.append({"kind": CLAIM, "member_id": member, "topic": topic, "number": int(number)})
    for member, value in (capacity or {}).items():
        rows.append({"kind": CAPACITY, "member_id": member, "value": value})
    empty = {"number": 0, "place": 0, "list_number": 0}
    return [{"cluster_id": "", "group_id": name, **empty, **row} for row in rows]


def table(*groups: list[dict[str, Any]], seed: int | None = None) -> pa.Table:
    rows = [row for of_group in groups for row in of_group]
    if seed is not None:
        random.Random(seed).shuffle(rows)
    return pa.Table.from_pylist(rows, SCHEMA)


def plan(
    rows: pa.Table, options: PlanOptions = DEFAULT, weights: WeightOptions = OPTIONS
) -> tuple[dict[str, dict[str, str]], dict[str, dict[str, Any]], dict[str, str]]:
    """Owners by group and partition; verdicts and problems by group."""
    result = pa.concat_tables(plan_arrow(rows, options=options, weights=weights)).to_pylist()
    owners: dict[str, dict[str, str]] = {}
    for row in result:
        if row["member_id"] is not None:
            at = f"{row['topic']}-{row['partition']}"
            owners.setdefault(row["group_id"], {})[at] = row["member_id"]
    verdicts = {row["group_id"]: row for row in result if row["verdict"] is not None}
    problems = {row["group_id"]: row["problem"] for row in result if row["problem"] is not None}
    return owners, verdicts, problems


TWO = {"a": ["t"], "b": ["t"]}
HOT = group(
    "hot",
    {"hot": [100, 1, 1, 1, 1, 2]},
    {m: ["hot"] for m in "abc"},
    {"hot-0": "a", "hot-1": "a", "hot-2": "a", "hot-3": "b"},
)
FLEET = [
    HOT,
    group("even", {"t": [1, 1, 1, 1]}, TWO, {"t-0": "a", "t-1": "a", "t-2": "b", "t-3": "b"}),
    group("idle", {"t": [0, 0, 0]}, TWO),
    group("sized", {"t": [1, 1, 1, 1]}, TWO, capacity={"a": 3.0}),
    group("unweighed", {"t": [-1, -1, -1, -1, -1]}, TWO),
    group("nothing", {}, {"a": ["gone"]}),
    group("strange", {"t": [4, 4], "u": [1]}, {"a": ["t"], "c": ["u"]}, {"t-0": "c", "t-1": "a"}),
]


def test_situations() -> None:
    owners, verdicts, problems = plan(table(*FLEET))
    assert not problems
    assert verdicts["even"]["verdict"] == "nothing_to_do"
    hot = verdicts["hot"]
    assert hot["verdict"] == "bounded_by_partition"
    assert "hot-0 alone weighs 100" in hot["detail"]
    # Within 5 % of what the hot one weighs alone, the two beside it may stay.
    assert (hot["max_load"], hot["load_bound"], hot["moves"]) == (102, 100, 0)
    assert hot["limit"] < 100
    assert sorted(owners["idle"].values()) in (["a", "a", "b"], ["a", "b", "b"])
    assert "planned by counts" in verdicts["unweighed"]["detail"]
    assert list(owners["sized"].values()).count("a") == 3
    assert verdicts["sized"]["max_load"] == 1
    assert verdicts["nothing"]["verdict"] == "nothing_to_do"
    assert owners["strange"] == {"t-0": "a", "t-1": "a", "u-0": "c"}
    assert verdicts["strange"]["moves"] == 0


def test_the_order_of_rows_and_the_company_change_nothing() -> None:
    whole = plan(table(*FLEET))
    for seed in range(4):
        assert plan(table(*FLEET, seed=seed)) == whole
    owners, verdicts, _ = plan(table(HOT))
    assert owners["hot"] == whole[0]["hot"]
    assert verdicts["hot"] == whole[1]["hot"]


def test_bounds_say_what_would_do() -> None:
    options = PlanOptions(Limit(max_load=100), Bounds(max_moves=0), "default")
    _, verdicts, _ = plan(table(HOT), options)
    assert verdicts["hot"]["verdict"] == "bounded_by_moves"
    assert "1 move, of 100 together, meets the limit" in verdicts["hot"]["detail"]


def test_what_only_some_may_take_is_named() -> None:
    rows = group(
        "g", {"t": [5, 5, 5], "u": [1]}, {"a": ["t", "u"], "b": ["t"], "c": ["u"], "d": ["u"]}
    )
    _, verdicts, _ = plan(table(rows), PlanOptions(Limit(max_load=7), Bounds(), "default"))
    assert verdicts["g"]["verdict"] == "bounded_by_subscriptions"
    assert "only a, b may take t, which weigh 15 for a capacity of 2" in verdicts["g"]["detail"]
    _, verdicts, _ = plan(table(rows), PlanOptions(Limit(max_load=4), Bounds(), "default"))
    assert verdicts["g"]["verdict"] == "bounded_by_partition"
    assert "a capacity of 1.25 would do" in verdicts["g"]["detail"]


def test_missing_weights_are_a_problem_or_filled() -> None:
    rows = table(group("g", {"t": [3, -1, -1]}, TWO))
    _, _, problems = plan(rows)
    assert problems == {
        "g": "table weights has no row for 2 partitions that it reads: t-1, t-2; "
        "give them weights, or missing_weight"
    }
    _, verdicts, _ = plan(rows, weights=OPTIONS._replace(missing=2.0))
    assert verdicts["g"]["max_load"] == 4
    _, verdicts, _ = plan(rows, weights=OPTIONS._replace(missing=2.0, base=1.0))
    assert verdicts["g"]["max_load"] == 6


def test_bundles_go_together() -> None:
    topics = {"orders": [9.0, 1, 1, 1], "paid": [1.0, 5, 2]}
    members = {m: ["orders", "paid"] for m in "ab"}
    options = OPTIONS._replace(together={"orders": "o", "paid": "o"})
    owners, verdicts, _ = plan(table(group("g", topics, members)), weights=options)
    assert all(owners["g"][f"orders-{p}"] == owners["g"][f"paid-{p}"] for p in range(3))
    assert verdicts["g"]["max_load"] == 10
    split = {"a": ["orders"], "b": ["paid"]}
    _, _, problems = plan(table(group("g", topics, split)), weights=options)
    assert problems == {"g": "together: no member subscribes to all topics of 'o'"}


def test_the_curve_ends_at_its_bound_and_has_one_knee() -> None:
    (answer,) = curve_arrow(table(*FLEET), effort="default", weights=OPTIONS)
    points = [row for row in answer.to_pylist() if row["group_id"] == "hot"]
    assert [(p["moves"], p["max_load"], p["bound"]) for p in points] == [
        (0, 102, 100),
        (1, 100, 100),
    ]
    assert sum(p["is_knee"] for p in points) == 1


@pytest.mark.slow
def test_a_task_takes_a_group_past_two_million_partitions() -> None:
    """Within memory that grows with the rows alone, and with the fewest moves there are."""
    partitions = 2_500_000
    rows = one_group(partitions, 1_000)
    before = peak_gb()
    count, verdict = 0, {}
    for piece in plan_arrow(rows, options=DEFAULT, weights=OPTIONS):
        count += len(piece) - piece["member_id"].null_count
        verdict = piece.slice(len(piece) - 1).to_pylist()[0]
    assert count == partitions
    assert verdict["verdict"] == "within_limit"
    assert verdict["moves"] == verdict["moves_bound"] > 1_000
    assert verdict["max_load"] <= 1.055 * verdict["load_bound"]
    assert peak_gb() - before < 0.8e-6 * partitions


@pytest.mark.parametrize("weights", [OPTIONS, OPTIONS._replace(by_weight=True)])
def test_a_large_group_goes_by_bulk_steps(weights: WeightOptions) -> None:
    rows = group("big", {"t": [float(1 + p * 7919 % 1000) for p in range(3_000)]}, TWO)
    owners, verdicts, _ = plan(table(rows), weights=weights)
    assert len(owners["big"]) == 3_000
    assert verdicts["big"]["max_load"] <= 1.001 * verdicts["big"]["load_bound"]


@pytest.mark.filterwarnings("error")
def test_edges_have_one_defined_result() -> None:
    """The edges that weighted.md, 5 lists and that no test above has."""
    three = {m: ["t"] for m in "abc"}
    rows = table(
        group("small", {"t": [1, 1, 1, 900]}, {m: ["t"] for m in ("a", "z")},
              capacity={"a": 1000.0, "z": 0.5}),
        group("few", {"t": [6, 3]}, {m: ["t"] for m in "abcde"}, {"t-0": "a", "t-1": "b"}),
        group("heavy", {"t": [50, 40, 30, 20, 1]}, three),
        group("away", {"t": [4, 4]}, {"a": ["t"], "b": ["t"], "c": [], "d": ["gone"]}),
        group("zeros", {"t": [5, 0, 0, 5]}, {m: ["t"] for m in "ab"},
              {"t-0": "a", "t-1": "a", "t-2": "a", "t-3": "b"}),
    )  # fmt: skip
    owners, verdicts, problems = plan(rows)
    assert not problems
    # Room is relative: who is too small for the lightest partition gets none.
    assert set(owners["small"].values()) == {"a"}
    assert verdicts["small"]["max_load"] == 0.903
    # Idle members of a group of fewer partitions than members are no skew.
    assert verdicts["few"]["verdict"] in ("nothing_to_do", "bounded_by_partition")
    assert (verdicts["few"]["moves"], verdicts["few"]["max_load"]) == (0, 6)
    # More dominant ones than members: the peel stops at one open member.
    assert verdicts["heavy"]["max_load"] <= verdicts["heavy"]["load_bound"] * 1.05
    assert verdicts["heavy"]["dominant_count"] < 3
    assert len(set(owners["heavy"].values())) == 3
    # Who subscribes to nothing that exists has no load, and is not in the mean.
    assert (verdicts["away"]["fair_load"], verdicts["away"]["max_load"]) == (4, 4)
    assert set(owners["away"].values()) == {"a", "b"}
    # What weighs nothing stays.
    assert owners["zeros"] == {"t-0": "a", "t-1": "a", "t-2": "a", "t-3": "b"}
    assert verdicts["zeros"]["verdict"] == "nothing_to_do"
