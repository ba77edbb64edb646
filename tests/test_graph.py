"""The eligibility graph: components by either way, and the view of who can take what."""

import random
from collections import defaultdict
from itertools import pairwise

import pytest
from pyspark.sql import DataFrame, SparkSession

from kassign_spark.eligibility.graph import connected_components
from kassign_spark.eligibility.takers import Eligibility, describe_eligibility
from kassign_spark.errors import NotConvergedError, SettingsError
from kassign_spark.groups.look import look
from kassign_spark.inputs.checks import conform_inputs
from kassign_spark.rounds import Budget
from kassign_spark.settings import Settings
from tests.oracles.mixed_groups import MixedGroup, mixed_groups, to_tables

IN_ROUNDS = Settings(use_graphframes=False)
SEED = 77


def _links() -> list[tuple[int, int]]:
    """Random sparse links, a long chain, a star, a loop and a pair, all of numbers far apart."""
    rng = random.Random(SEED)
    names = rng.sample(range(1, 1 << 48), 900)
    links = [(rng.choice(names[:400]), rng.choice(names[:400])) for _ in range(260)]
    links = [(a, b) for a, b in links if a != b]
    links += list(pairwise(names[400:600]))
    links += [(names[600], leaf) for leaf in names[601:700]]
    links += [*pairwise(names[700:750]), (names[749], names[700])]
    return [*links, (names[800], names[801])]


def _expected(links: list[tuple[int, int]]) -> dict[int, int]:
    parent: dict[int, int] = {}

    def root(x: int) -> int:
        while parent.setdefault(x, x) != x:
            x = parent[x]
        return x

    for a, b in links:
        low, high = sorted((root(a), root(b)))
        parent[high] = low
    return {x: root(x) for x in parent}


def _frame(spark: SparkSession, links: list[tuple[int, int]]) -> DataFrame:
    return spark.createDataFrame(links, "src bigint, dst bigint").repartition(3)


def test_rounds_find_the_components_in_few_rounds(spark: SparkSession) -> None:
    links = _links()
    budget = Budget(100)
    found = connected_components(_frame(spark, links), IN_ROUNDS, budget)
    assert {row.id: row.component for row in found.collect()} == _expected(links)
    assert found.count() == len(_expected(links))
    assert budget.used <= 10  # the chain's diameter is 199


def test_graphframes_and_rounds_agree(spark: SparkSession) -> None:
    links = _links()
    try:
        found = connected_components(
            _frame(spark, links), Settings(use_graphframes=True), Budget(100)
        )
    except SettingsError:
        pytest.skip("io.graphframes:graphframes-spark4_2.13 is not in the local Maven repository")
    assert {row.id: row.component for row in found.collect()} == _expected(links)


def test_graphframes_that_are_not_there_are_an_error_only_when_asked_for(
    spark: SparkSession,
) -> None:
    frame = _frame(spark, [(1, 2)])
    by_default = connected_components(frame, Settings(), Budget(100))
    assert sorted(by_default.collect()) == [(1, 1), (2, 1)]
    try:
        asked = connected_components(frame, Settings(use_graphframes=True), Budget(100)).collect()
    except SettingsError as error:
        assert "graphframes-spark4_2.13" in str(error)  # noqa: PT017  no error is right as well
    else:
        assert sorted(asked) == [(1, 1), (2, 1)]


def test_the_round_limit_names_the_components(spark: SparkSession) -> None:
    with pytest.raises(NotConvergedError, match="rows of the components"):
        connected_components(_frame(spark, _links()), IN_ROUNDS, Budget(1))


def _describe(spark: SparkSession, groups: list[MixedGroup]) -> Eligibility:
    inputs = conform_inputs(*to_tables(spark, groups))
    return describe_eligibility(look(inputs, known_assignors=None).eligible, IN_ROUNDS)


def test_the_view_of_a_group(spark: SparkSession) -> None:
    group = MixedGroup(
        "g",
        {"orders": 4, "payments": 3, "audit": 2, "logs": 1, "unread": 5, "empty": 0},
        {
            "a": ("orders", "payments"),
            "b": ("payments",),
            "c": ("audit", "logs", "missing"),
            "d": (),
            "e": ("empty",),
        },
    )
    view = _describe(spark, [group])
    assert sorted(tuple(row[2:]) for row in view.topics.collect()) == [
        ("audit", 2, 1, 1, ["c"], True),
        ("logs", 1, 1, 1, ["c"], True),
        ("orders", 4, 0, 1, ["a"], True),
        ("payments", 3, 0, 2, ["a", "b"], False),
    ]
    assert sorted(tuple(row[2:]) for row in view.members.collect()) == [
        ("a", 0, 7, 4, True),
        ("b", 0, 3, 0, True),
        ("c", 1, 3, 3, False),
        ("d", None, 0, 0, False),
        ("e", None, 0, 0, False),
    ]
    assert sorted(tuple(row[2:]) for row in view.components.collect()) == [
        (0, 2, 2, 7),
        (1, 1, 2, 3),
    ]


def test_the_view_of_random_groups(spark: SparkSession) -> None:
    groups = [g for g in mixed_groups(98, SEED) if any(g.subscriptions.values())]
    rows = _describe(spark, groups).topics.collect()
    found = defaultdict(dict)
    for row in rows:
        found[row.group_id][row.topic] = (row.takers, row.component)
    for group in groups:
        expected = {
            topic: sorted(group.subscribers(topic))
            for topic, count in group.partitions.items()
            if count and group.subscribers(topic)
        }
        assert {t: takers for t, (takers, _) in found[group.name].items()} == expected
        numbers = {name: n for n, name in enumerate([*group.subscriptions, *expected])}
        component = _expected(
            [(numbers[t], numbers[m]) for t, takers in expected.items() for m in takers]
        )
        together = {
            (a, b): component[numbers[a]] == component[numbers[b]]
            for a in expected
            for b in expected
        }
        assert together == {
            (a, b): found[group.name][a][1] == found[group.name][b][1]
            for a in expected
            for b in expected
        }
