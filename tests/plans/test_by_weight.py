"""``plan_by_weight`` and ``tradeoff`` over frames: names, checks, the same answer everywhere."""

import math
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from kassign_spark import Bounds, Limit, Settings, balance, plan_by_weight, tradeoff, validate
from kassign_spark.errors import InputError, SchemaError, SettingsError
from kassign_spark.schemas import WEIGHTS
from tests import builders


def weights(spark: SparkSession, rows: list[dict[str, Any]]) -> DataFrame:
    return builders.table(spark, WEIGHTS, rows)


def of(group_id: str, topic: str, *values: float) -> list[dict[str, Any]]:
    return [
        {"group_id": group_id, "topic": topic, "partition": p, "weight": float(w)}
        for p, w in enumerate(values)
    ]


def shared(topic: str, *values: float) -> list[dict[str, Any]]:
    return [{**row, "group_id": None} for row in of("", topic, *values)]


@pytest.fixture(scope="module")
def fleet(spark: SparkSession) -> tuple[DataFrame, ...]:
    """Groups of one situation each."""
    names = {
        "even": ["a", "b"],
        "hot": ["a", "b", "c"],
        "idle": ["a", "b"],
        "own": ["a", "b"],
        "sized": ["big", "small"],
        "split": ["a", "b", "c"],
        "unweighed": ["a", "b"],
    }
    topics = {"even": 4, "hot": 6, "idle": 3, "own": 2, "sized": 4, "split": 4, "unweighed": 5}
    members = [
        {
            "group_id": group,
            "member_id": member,
            "topics": [group] if (group, member) != ("split", "c") else ["other"],
            "capacity": 3.0 if member == "big" else None,
        }
        for group, ids in names.items()
        for member in ids
    ]
    weight_rows = [
        *shared("even", 1, 1, 1, 1),
        *shared("hot", 100, 1, 1, 1, 1, 2),
        *shared("idle", 0, 0, 0),
        *shared("own", 1, 1),
        *of("own", "own", 9, 4),
        *shared("sized", 1, 1, 1, 1),
        *shared("split", 8, 1, 1, 1),
        *shared("other", 1, 1),
        *shared("nobody", 5),
    ]
    claims = [
        *builders.owner_rows("a: evenp0 evenp1; b: evenp2 evenp3", "even"),
        *builders.owner_rows("a: hotp0 hotp1 hotp2; b: hotp3", "hot"),
        *builders.owner_rows("a: splitp0 splitp1; c: splitp2", "split"),
    ]
    return (
        builders.members(spark, members),
        builders.topics(spark, {**topics, "other": 2}),
        weights(spark, weight_rows),
        builders.owned(spark, claims),
    )


@pytest.fixture(scope="module")
def planned(fleet: tuple[DataFrame, ...]) -> tuple[dict[str, Any], dict[str, dict[str, list[str]]]]:
    plan = plan_by_weight(*fleet)
    verdicts = {row.group_id: row.asDict() for row in plan.verdicts.collect()}
    owners: dict[str, dict[str, list[str]]] = {}
    for row in plan.assignment.orderBy("topic", "partition").collect():
        owned = owners.setdefault(row.group_id, {}).setdefault(row.member_id, [])
        owned.append(f"{row.topic}-{row.partition}")
    return verdicts, owners


def test_a_present_that_is_even_stays(planned: Any) -> None:
    verdicts, owners = planned
    assert verdicts["even"]["verdict"] == "nothing_to_do"
    assert verdicts["even"]["moves"] == 0
    assert owners["even"] == {"a": ["even-0", "even-1"], "b": ["even-2", "even-3"]}


def test_a_hot_partition_is_alone_and_named(planned: Any) -> None:
    verdicts, owners = planned
    hot = verdicts["hot"]
    assert hot["verdict"] == "bounded_by_partition"
    assert hot["dominant_count"] == 1
    # Within 5 % of what the hot one weighs alone, the two beside it may stay.
    assert (hot["max_load"], hot["load_bound"], hot["moves"]) == (102, 100, 0)
    assert "hot-0 alone weighs 100" in hot["detail"]
    assert owners["hot"]["a"] == ["hot-0", "hot-1", "hot-2"]
    assert hot["limit"] < 100


