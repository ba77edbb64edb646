"""The general pass against the exact optimum: many groups in one call, both ways to compute it."""

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

import kassign_spark.rounds
from kassign_spark.assignors.general import General, assign_general
from kassign_spark.errors import NotConvergedError
from kassign_spark.groups.eligible import Eligible
from kassign_spark.groups.look import look
from kassign_spark.groups.paths import Paths
from kassign_spark.groups.rows import in_tasks
from kassign_spark.inputs.checks import conform_inputs
from kassign_spark.rounds import Round
from kassign_spark.settings import Settings
from tests.oracles.mixed_groups import MixedGroup, mixed_groups, to_tables
from tests.oracles.optimal import Optimum, least_cost

SEED = 20_260
IN_ROUNDS = Settings(max_edges_per_task=0, use_graphframes=False)

GROUPS = mixed_groups(588, SEED)  # every shape meets every change twelve times


@pytest.fixture(scope="module")
def eligible(spark: SparkSession) -> Eligible:
    return _eligible(*to_tables(spark, GROUPS))


@pytest.fixture(scope="module")
def assigned(eligible: Eligible) -> list[Row]:
    result = assign_general(eligible, Settings())
    assert result.rounds == 0
    return _rows(result)


def _eligible(members: DataFrame, topics: DataFrame, owned: DataFrame | None) -> Eligible:
    return look(conform_inputs(members, topics, owned), known_assignors=None).eligible


def _rows(result: General) -> list[Row]:
    return sorted(result.assignment.collect())


def _found(group: MixedGroup, rows: Iterable[Row]) -> Optimum:
    """Balance and moves of a valid assignment; anything else fails here."""
    rows = list(rows)
    owned = group.valid_owned()
    supply, _ = group.counts()
    partitions = [(row.topic, row.partition) for row in rows]
    assert sorted(partitions) == sorted((t, p) for t, n in supply.items() for p in range(n)), group
    assert all(row.topic in group.subscriptions[row.member_id] for row in rows), group
    loads = Counter(row.member_id for row in rows)
    moves = sum(owned.get((row.topic, row.partition)) != row.member_id for row in rows)
    return Optimum(sum(load * load for load in loads.values()), moves)


def _by_group(rows: Iterable[Row]) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = {group.name: [] for group in GROUPS}
    for row in rows:
        found[row.group_id].append(row)
    return found


def test_every_group_has_the_best_balance_and_then_the_fewest_moves(assigned: list[Row]) -> None:
    found = _by_group(assigned)
    off = {
        group.name: (got, best)
        for group in GROUPS
        if (got := _found(group, found[group.name])) != (best := least_cost(*group.counts()))
    }
    assert not off, f"seed {SEED}: {len(off)} of {len(GROUPS)} groups are off: {off}"
    # The groups are worth the test: there is something to keep, and something to move.
    assert sum(least_cost(*group.counts()).moves > 0 for group in GROUPS) > 300
    assert sum(len(group.valid_owned()) > 0 for group in GROUPS) > 300


