"""An executor that is killed in the middle of the general pass, and a worker that is gone."""

import os
import re
import signal
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import Row, SparkSession

from kassign_spark import cli
from tests.cluster.fleet_files import write_fleet
from tests.cluster.standalone import Standalone

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def in_rounds(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Arguments by which every group of differing subscriptions needs rounds."""
    folder = tmp_path_factory.mktemp("in_rounds")
    settings = folder / "settings.toml"
    settings.write_text('engine = "rounds"\nuse_graphframes = false\n')
    return ["assign", str(write_fleet(folder / "fleet")), "--settings", str(settings)]


@pytest.fixture(scope="module")
def expected(
    spark: SparkSession, in_rounds: list[str], tmp_path_factory: pytest.TempPathFactory
) -> "Counter[Row]":
    plan = tmp_path_factory.mktemp("here") / "plan"
    assert cli.main([*in_rounds, "--output", str(plan)]) == 0
    return _assignment(spark, plan)


def _assignment(spark: SparkSession, plan: Path) -> "Counter[Row]":
    return Counter(spark.read.parquet(str(plan / "assignment")).collect())


def _run(
    cluster: Standalone,
    arguments: list[str],
    lose: Callable[[], None],
    settings: dict[str, str | None] | None = None,
) -> tuple[int, list[str]]:
    """Run the command, and ``lose`` something after the third round of the general pass.

    Gives the exit code and what was printed but the rounds.
    """
    submitted = cluster.submit(*arguments, "--progress", settings=settings)
    printed, lost = [], False
    assert submitted.stdout is not None
    for line in submitted.stdout:
        printed.append(line.rstrip("\n"))
        if not lost and re.match(r"round 3 ", line):
            lose()
            lost = True
    code = submitted.wait(600)
    assert lost, printed
    return code, [line for line in printed if not line.startswith("round ")]


def test_local_checkpoints_that_are_lost(
    cluster: Standalone, in_rounds: list[str], tmp_path: Path
) -> None:
    """Without a checkpoint folder there is no way on; one line says what to do."""

    def lose() -> None:
        for pid in cluster.executors():
            os.kill(pid, signal.SIGKILL)

    arguments = [*in_rounds, "--output", str(tmp_path / "plan")]
    code, printed = _run(cluster, arguments, lose, {"spark.checkpoint.dir": None})
    assert (code, printed) == (
        2,
        [
            "kassign-spark: error: Spark: an executor was lost, and with it a local checkpoint; "
            "run again, with spark.checkpoint.dir set to a folder that all executors see, which "
            "survives that"
        ],
    )
    assert list(tmp_path.iterdir()) == []


def test_an_executor_killed_in_the_general_pass(
    spark: SparkSession,
    cluster: Standalone,
    in_rounds: list[str],
    expected: "Counter[Row]",
    tmp_path: Path,
) -> None:
    def lose() -> None:
        os.kill(cluster.executors()[0], signal.SIGKILL)

    code, printed = _run(cluster, [*in_rounds, "--output", str(tmp_path / "plan")], lose)
    assert code == 0, printed
    assert "no violations" in printed[0]
    assert _assignment(spark, tmp_path / "plan") == expected
    assert list((cluster.folder / "checkpoints").iterdir()) == [], "left by the run"


def test_a_worker_lost_for_good(
    spark: SparkSession,
    cluster: Standalone,
    in_rounds: list[str],
    expected: "Counter[Row]",
    tmp_path: Path,
) -> None:
    arguments = [*in_rounds, "--output", str(tmp_path / "plan")]
    code, printed = _run(cluster, arguments, cluster.lose_worker)
    assert code == 0, printed
    assert "no violations" in printed[0]
    assert len(cluster.executors()) <= 1
    assert _assignment(spark, tmp_path / "plan") == expected
