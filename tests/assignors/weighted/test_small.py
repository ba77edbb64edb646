"""Small groups against what CP-SAT proved (``make_proven``), and what holds of every plan."""

import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kassign_spark.assignors.weighted.bounds import moves_bound
from kassign_spark.assignors.weighted.counts import best_counts
from kassign_spark.assignors.weighted.curve import find_curve
from kassign_spark.assignors.weighted.fewest import find_fewest
from kassign_spark.assignors.weighted.objective import reach as reach_objective
from kassign_spark.assignors.weighted.objective import within
from kassign_spark.assignors.weighted.options import Bounds, Limit
from kassign_spark.assignors.weighted.planner import plan_groups
from kassign_spark.assignors.weighted.small import BatchBounds, PlanOptions, batch_bounds
from kassign_spark.assignors.weighted.steps import insert
from tests.assignors.weighted.drawn_groups import as_group, draw
from tests.oracles.exact_weights import least_load, least_moves

PROVEN = [
    json.loads(line) for line in (Path(__file__).parent / "proven.jsonl").read_text().splitlines()
]


@pytest.fixture(scope="module")
def drawn() -> list[dict[str, Any]]:
    return [draw(line["seed"]) for line in PROVEN]


@pytest.fixture(scope="module")
def loads(drawn: list[dict[str, Any]]) -> BatchBounds:
    return batch_bounds([as_group(group) for group in drawn], "default")


def _optima() -> np.ndarray:
    return np.array([float(Fraction(line["opt"])) for line in PROVEN])


def test_enough_groups_are_proven() -> None:
    assert len(PROVEN) >= 300


def test_what_is_stored_is_what_the_solver_proves() -> None:
    sample = [line for line in PROVEN if len(draw(line["seed"])["weight"]) < 16][::12]
    assert len(sample) >= 3
    for line in sample:
        group = draw(line["seed"])
        assert least_load(group, seconds=20) == Fraction(line["opt"])
        if line.get("moves") is not None:
            limit = Fraction(line["opt"]) * Fraction(21, 20)
            assert least_moves(group, limit, seconds=20) == line["moves"]


def test_bounds_are_never_above_an_optimum_and_mostly_equal(
    drawn: list[dict[str, Any]], loads: BatchBounds
) -> None:
    optima = _optima()
    assert (loads.bound <= optima * (1 + 1e-9)).all()
    unit = np.array([np.lcm.reduce(group["capacity"]) for group in drawn])
    equal = np.ceil(loads.bound * unit - 1e-6) >= np.rint(optima * unit)
    assert equal.mean() >= 0.85


def test_the_greatest_load_is_the_optimum_or_close(loads: BatchBounds) -> None:
    gap = loads.reached.most / np.maximum(_optima(), 1e-300) - 1
    assert (gap >= -1e-9).all()
    assert (gap <= 0.001).mean() >= 0.95
    assert (gap <= 0.01).mean() >= 0.98
    assert gap.max() <= 0.1
    assert gap.mean() <= 0.001


def test_never_above_longest_first(loads: BatchBounds) -> None:
    batch = loads.batch
    objective = reach_objective(batch, np.ones(batch.capacity.shape))
    longest = insert(batch, objective, np.full(batch.home.shape, -1), batch.weight)
    plain = (longest.load / batch.capacity).max(axis=1)
    assert (loads.reached.most <= plain * (1 + 1e-12)).all()


