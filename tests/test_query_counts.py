"""The costs of a call on the example in a session that nobody tuned: held to their bars."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.benchmarks.queries import (
    BARS,
    CALLS,
    ExampleTables,
    count_call,
    count_report,
    read_example_tables,
    write_plan,
)
from tests.query_counter import Counted, counting, run_to_nothing

_MOST_JAVA_CALLS = 2_500
"""`assign` made 7,000 while its expressions were trees of columns."""
_TAKES_LONG = {"compare", "explain", "simulate", "rebalance cooperative"}
_OF_STEPS = ("summarize", "listener_calls")
"""Calls without a bar in numbers; the tasks of their stages are held."""


def _marked(name: str) -> object:
    return pytest.param(name, marks=[pytest.mark.slow] if name in _TAKES_LONG else [])


@pytest.fixture(scope="module")
def plain(spark: SparkSession) -> SparkSession:
    """A session with Spark's defaults for SQL, on the tests' context."""
    session = spark.newSession()
    session.conf.set("spark.sql.shuffle.partitions", "200")
    return session


@pytest.fixture(scope="module")
def example(
    plain: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ExampleTables]:
    yield read_example_tables(plain, tmp_path_factory.mktemp("example"), only=["balance"])
    plain.catalog.clearCache()


@pytest.fixture(scope="module")
def given_steps(plain: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> ExampleTables:
    return read_example_tables(plain, tmp_path_factory.mktemp("steps"), only=_OF_STEPS)


def test_the_counter_counts(plain: SparkSession) -> None:
    frame = plain.range(100, numPartitions=3)
    with counting(plain) as nothing:
        frame.selectExpr("id + 1")
    assert (nothing.queries, nothing.jobs, nothing.stage_tasks) == (0, 0, ())
    with counting(plain) as one:
        run_to_nothing([frame])
    assert (one.queries, one.jobs, one.stage_tasks) == (1, 1, (3,))
    with counting(plain) as two:
        run_to_nothing([frame.repartition(5, "id"), frame])
    # The shuffle's two stages: the map side's three tasks, then five; then the second frame.
    assert (two.queries, two.jobs, two.stage_tasks) == (2, 3, (5, 3, 3))
    assert two.most_tasks == 5
    assert nothing.java_calls > 0
    assert one.java_calls < two.java_calls < 300


def _check(counted: Counted, name: str, plain: SparkSession) -> None:
    assert counted.most_tasks <= 2 * plain.sparkContext.defaultParallelism, counted
    if name != "report":  # which makes many calls
        assert counted.java_calls <= _MOST_JAVA_CALLS, counted
    if name in BARS:
        assert counted.queries <= BARS[name].queries, counted
        assert counted.jobs <= BARS[name].jobs, counted


@pytest.mark.parametrize("name", [_marked(name) for name in CALLS if name in BARS])
def test_a_call_on_the_tables(plain: SparkSession, example: ExampleTables, name: str) -> None:
    _check(count_call(plain, example, name), name, plain)


@pytest.mark.slow
@pytest.mark.parametrize("name", _OF_STEPS)
def test_a_call_on_the_steps_of_a_rebalance(
    plain: SparkSession, given_steps: ExampleTables, name: str
) -> None:
    _check(count_call(plain, given_steps, name), name, plain)


@pytest.mark.slow
def test_the_command_report(plain: SparkSession, tmp_path: Path) -> None:
    plain.createDataFrame([(1,)], "id int")  # makes the session the active one, which commands use
    write_plan(tmp_path / "plan")
    _check(count_report(plain, tmp_path / "plan", tmp_path / "report.html"), "report", plain)
