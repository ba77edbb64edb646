"""What each assignor costs in load, by the kernel of ``compare``: by hand, and as plans say it."""

from typing import Any

import pyarrow as pa

from kassign_spark.assignors.weighted.options import Bounds, Limit
from kassign_spark.assignors.weighted.small import PlanOptions
from kassign_spark.plans.weighted_groups import WeightOptions
from kassign_spark.whatif.compare_kernel import compare_arrow
from tests.plans.test_weighted_tasks import FLEET, group, plan, table

OPTIONS = WeightOptions(False, None, 0.0, {})
TWO = {"a": ["t", "u"], "b": ["t", "u"]}
BY_HAND = group("two", {"t": [8, 1, 1], "u": [6, 1, 1]}, TWO, capacity={"b": 2.0})
OWNED = group("kept", {"t": [8, 1, 5, 2]}, {"a": ["t"], "b": ["t"], "c": ["t"]},
              {"t-0": "a", "t-1": "a", "t-2": "b", "t-3": "b"})  # fmt: skip


def compared(
    rows: pa.Table, weights: WeightOptions = OPTIONS
) -> dict[tuple[str, str, str], dict[str, Any]]:
    result = pa.concat_tables(compare_arrow(rows, weights=weights)).to_pylist()
    return {(row["group_id"], row["assignor"], row["protocol"]): row for row in result}


def loads(row: dict[str, Any]) -> tuple[float, ...]:
    return tuple(row[name] for name in ("max_load", "load_skew", "load_bound", "moved_weight"))


def test_loads_by_hand() -> None:
    result = compared(table(BY_HAND, OWNED))
    # a: t0 t1 u0 u1, b: t2 u2 of twice the capacity; then every second one.
    assert loads(result["two", "range", "eager"]) == (16, 16 / 6, 6, 0)
    assert loads(result["two", "roundrobin", "eager"]) == (8 + 1 + 1, 10 / 6, 6, 0)
    # By range t0 t1 stay with a, t2 with b, and t3 goes to c; sticky moves one as well.
    assert loads(result["kept", "range", "eager"]) == (9, 9 / (16 / 3), 8, 2)
    sticky = result["kept", "sticky", "eager"]
    assert (sticky["moved"], sticky["load_bound"]) == (1, 8)
    assert sticky["moved_weight"] in (8, 1, 5, 2)


def test_bounds_and_fair_loads_are_those_of_plans() -> None:
    rows = table(*FLEET)
    result = compared(rows)
    _, verdicts, _ = plan(rows, PlanOptions(Limit(), Bounds(), "fast"))
    for (name, _, _), row in result.items():
        if verdicts[name]["max_load"] == 0:
            assert set(loads(row)) == {None}
            continue
        assert row["load_bound"] <= verdicts[name]["load_bound"] <= row["max_load"]
        assert row["load_skew"] > 0
    assert compared(table(*FLEET, seed=3)) == result


def test_missing_weights_are_told() -> None:
    rows = table(group("g", {"t": [3, -1]}, {"a": ["t"]}))
    problems = {row["problem"] for row in compared(rows).values()}
    assert len(problems) == 1
    assert "no row for 1 partitions that it reads: t-1" in str(problems)
    filled = compared(rows, OPTIONS._replace(missing=2.0, base=1.0))
    assert {row["max_load"] for row in filled.values()} == {7}
    assert "max_load" not in next(iter(compare_arrow(rows))).column_names
