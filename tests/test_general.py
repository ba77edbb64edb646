"""The general pass against the exact optimum: many groups in one call, by both engines."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

import pytest
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from kassign_spark import assign
from kassign_spark.assignors.general_rounds import assign_general
from kassign_spark.errors import NotConvergedError
from kassign_spark.graph.components import connected_components
from kassign_spark.groups.inspection import inspect_inputs
from kassign_spark.groups.paths import ROUNDS, Paths
from kassign_spark.inputs.input_tables import conform_inputs
from kassign_spark.plans.assign import assign_on_paths
from kassign_spark.settings import Settings
from kassign_spark.spark.iteration import Budget, Round
from tests.oracles.mixed_groups import MixedGroup, mixed_groups, to_tables
from tests.oracles.optimal import Optimum, least_cost
from tests.test_graph import needs_graphframes

SEED = 20_260
IN_TASKS = Settings(engine="task")
IN_ROUNDS = Settings(engine="rounds", use_graphframes=False)
IN_BLOCKS = replace(IN_ROUNDS, bytes_per_task=750_000)  # several, of all groups together
ENGINES = [IN_TASKS, IN_ROUNDS]


def _differs(group: MixedGroup) -> bool:
    return len({frozenset(topics) for topics in group.subscriptions.values()}) > 1


GROUPS = [*filter(_differs, mixed_groups(588, SEED))]  # every shape meets every change
FEW = GROUPS[::12]


@pytest.fixture(scope="module")
def assigned(spark: SparkSession) -> list[Row]:
    return _rows(spark, GROUPS, IN_TASKS)


def _rows(spark: SparkSession, groups: list[MixedGroup], settings: Settings) -> list[Row]:
    return sorted(assign(*to_tables(spark, groups), assignor="sticky", settings=settings).collect())


def _optimum(group: MixedGroup, rows: Iterable[Row]) -> Optimum:
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
    result: dict[str, list[Row]] = {group.name: [] for group in GROUPS}
    for row in rows:
        result[row.group_id].append(row)
    return result


def _check_optima(groups: list[MixedGroup], rows: list[Row]) -> None:
    result = _by_group(rows)
    off = {
        group.name: (got, best)
        for group in groups
        if (got := _optimum(group, result[group.name])) != (best := least_cost(*group.counts()))
    }
    assert not off, f"seed {SEED}: {len(off)} of {len(groups)} groups are off: {off}"


def test_every_group_has_the_best_balance_and_then_the_fewest_moves(assigned: list[Row]) -> None:
    _check_optima(GROUPS, assigned)
    # The groups are worth the test: there is something to keep, and something to move.
    assert sum(least_cost(*group.counts()).moves > 0 for group in GROUPS) > 300
    assert sum(len(group.valid_owned()) > 0 for group in GROUPS) > 300


@pytest.mark.parametrize(
    "settings",
    [
        pytest.param(IN_ROUNDS, id="one-block"),
        pytest.param(
            replace(IN_ROUNDS, bytes_per_task=100_000), id="blocks", marks=pytest.mark.slow
        ),
    ],
)
def test_rounds_give_the_same_assignment(
    spark: SparkSession, assigned: list[Row], settings: Settings
) -> None:
    names = {group.name for group in FEW}
    rows = _rows(spark, FEW, settings)
    assert rows == [row for row in assigned if row.group_id in names]


@pytest.mark.slow
def test_rounds_of_many_groups_say_how_many_there_were_and_leave_nothing_in_the_cache(
    spark: SparkSession, assigned: list[Row], caplog: pytest.LogCaptureFixture
) -> None:
    spark.catalog.clearCache()
    paths = Paths()
    caplog.set_level("INFO", "kassign_spark.assignors")
    plan = assign_on_paths(
        *to_tables(spark, GROUPS), assignor="sticky", settings=IN_BLOCKS, paths=paths
    )
    assert sorted(plan.collect()) == assigned
    assert paths.only() == ROUNDS
    assert min(paths.rounds[kind] for kind in ("components", "distances", "transfers")) > 1
    lines = [line for line in caplog.messages if line.startswith("round ")]
    assert len(lines) == paths.rounds.total()
    assert "open partitions 0, " in lines[-1]
    assert "open partitions 0, " not in lines[len(lines) // 2]
    assert spark._jsparkSession.sharedState().cacheManager().isEmpty()


def test_graphframes_and_rounds_find_the_same_components(
    spark: SparkSession, assigned: list[Row]
) -> None:
    needs_graphframes(spark)
    paths = Paths()
    settings = Settings(engine="rounds")
    tables = to_tables(spark, FEW)
    plan = assign_on_paths(*tables, assignor="sticky", settings=settings, paths=paths)
    names = {group.name for group in FEW}
    assert sorted(plan.collect()) == [row for row in assigned if row.group_id in names]
    assert paths.only() == "rounds, components by graphframes"
    assert "components" not in paths.rounds


@pytest.mark.slow
def test_components_that_others_find_give_the_same(
    spark: SparkSession, assigned: list[Row], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As of GraphFrames, where its package is there: a number a member, under other names."""

    def by_others(links: DataFrame, settings: Settings) -> DataFrame:
        in_rounds = connected_components(links, IN_ROUNDS, Budget(100)).frame
        return in_rounds.withColumn("component", -7 - F.col("component"))

    monkeypatch.setattr(
        "kassign_spark.assignors.general_rounds.components_by_graphframes", by_others
    )
    paths = Paths()
    tables = to_tables(spark, FEW)
    plan = assign_on_paths(*tables, assignor="sticky", settings=IN_ROUNDS, paths=paths)
    names = {group.name for group in FEW}
    assert sorted(plan.collect()) == [row for row in assigned if row.group_id in names]
    assert "components" not in paths.rounds


