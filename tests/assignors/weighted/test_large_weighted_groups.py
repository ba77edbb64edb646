"""Large groups by bulk steps: against bounds, and against the search of single steps."""

import numpy as np
import pytest

from kassign_spark.assignors.weighted import large
from kassign_spark.assignors.weighted.counts import best_counts
from kassign_spark.assignors.weighted.options import Bounds, Limit
from kassign_spark.assignors.weighted.planner import plan_groups
from kassign_spark.assignors.weighted.small import PlanOptions
from tests.assignors.weighted.large_groups import LARGE, make, with_owners

QUICK = [name for name, shape in LARGE.items() if shape.partitions <= 12_000]
DEFAULT = PlanOptions(Limit(), Bounds(), "default")


@pytest.mark.parametrize("name", QUICK)
def test_fresh_is_near_the_bound(name: str) -> None:
    group = make(LARGE[name])
    seen = large.group_bounds(group)
    assert np.isclose(seen.load.sum(), group.weight.sum(), rtol=0)
    assert (seen.load / group.capacity).max() <= 1.005 * seen.bound
    assert group.eligible[group.class_, seen.owner].all()


@pytest.mark.parametrize("name", QUICK)
def test_members_get_within_their_limit_with_about_the_fewest_moves(name: str) -> None:
    group = with_owners(make(LARGE[name]))
    (answer,) = plan_groups([group], DEFAULT)
    assert answer.verdict in ("within_limit", "bounded_by_partition")
    assert answer.moves_bound <= answer.moves <= 1.8 * max(answer.moves_bound, 1)
    (again,) = plan_groups([group._replace(home=answer.owner)], DEFAULT)
    assert again.moves == 0


@pytest.mark.slow
def test_members_that_share_few_classes_get_within_their_limit() -> None:
    """400 classes, each for a tenth of the members: what one sheds, few others may take."""
    group = with_owners(make(LARGE["tenths"]))
    (answer,) = plan_groups([group], DEFAULT)
    assert answer.verdict == "bounded_by_partition"  # the heaviest; nobody is above its own limit
    seen = large.group_bounds(group)
    limit = np.floor(large.relative_limits(DEFAULT.limit, group, seen) * (1 + 1e-12))
    assert (group.loads(answer.owner) <= limit).all()
    assert group.eligible[group.class_, answer.owner].all()


@pytest.mark.parametrize("name", ["heavy", "zipf"])
def test_a_dominant_partition_stays_at_loose_limits(name: str) -> None:
    group = with_owners(make(LARGE[name]))
    seen = large.group_bounds(group)
    heavy = np.array(seen.dominant)
    assert len(heavy) > 5
    owned = np.bincount(group.home[group.home >= 0], group.weight[group.home >= 0],
                        len(group.capacity))  # fmt: skip
    for factor in (1.0, 1.3, 2.0):
        limit = Limit(max_load=seen.bound * factor / group.power)
        (answer,) = plan_groups([group], PlanOptions(limit, Bounds(), "default"))
        assert answer.verdict in ("within_limit", "nothing_to_do")
        moved = heavy[(group.home[heavy] >= 0) & (answer.owner != group.home)[heavy]]
        at = group.home[moved]
        assert (owned[at] / group.capacity[at] > seen.bound * factor).all()


def test_the_curve_never_rises_and_bounds_are_kept() -> None:
    group = with_owners(make(LARGE["halves"]))
    points = large.curve_large(group, large.group_bounds(group))
    assert len(points) >= 8
    assert [p.moves for p in points] == sorted({p.moves for p in points})
    assert [p.ratio for p in points] == sorted({p.ratio for p in points}, reverse=True)
    bounds = Bounds(max_moves=points[3].moves)
    (answer,) = plan_groups([group], PlanOptions(Limit(), bounds, "default"))
    assert answer.moves <= points[3].moves
    assert answer.verdict == "bounded_by_moves"
    assert answer.moves_needed > points[3].moves


def test_equal_weights_give_the_best_counts() -> None:
    shape = make(LARGE["halves"])
    group = with_owners(shape._replace(weight=shape.weight[:11_950], class_=shape.class_[:11_950],
                                       cost=shape.cost[:11_950]))  # fmt: skip
    group = group._replace(weight=np.full(len(group.weight), 8.0))
    exact = np.bincount(best_counts(group), minlength=len(group.capacity))
    for tolerance in (0.0, 0.05):
        (answer,) = plan_groups(
            [group], PlanOptions(Limit(tolerance=tolerance), Bounds(), "default")
        )
        result = np.bincount(answer.owner, minlength=len(group.capacity))
        assert answer.best_load * group.power == exact.max() * 8
        if tolerance == 0:
            assert sorted(result) == sorted(exact)
            assert answer.moves == (best_counts(group) != group.home)[group.home >= 0].sum()


def test_equal_weights_are_balanced_at_a_tolerance_of_nought() -> None:
    """Also where nobody has more than the best counts give, and one member less."""
    group = make(LARGE["lognormal"])
    group = group._replace(weight=np.full(2_000, 8.0), home=np.arange(2_000) % 100)
    short = np.flatnonzero(group.home == 7)[:9]
    group.home[short] = -1  # 99 have 20 each, and there are 1,991 to share
    group = group._replace(**{
        name: getattr(group, name)[np.delete(np.arange(2_000), short)]
        for name in ("weight", "class_", "home", "cost")
    })  # fmt: skip
    (loose,) = plan_groups([group], DEFAULT)
    assert (loose.verdict, loose.count_difference) == ("nothing_to_do", 9)
    (answer,) = plan_groups([group], PlanOptions(Limit(tolerance=0), Bounds(), "default"))
    assert (answer.count_difference, answer.moves) == (1, 8)