def test_without_weight_counts_decide(planned: Any) -> None:
    verdicts, owners = planned
    for group, sizes in (("idle", [1, 2]), ("unweighed", [2, 3])):
        assert "planned by counts" in verdicts[group]["detail"]
        assert sorted(map(len, owners[group].values())) == sizes


def test_a_weight_of_the_group_comes_before_one_for_all(planned: Any) -> None:
    assert planned[0]["own"]["max_load"] == 9


def test_capacity_takes_its_share(planned: Any) -> None:
    verdicts, owners = planned
    assert {m: len(partitions) for m, partitions in owners["sized"].items()} == {
        "big": 3,
        "small": 1,
    }
    assert verdicts["sized"]["max_load"] == 1


def test_a_claim_of_somebody_else_is_none(planned: Any) -> None:
    verdicts, owners = planned
    assert owners["split"]["c"] == ["other-0", "other-1"]
    assert verdicts["split"]["moves"] == 1


def test_every_partition_has_one_owner(planned: Any, fleet: tuple[DataFrame, ...]) -> None:
    _, owners = planned
    assert (
        sum(len(partitions) for of_group in owners.values() for partitions in of_group.values())
        == 30
    )


def test_the_answer_does_not_depend_on_rows_or_tasks(
    planned: Any, fleet: tuple[DataFrame, ...]
) -> None:
    shuffled = [frame.orderBy(*reversed(frame.columns)).repartition(7) for frame in fleet]
    again = plan_by_weight(*shuffled, settings=Settings(batches=8))  # one, as it is so small
    assert {row.group_id: row.asDict() for row in again.verdicts.collect()} == planned[0]
    some = [
        frame.where("group_id = 'hot'") if "member_id" in frame.columns else frame
        for frame in fleet
    ]
    (alone,) = plan_by_weight(*some).verdicts.collect()
    assert alone.asDict() == planned[0]["hot"]


def test_balance_measures_a_plan_by_weight(planned: Any, fleet: tuple[DataFrame, ...]) -> None:
    members, _, weight_rows, owned = fleet
    assignment = plan_by_weight(*fleet).assignment
    rows = balance(assignment, members, owned, weights=weight_rows).collect()
    result = {row.group_id: (row.max_load, row.moved_weight, row.moved_count) for row in rows}
    for group, verdict in planned[0].items():
        expected = tuple(verdict[name] for name in ("max_load", "moved_weight", "moves"))
        # The claim of somebody who does not subscribe is none to a plan.
        split = group == "split" and (expected[0], 2.0, 2)
        assert result[group] == (split or ((None, None, 0) if group == "unweighed" else expected))
    assert [row.load_skew for row in rows if row.group_id == "sized"] == [1.0]
    with pytest.raises(InputError, match=r'group "even": table weights has no row for 2 of its'):
        balance(assignment, members, weights=weight_rows.where("topic <> 'even' OR partition < 2"))
    with pytest.raises(InputError, match=r"weight: -1.0"):
        balance(assignment, members, weights=weights(weight_rows.sparkSession, shared("even", -1)))
    with pytest.raises(SettingsError, match="missing_weight"):
        balance(assignment, members, weights=weight_rows, missing_weight=-1.0)
    nobody_said = balance(assignment, members, weights=weight_rows, missing_weight=1.0)
    assert {row.moved_weight for row in nobody_said.collect()} == {None}


def test_validate_tells_weights_of_what_does_not_exist(fleet: tuple[DataFrame, ...]) -> None:
    members, topics, weight_rows, _ = fleet
    more = weights(
        weight_rows.sparkSession, [*shared("gone", 1), *of("hot", "hot", 1, 1, 1, 1, 1, 1, 5)]
    )
    result = validate(members, topics, weights=weight_rows.unionByName(more)).where(
        "problem = 'weight_of_unknown_partition'"
    )
    rows = {(r.group_id, r.topic, r.partition): r.detail for r in result.collect()}
    assert rows == {
        (None, "nobody", 0): "the table topics does not have the topic; the weight is passed over",
        (None, "gone", 0): "the table topics does not have the topic; the weight is passed over",
        ("hot", "hot", 6): "the topic has only 6 partitions; the weight is passed over",
    }
    by_partition = builders.topics(
        weight_rows.sparkSession, [{"topic": "hot", "partition": p} for p in range(6)]
    )
    again = validate(members, by_partition, weights=more).where("topic = 'hot'").collect()
    assert [r.partition for r in again if r.problem == "weight_of_unknown_partition"] == [6]