@pytest.mark.slow
def test_rounds_give_the_same_assignment_with_flat_plans_and_nothing_left_in_the_cache(
    spark: SparkSession,
    eligible: Eligible,
    assigned: list[Row],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plans: dict[str, list[tuple[int, int]]] = {}
    rounds: list[Round] = []
    compute = kassign_spark.rounds.settle

    def watched(frame: DataFrame, measures: dict | None = None) -> kassign_spark.rounds.Settled:
        plan = frame._jdf.queryExecution().optimizedPlan()
        loop = next(iter(measures or {"": None}))
        lines = len(plan.treeString().splitlines())
        digits = len(str(plan.stats().sizeInBytes()))
        plans.setdefault(loop, []).append((lines, digits))
        return compute(frame, measures)

    monkeypatch.setattr(kassign_spark.rounds, "settle", watched)
    spark.catalog.clearCache()
    result = assign_general(eligible, IN_ROUNDS, rounds.append)
    assert _rows(result) == assigned
    assert result.rounds == len(rounds) > 40
    in_flow = [done.measured for done in rounds if done.what != "components"]
    assert in_flow[0]["open_components"] > len(GROUPS) / 2
    assert in_flow[-1]["open_components"] < 10
    assert all(measured["moves"] >= 0 for measured in in_flow)

    in_loops = plans["unfinished"]
    assert len(in_loops) == len(rounds)
    # A loop's first round has the plan that leads to it, all others have the loop's own.
    assert len({lines for lines, _ in in_loops}) < 20, in_loops
    early, late = in_loops[:20], in_loops[20:]
    assert max(late) <= max(early), "plans or size estimates grow with the rounds"
    assert spark._jsparkSession.sharedState().cacheManager().isEmpty()


@pytest.mark.slow
def test_names_are_the_same_wherever_they_are_given(
    eligible: Eligible, assigned: list[Row]
) -> None:
    result = assign_general(eligible, Settings(max_partitions_per_task=20))
    assert result.rounds == 0
    assert _rows(result) == assigned


@pytest.mark.slow
def test_order_and_partitioning_of_the_input_do_not_matter(
    spark: SparkSession, assigned: list[Row]
) -> None:
    shuffled = [
        frame.orderBy(F.xxhash64(*frame.columns)).repartition(7)
        for frame in to_tables(spark, GROUPS)
    ]
    assert _rows(assign_general(_eligible(*shuffled), Settings(batches=3))) == assigned


@pytest.mark.slow
def test_large_groups_are_cut_into_components(
    spark: SparkSession, eligible: Eligible, assigned: list[Row]
) -> None:
    rounds: list[Round] = []
    settings = Settings(max_edges_per_task=25, use_graphframes=False)
    paths = Paths()
    asked = eligible._replace(paths=paths, tasks=3)
    assert _rows(assign_general(asked, settings, rounds.append)) == assigned
    assert {r.what for r in rounds} == {"components", "distances", "transfers"}
    # Every group has one path; of these groups all that are too large are so in one component.
    told = paths.frame()
    assert told is not None
    collected = told.collect()
    rows = {row.group_id: row.path for row in collected}
    assert len(collected) == len(rows) == len(GROUPS)
    found = sum(r.what == "components" for r in rounds)
    in_rounds = f"components by rounds ({found}), settled in rounds ({len(rounds) - found})"
    assert rows == {
        group.name: "counts" if len(_class_edges(group)) <= 25 else in_rounds for group in GROUPS
    }
    assert set(rows.values()) == {"counts", in_rounds}


def test_the_components_of_one_group_are_for_all_tasks(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twenty parts of a group that is too large for a task go to several."""
    group = MixedGroup("g", {}, {}, {})
    partitions = {f"t{part:02}{i}": 3 for part in range(20) for i in range(2)}
    subscriptions = {
        f"m{part:02}{i}": (f"t{part:02}0",) if i else (f"t{part:02}0", f"t{part:02}1")
        for part in range(20)
        for i in range(3)
    }
    owned = {(f"t{part:02}0", 0): f"m{part:02}2" for part in range(20)}
    group = replace(group, partitions=partitions, subscriptions=subscriptions, owned=owned)
    paths = Paths()
    eligible = _eligible(*to_tables(spark, [group]))._replace(tasks=3, paths=paths)
    settings = Settings(max_edges_per_task=10, use_graphframes=False)
    used: list[int] = []

    def watched(*given: Any, **named: Any) -> DataFrame:
        made = in_tasks(*given, **named)
        used.append(made.select(F.spark_partition_id()).distinct().count())
        return made

    monkeypatch.setattr("kassign_spark.assignors.general.in_tasks", watched)
    rows = _rows(assign_general(eligible, settings))
    assert _found(group, rows) == least_cost(*group.counts())
    # No group fits whole; all parts do, and they are dealt to the three tasks.
    assert used == [0, 3]
    told = paths.frame()
    assert told is not None
    (row,) = told.collect()
    assert re.fullmatch(r"components by rounds \(\d+\)", row.path)


def _class_edges(group: MixedGroup) -> set[tuple[tuple[str, ...], str]]:
    """Pairs of a class, which is its subscribers, and one of these."""
    readers: dict[str, list[str]] = {}
    for member, topics in group.subscriptions.items():
        for topic in {t for t in topics if group.partitions.get(t)}:
            readers.setdefault(topic, []).append(member)
    classes = {tuple(sorted(members)) for members in readers.values()}
    return {(each, member) for each in classes for member in each}


def test_a_fresh_group_needs_no_owned_table(spark: SparkSession) -> None:
    members, topics, _ = to_tables(spark, GROUPS)
    found = _by_group(_rows(assign_general(_eligible(members, topics, None), Settings())))
    for group in GROUPS:
        fresh = replace(group, owned={})
        assert _found(fresh, found[group.name]) == least_cost(*fresh.counts())


def test_claims_that_cannot_be_kept_are_left_aside(spark: SparkSession) -> None:
    group = MixedGroup(
        "g",
        {"t0": 2, "t1": 2},
        {"a": ("t0",), "b": ("t0", "t1")},
        {
            ("t0", 0): "gone",
            ("t0", 7): "a",
            ("missing", 0): "a",
            ("t1", 0): "a",
            ("t0", 1): "a",
        },
    )
    rows = _rows(assign_general(_eligible(*to_tables(spark, [group])), Settings()))
    assert _found(group, rows) == Optimum(8, 3)


@pytest.mark.slow
def test_the_round_limit_is_an_error_that_says_what_is_unfinished(eligible: Eligible) -> None:
    with pytest.raises(NotConvergedError, match=r"rows of the distances are .* max_rounds"):
        assign_general(eligible, replace(IN_ROUNDS, max_rounds=6))


def test_dealt_partitions_spread_over_topics(spark: SparkSession) -> None:
    """Nobody who joins gets all of one topic: places are dealt in turn."""
    group = MixedGroup("g", {f"t{i}": 6 for i in range(4)}, {}, {})
    subscriptions = {f"m{i}": tuple(group.partitions) for i in range(3)} | {"x": ("t0",)}
    group = replace(group, subscriptions=subscriptions)
    rows = _rows(assign_general(_eligible(*to_tables(spark, [group])), Settings()))
    per_topic = Counter((row.member_id, row.topic) for row in rows if row.topic != "t0")
    assert max(per_topic.values()) <= 3