def test_moves_at_a_limit_are_the_fewest(drawn: list[dict[str, Any]], loads: BatchBounds) -> None:
    rows = np.array([i for i, line in enumerate(PROVEN) if line.get("moves") is not None])
    least = np.array([PROVEN[i]["moves"] for i in rows])
    limit = np.zeros((len(rows), loads.batch.capacity.shape[1]))
    for at, i in enumerate(rows):
        most = Fraction(PROVEN[i]["opt"]) * Fraction(21, 20)
        limit[at, : len(drawn[i]["capacity"])] = [most * c // 1 for c in drawn[i]["capacity"]]
    batch = loads.batch.take(rows)
    bound = moves_bound(batch, limit)
    objective = within(batch, limit, batch.cost)
    starts = [loads.reached.state.owner[rows]]
    plan = find_fewest(batch, objective, starts, bound.astype(float), 40)
    assert (bound <= least).all()
    assert (plan.excess == 0).all()
    assert (plan.moves >= least).all()
    assert (plan.moves == least).mean() >= 0.95
    assert plan.moves.sum() <= 1.02 * least.sum()
    assert (plan.moves - least).max() <= 2


def test_the_curve_is_exact_nearly_everywhere_and_never_rises(loads: BatchBounds) -> None:
    rows = np.array([i for i, line in enumerate(PROVEN) if line.get("points")])
    batch, best = loads.batch.take(rows), loads.reached.most[rows]
    limit = best[:, None] * batch.capacity
    curves = find_curve(batch, limit, loads.reached.state.owner[rows], batch.cost, 12)
    gaps = []
    for i, top, curve in zip(rows, best, curves, strict=True):
        ratios = [point.ratio for point in curve]
        assert ratios == sorted(ratios, reverse=True)
        assert [point.moves for point in curve] == sorted(point.moves for point in curve)
        for k, proven in PROVEN[i]["points"].items():
            least = min(p.ratio for p in curve if p.moves <= int(k)) * top
            gaps.append(least / max(float(Fraction(proven)), 1e-9) - 1)
    gap = np.array(gaps)
    assert len(gap) >= 300
    assert (gap >= -1e-9).all()
    assert (gap <= 1e-9).mean() >= 0.85
    assert (gap <= 0.01).mean() >= 0.95
    assert gap.max() <= 0.1


@pytest.mark.slow
def test_a_group_gets_the_same_plan_in_any_company() -> None:
    groups = [as_group(draw(seed)) for seed in range(1000, 1060)]
    options = PlanOptions(Limit(), Bounds(), "default")
    together = plan_groups(groups, options)
    for alone in (plan_groups([group], options)[0] for group in groups[:20]):
        same = [a for a in together if np.array_equal(a.owner, alone.owner)]
        assert any(replace(a, owner=alone.owner) == alone for a in same)
    backwards = plan_groups(groups[::-1], options)[::-1]
    some = plan_groups(groups[10:25], options)
    for a, b in [*zip(together, backwards, strict=True), *zip(together[10:25], some, strict=True)]:
        assert np.array_equal(a.owner, b.owner)
        assert replace(a, owner=b.owner) == b


@pytest.mark.parametrize(
    "bounds",
    [
        Bounds(max_moves=2),
        Bounds(max_moved_weight=300.0),
        Bounds(max_moves=1, max_moved_weight=90),
        # So few moves cannot make all counts even: then those give way.
        pytest.param(Bounds(max_moves=0, max_count_difference=0), marks=pytest.mark.slow),
        pytest.param(
            Bounds(max_moves=1, max_moved_weight=90, max_count_difference=1),
            marks=pytest.mark.slow,
        ),
    ],
)
def test_bounds_on_moves_are_promises(bounds: Bounds) -> None:
    groups = [as_group(draw(seed)) for seed in range(2000, 2060)]
    answers = plan_groups(groups, PlanOptions(Limit(), bounds, "fast"))
    verdicts = set()
    for answer in answers:
        verdicts.add(answer.verdict)
        assert bounds.max_moves is None or answer.moves <= bounds.max_moves
        if bounds.max_moved_weight is not None:
            assert answer.moved_weight <= bounds.max_moved_weight
        if answer.verdict == "bounded_by_moves":
            assert bounds.max_moves is None or answer.moves_needed > bounds.max_moves or (
                answer.weight_needed > (bounds.max_moved_weight or 0)
            )  # fmt: skip
    assert "bounded_by_moves" in verdicts


def test_count_differences_are_kept_wherever_they_can_be() -> None:
    groups = [as_group(draw(seed)) for seed in range(3000, 3040)]
    answers = plan_groups(groups, PlanOptions(Limit(), Bounds(max_count_difference=1), "fast"))
    for group, answer in zip(groups, answers, strict=True):
        if not (group.weight > 0).any():
            continue
        assert answer.count_difference <= max(1, answer.least_difference)
        if answer.count_difference > 1:
            assert answer.verdict == "bounded_by_counts"


@pytest.mark.parametrize(
    "limit",
    [
        Limit(),
        Limit(tolerance=0),
        pytest.param(Limit(max_skew=1.2), marks=pytest.mark.slow),
        pytest.param(Limit(max_load=400), marks=pytest.mark.slow),
    ],
)
def test_owners_are_subscribers_and_limits_hold_within_limit(limit: Limit) -> None:
    groups = [as_group(draw(seed)) for seed in range(4000, 4100)]
    answers = plan_groups(groups, PlanOptions(limit, Bounds(), "fast"))
    for group, answer in zip(groups, answers, strict=True):
        assert group.eligible[group.class_, answer.owner].all()
        load = np.bincount(answer.owner, group.weight, len(group.capacity)) / group.capacity
        assert answer.max_load == load.max()
        assert answer.load_bound <= answer.best_load <= answer.max_load
        assert answer.moves_bound <= answer.moves or answer.verdict not in (
            "within_limit",
            "nothing_to_do",
        )
        if limit.max_load and answer.verdict in ("within_limit", "nothing_to_do"):
            assert load.max() <= 400
        if answer.verdict == "nothing_to_do":
            assert np.array_equal(answer.owner, group.home)


def test_a_plan_is_left_alone_the_next_time() -> None:
    groups = [as_group(draw(seed)) for seed in range(5000, 5050)]
    options = PlanOptions(Limit(), Bounds(), "default")
    first = plan_groups(groups, options)
    again = [g._replace(home=a.owner) for g, a in zip(groups, first, strict=True)]
    moves = np.array([answer.moves for answer in plan_groups(again, options)])
    # A search that starts elsewhere may find a lower best load, and so another limit.
    assert (moves == 0).mean() >= 0.95


def test_equal_weights_give_the_best_counts() -> None:
    drawn = [draw(seed) for seed in range(6000, 6400)]
    groups = [
        as_group(g | {"weight": [7] * len(g["weight"])}) for g in drawn if max(g["capacity"]) == 1
    ]
    for limit in (Limit(), Limit(tolerance=0)):
        answers = plan_groups(groups, PlanOptions(limit, Bounds(), "fast"))
        for group, answer in zip(groups, answers, strict=True):
            members = len(group.capacity)
            exact = np.bincount(best_counts(group), minlength=members)
            count = np.bincount(answer.owner, minlength=members)
            assert answer.best_load == exact.max() * 7
            if limit.tolerance == 0:
                assert (count * count).sum() == (exact * exact).sum()