def test_the_curve_falls_to_its_bound_and_has_a_knee(fleet: tuple[DataFrame, ...]) -> None:
    rows = tradeoff(*fleet).where("group_id = 'hot'").orderBy("moves").collect()
    assert [row.moves for row in rows] == [0, 1]
    assert [row.max_load for row in rows] == [102, 100]
    assert {row.bound for row in rows} == {100}
    assert sum(row.is_knee for row in rows) == 1


def test_bounds_and_limits_are_taken(fleet: tuple[DataFrame, ...]) -> None:
    plan = plan_by_weight(*fleet, limit=Limit(max_load=100), bounds=Bounds(max_moves=0))
    hot = plan.verdicts.where("group_id = 'hot'").first()
    assert hot is not None
    assert hot.verdict == "bounded_by_moves"
    assert hot.moves == 0
    assert "1 move, of 100 together, meets the limit" in hot.detail


def test_topics_kept_together_go_to_one_member(spark: SparkSession) -> None:
    members = builders.members(
        spark,
        [{"group_id": "g", "member_id": m, "topics": ["orders", "paid"]} for m in ("a", "b")],
    )
    topics = builders.topics(spark, {"orders": 4, "paid": 3})
    weight_rows = weights(spark, [*of("g", "orders", 9, 1, 1, 1), *of("g", "paid", 1, 5, 2)])
    plan = plan_by_weight(members, topics, weight_rows, together={"orders": "o", "paid": "o"})
    owner = {(r.topic, r.partition): r.member_id for r in plan.assignment.collect()}
    assert len(owner) == 7
    assert all(owner["orders", p] == owner["paid", p] for p in range(3))
    (verdict,) = plan.verdicts.collect()
    assert verdict.max_load == 10


def test_bad_input_is_one_line(spark: SparkSession, fleet: tuple[DataFrame, ...]) -> None:
    members, topics, weight_rows, owned = fleet
    bad = weights(
        spark,
        [
            *shared("even", 1, -1, float("nan")),
            *shared("hot", float("inf")),
            {**shared("hot", 1, 2)[1], "move_cost": -3.0},
            {"topic": "even", "partition": 3, "weight": None},
            *of("own", "own", 9, 4),
            # Their sum would be beyond what a double holds.
            *shared("wide", 1e308, 1e308),
            *of("own", "own", 9),
        ],
    )
    with pytest.raises(InputError) as raised:
        plan_by_weight(members, topics, bad, owned)
    text = str(raised.value)
    for part in (
        'weight: -1.0 (at topic="even" partition=1)',
        "NaN",
        "null",
        'weight: Infinity (at topic="hot" partition=0)',
        'move_cost: -3.0 (at topic="hot" partition=1)',
        'weight: 1.0E308 (at topic="wide" partition=0): must be a number from 0 to 1e+60',
        'group "own"',
        "2 times",
    ):
        assert part in text
    few = weight_rows.where("topic <> 'even' OR partition < 2")
    with pytest.raises(InputError, match=r'group "even".*2 partitions.*even-2, even-3'):
        plan_by_weight(members, topics, few, owned)
    filled = plan_by_weight(members, topics, few, owned, missing_weight=1.0).verdicts
    assert filled.where("group_id = 'even' AND max_load = 2").count() == 1
    with pytest.raises(InputError, match=r"together: no member subscribes to all topics of 'x'"):
        plan_by_weight(members, topics, weight_rows, together={"split": "x", "other": "x"})
    with pytest.raises(SchemaError, match="column weight"):
        plan_by_weight(members, topics, weight_rows.drop("weight"))
    capacities = {0.0: "0.0", -1.0: "-3.0", 1e-80: r"2.9*7E-80", 1e80: "3.0E80"}
    for factor, shown in {**capacities, math.nan: "NaN", math.inf: "Infinity"}.items():
        small = members.withColumn("capacity", members.capacity * factor)
        with pytest.raises(InputError, match=f'column capacity: {shown} .*member_id="big"'):
            plan_by_weight(small, topics, weight_rows)


@pytest.mark.parametrize(
    "wrong",
    [{"tolerance": -0.1}, {"max_skew": 0.5}, {"tolerance": 0.1, "max_load": 3.0}],
)
def test_limits_out_of_range_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(SettingsError):
        Limit(**wrong)
    with pytest.raises(SettingsError):
        Bounds(max_moves=-1)