@pytest.mark.slow
@pytest.mark.parametrize("settings", [replace(IN_TASKS, batches=3), IN_BLOCKS])
def test_order_and_partitioning_of_the_input_do_not_matter(
    spark: SparkSession, assigned: list[Row], settings: Settings
) -> None:
    shuffled = [
        frame.orderBy(F.xxhash64(*frame.columns)).repartition(7)
        for frame in to_tables(spark, GROUPS)
    ]
    assert sorted(assign(*shuffled, assignor="sticky", settings=settings).collect()) == assigned


@pytest.mark.parametrize(
    ("groups", "settings"),
    [
        pytest.param(GROUPS, IN_TASKS, id="task"),
        pytest.param(FEW, IN_ROUNDS, id="rounds", marks=pytest.mark.slow),
    ],
)
def test_a_fresh_group_needs_no_owned_table(
    spark: SparkSession, groups: list[MixedGroup], settings: Settings
) -> None:
    members, topics, _ = to_tables(spark, groups)
    plan = assign(members, topics, assignor="sticky", settings=settings)
    _check_optima([replace(group, owned={}) for group in groups], plan.collect())


@pytest.mark.parametrize("settings", ENGINES, ids=["task", "rounds"])
def test_claims_that_cannot_be_kept_are_left_aside(spark: SparkSession, settings: Settings) -> None:
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
    assert _optimum(group, _rows(spark, [group], settings)) == Optimum(8, 3)


@pytest.mark.slow
def test_rounds_without_adaptive_execution(spark: SparkSession) -> None:
    """As small commands run. Rows are lists: of tuples the tests make frames of another kind."""
    adaptive = "spark.sql.adaptive.enabled"
    members = spark.createDataFrame(
        [["g", "a", ["t", "u"]], ["g", "b", ["t"]], ["h", "c", ["t"]], ["h", "d", ["t"]]],
        "group_id string, member_id string, topics array<string>",
    )
    topics = spark.createDataFrame([["t", 4], ["u", 3]], "topic string, num_partitions int")
    owned = spark.createDataFrame(
        [["g", "a", "t", 0], ["h", "d", "t", 3]],
        "group_id string, member_id string, topic string, partition int",
    )
    in_tasks = sorted(assign(members, topics, owned, assignor="sticky").collect())
    was = spark.conf.get(adaptive)
    spark.conf.set(adaptive, "false")
    try:
        plan = assign(members, topics, owned, assignor="sticky", settings=IN_ROUNDS)
        assert sorted(plan.collect()) == in_tasks
    finally:
        spark.conf.set(adaptive, was)


def test_the_round_limit_is_an_error_that_says_what_is_unfinished(spark: SparkSession) -> None:
    with pytest.raises(NotConvergedError, match=r" rows of the \w+ are still .* max_rounds"):
        _rows(spark, FEW, replace(IN_ROUNDS, max_rounds=5))


@pytest.mark.parametrize("limit", [4, 5])
def test_the_last_round_may_be_the_last_that_is_allowed(spark: SparkSession, limit: int) -> None:
    """A group in which everything stays: labels, sums, distances, the cut."""
    group = MixedGroup("g", {"t0": 1, "t1": 1}, {"a": ("t0",), "b": ("t1",)}, {})
    group = replace(group, owned={("t0", 0): "a", ("t1", 0): "b"})
    members, topics, owned = to_tables(spark, [group])
    eligible = inspect_inputs(conform_inputs(members, topics, owned), known_assignors=None).eligible
    rounds: list[Round] = []
    assign_general(eligible, replace(IN_ROUNDS, max_rounds=limit), rounds.append)
    assert [done.kind for done in rounds] == ["components", "quotas", "distances", "quotas"]


def test_dealt_partitions_spread_over_topics(spark: SparkSession) -> None:
    """Nobody who joins gets all of one topic: places are dealt in turn."""
    group = MixedGroup("g", {f"t{i}": 6 for i in range(4)}, {}, {})
    subscriptions = {f"m{i}": tuple(group.partitions) for i in range(3)} | {"x": ("t0",)}
    group = replace(group, subscriptions=subscriptions)
    per_topic = Counter(
        (row.member_id, row.topic) for row in _rows(spark, [group], IN_TASKS) if row.topic != "t0"
    )
    assert max(per_topic.values()) <= 3
