"""The kernels of groups that are cut, without Spark: against the same group as one task sees it."""

import numpy as np
import pytest

from kassign_spark.assignors.weighted import cut
from kassign_spark.assignors.weighted.answer import Answer
from kassign_spark.assignors.weighted.options import Bounds, Limit
from kassign_spark.assignors.weighted.plan import plan_groups
from kassign_spark.assignors.weighted.problem import Group
from kassign_spark.assignors.weighted.small import Wanted
from tests.assignors.weighted.large_groups import Shape, make, with_owners

SHAPES = {
    "lognormal": Shape(30_000, 60),
    "capacities": Shape(30_000, 60, capacities=True),
    "classes": Shape(30_000, 60, classes=10),
    "heavy": Shape(40_000, 60, sigma=1.8),
}


def by_steps(group: Group, wanted: Wanted, most: int) -> tuple[Answer, np.ndarray]:
    """As ``plans.weighted_large`` goes about it; the plan, and the owners of all partitions."""
    members = len(group.capacity)
    first = cut.HEAVIEST_A_MEMBER * members
    heavy = group._replace(
        weight=group.weight[:first],
        class_=group.class_[:first],
        home=group.home[:first],
        cost=group.cost[:first],
    )
    sums = np.bincount(group.class_, group.weight, len(group.eligible))
    facts = cut.Facts(heavy, sums, group.loads(group.home), group.counts(group.home))
    limits = cut.limits_of_plan(facts, wanted)
    stays = np.zeros(len(group.weight), bool)
    stays[limits.kept] = True
    owned = np.flatnonzero(group.home >= 0)
    gives, least = cut.to_shed(
        group.home[owned], group.weight[owned], group.cost[owned], stays[owned], limits.excess,
        by_cost=False,
    )  # fmt: skip
    may = group.home < 0
    may[owned[gives]] = True
    for _ in range(4):
        at = np.flatnonzero(may)
        pool = cut.Pool(
            group.weight[at],
            group.class_[at],
            group.home[at],
            group.cost[at],
            np.ones(len(at), int),
        )
        part = np.full(len(heavy.weight), -1)
        part[at[at < first]] = np.arange((at < first).sum())
        answer, over = cut.plan_cut(facts, pool, part, int(least.sum()), wanted)
        opened = cut.to_open(facts, pool, limits.kept, over, most)
        if not len(opened):
            break
        may |= np.isin(group.home, opened) & ~stays
    owner = group.home.copy()
    owner[at] = answer.owner
    return answer, owner


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("limit", [Limit(), Limit(max_skew=1.1), Limit(tolerance=0.01)])
def test_steps_find_what_one_task_finds(name: str, limit: Limit) -> None:
    group, wanted = with_owners(make(SHAPES[name])), Wanted(limit, Bounds(), "default")
    (whole,) = plan_groups([group], wanted)
    answer, owner = by_steps(group, wanted, len(group.weight) // 2)
    assert answer.verdict == whole.verdict
    assert answer.load_bound == whole.load_bound
    assert answer.moves_bound <= 1.1 * whole.moves_bound + 1
    assert answer.moves <= 1.1 * whole.moves + 1
    assert group.eligible[group.class_, owner].all()
    assert answer.max_load == pytest.approx(
        (group.loads(owner) / group.capacity).max() / group.power
    )
    assert answer.moves == ((group.home >= 0) & (owner != group.home)).sum()


def test_bounds_on_moves_are_kept() -> None:
    group = with_owners(make(SHAPES["classes"]), drift=0.6)
    (whole,) = plan_groups([group], Wanted(Limit(), Bounds(), "default"))
    bounds = Bounds(max_moves=whole.moves // 2)
    answer, owner = by_steps(group, Wanted(Limit(), bounds, "default"), 10_000)
    (other,) = plan_groups([group], Wanted(Limit(), bounds, "default"))
    assert answer.verdict == other.verdict == "bounded_by_moves"
    assert 0 < answer.moves == ((group.home >= 0) & (owner != group.home)).sum() <= bounds.max_moves
    assert answer.max_load <= 1.01 * other.max_load


def test_bundles_are_of_one_run_and_small() -> None:
    random = np.random.default_rng(7)
    run = np.sort(random.integers(0, 5, 2_000))
    weight = np.rint(np.exp(random.normal(0, 2, 2_000)) * 10)
    weight[random.random(2_000) < 0.2] = 0
    order = np.lexsort((-weight, run))
    run, weight = run[order], weight[order]
    lead = cut.bundled(run, weight, np.full(2_000, 40.0), np.full(2_000, 8))
    assert (run == run[lead]).all()
    assert (lead <= np.arange(2_000)).all()
    assert (lead[lead] == lead).all()
    sums, sizes = np.bincount(lead, weight), np.bincount(lead)
    assert (sizes[lead[weight >= 40]] == 1).all()
    assert sums[lead[weight < 40]].max() < 80
    assert (weight[lead] > 0).tolist() == (weight > 0).tolist()
    assert sizes[lead[weight == 0]].max() == 8
    assert len(np.unique(lead[(weight < 40) & (weight > 0)])) < weight[weight < 40].sum() / 20
    alone = cut.bundled(run, weight, np.zeros(2_000), np.ones(2_000, int))
    assert (alone == np.arange(2_000)).all()
