"""Connected components, by either way."""

import random
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from kassign_spark.errors import NotConvergedError, SettingsError
from kassign_spark.graph import components as graph
from kassign_spark.graph.components import connected_components
from kassign_spark.settings import Settings
from kassign_spark.spark.iteration import Budget
from kassign_spark.spark.spark_versions import GRAPHFRAMES_PACKAGE

IN_ROUNDS = Settings(use_graphframes=False)
SEED = 77
ROOT = Path(__file__).parents[1]


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
    result = connected_components(_frame(spark, links), IN_ROUNDS, budget)
    assert {row.id: row.component for row in result.frame.collect()} == _expected(links)
    assert result.frame.count() == len(_expected(links))
    assert (result.by, result.rounds) == ("rounds", budget.used)
    assert budget.used <= 10  # the chain's diameter is 199


def test_graphframes_and_rounds_agree(spark: SparkSession) -> None:
    links = _links()
    try:
        result = connected_components(
            _frame(spark, links), Settings(use_graphframes=True), Budget(100)
        )
    except SettingsError:
        pytest.skip("io.graphframes:graphframes-spark4_2.13 is not in the local Maven repository")
    assert {row.id: row.component for row in result.frame.collect()} == _expected(links)
    assert (result.by, result.rounds) == ("graphframes", 0)


def test_graphframes_that_are_not_there_are_an_error_only_when_asked_for(
    spark: SparkSession,
) -> None:
    frame = _frame(spark, [(1, 2)])
    by_default = connected_components(frame, Settings(), Budget(100))
    assert sorted(by_default.frame.collect()) == [(1, 1), (2, 1)]
    try:
        asked = connected_components(frame, Settings(use_graphframes=True), Budget(100))
    except SettingsError as error:
        assert GRAPHFRAMES_PACKAGE in str(error)  # noqa: PT017  no error is right as well
    else:
        assert sorted(asked.frame.collect()) == [(1, 1), (2, 1)]


def test_halves_of_graphframes_that_do_not_fit_each_other(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By default the rounds go on, with a line; who asked for GraphFrames is told."""
    needs_graphframes(spark)
    monkeypatch.setattr(graph, "_jvm_version", lambda framed: "0.7.1")
    frame = _frame(spark, [(1, 2)])
    says = r"^graphframes-py \S+ does not fit the Spark package \S+:0\.7\.1: "
    with pytest.warns(UserWarning, match=says + ".*; connected components come from rounds"):
        result = connected_components(frame, Settings(), Budget(100))
    assert sorted(result.frame.collect()) == [(1, 1), (2, 1)]
    assert result.by == "rounds"
    with pytest.raises(SettingsError, match="use_graphframes: graphframes-py"):
        connected_components(frame, Settings(use_graphframes=True), Budget(100))


def test_graphframes_that_throws_is_gone_on_without(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    graphframes = needs_graphframes(spark)

    def fails(self: object, **options: object) -> None:
        raise PySparkException("out of luck\nwith a trace")

    monkeypatch.setattr(graphframes.GraphFrame, "connectedComponents", fails)
    with pytest.warns(UserWarning, match=r"^GraphFrames \S+ failed: out of luck; connected"):
        result = connected_components(_frame(spark, [(1, 2)]), Settings(), Budget(100))
    assert sorted(result.frame.collect()) == [(1, 1), (2, 1)]


def test_a_jar_without_what_the_python_half_calls_is_gone_on_without(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another failure than that of a package that does not exist at all, which needs no word."""
    graphframes = needs_graphframes(spark)
    graph_of = graphframes.GraphFrame

    def calls_what_is_not_there(vertices: DataFrame, edges: DataFrame) -> None:
        graph_of(vertices, edges)._impl._jvm_graph.noSuchMethod()

    monkeypatch.setattr(graphframes, "GraphFrame", calls_what_is_not_there)
    with pytest.warns(UserWarning, match=r"^GraphFrames \S+ failed: .*noSuchMethod.*; connected"):
        result = connected_components(_frame(spark, [(1, 2)]), Settings(), Budget(100))
    assert sorted(result.frame.collect()) == [(1, 1), (2, 1)]


def test_the_configuration_names_the_half_that_goes_with_the_pinned_one() -> None:
    pinned = re.search(r"^graphframes-py==(\S+)$", (ROOT / "constraints.txt").read_text(), re.M)
    named = re.search(
        r"graphframes-spark4_2\.13:(\S+)$", (ROOT / "conf/spark-cluster.conf").read_text(), re.M
    )
    assert pinned is not None
    assert named is not None
    assert named[1] == pinned[1]


def needs_graphframes(spark: SparkSession) -> Any:
    graphframes = pytest.importorskip("graphframes", reason="graphframes-py is not installed")
    try:
        graphframes.GraphFrame(spark.range(1), _frame(spark, [(0, 0)]))
    except Py4JError:
        pytest.skip("io.graphframes:graphframes-spark4_2.13 is not in the local Maven repository")
    return graphframes


def test_the_round_limit_names_the_components(spark: SparkSession) -> None:
    with pytest.raises(NotConvergedError, match="rows of the components"):
        connected_components(_frame(spark, _links()), IN_ROUNDS, Budget(1))
