"""Snapshots and plans on S3: whole or not at all, whoever looks, writes or is killed meanwhile."""

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from kassign_spark import cli
from tests.small_fleet import write_small_fleet
from tests.stores.driver import Driver, running_driver
from tests.stores.promises import current, put_fleet, rows, rows_of, stop_while_it_writes
from tests.stores.s3 import S3

pytestmark = pytest.mark.slow

_HEAD = "kassign-spark: error: "
_VERSION = "spark.hadoop.mapreduce.fileoutputcommitter.algorithm.version"


@pytest.fixture(scope="module")
def fleet(s3: S3, tmp_path_factory: pytest.TempPathFactory) -> str:
    return put_fleet(s3, tmp_path_factory.mktemp("fleet"))


@pytest.fixture(scope="module")
def driver(s3: S3, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Driver]:
    with running_driver(tmp_path_factory.mktemp("driver"), s3.settings()) as running:
        yield running


def _assign(fleet: str, plan: str, assignor: str, *more: str) -> tuple[str, ...]:
    return ("assign", fleet, "--output", plan, "--format", "json", "--assignor", assignor, *more)


def test_snapshot_in_plan_out(
    s3: S3, driver: Driver, fleet: str, spark: SparkSession, tmp_path: Path
) -> None:
    said = driver.run("assign", fleet, "--output", f"{s3.root}/out/plan", "--format", "json")
    assert said.code == 0, said.err
    local = write_small_fleet(tmp_path / "fleet")
    plan = tmp_path / "plan"
    assert cli.main(["assign", str(local), "--output", str(plan), "--format", "json"]) == 0
    for table in ("assignment", "balance"):
        assert rows(s3, "out/plan", table) == rows_of(plan / table)
    assert driver.run("validate", fleet).code == 0
    # Parquet, and a plan as an input.
    moves = driver.run("diff", fleet, f"{s3.root}/out/plan", "--output", f"{s3.root}/out/moves")
    assert moves.code == 0, moves.err
    assert any(name.endswith(".parquet") for name in s3.files("out/moves"))
    again = driver.run("diff", fleet, f"{s3.root}/out/plan", "--output", f"{s3.root}/out/moves")
    assert (again.code, again.err) == (
        2,
        f"{_HEAD}output {s3.root}/out/moves: exists; name a new folder, or say --overwrite\n",
    )


def test_looked_at_killed_and_overtaken(s3: S3, driver: Driver, fleet: str, tmp_path: Path) -> None:
    plan = f"{s3.root}/all/plan"
    # The other driver commits its tasks in Hadoop's second way.
    with running_driver(tmp_path, s3.settings() | {_VERSION: "2"}) as writer:
        # A reader meanwhile, and another run that is faster.
        writer.start(*_assign(fleet, plan, "range"))
        stop_while_it_writes(writer, s3, "all/plan")
        said = driver.run("diff", fleet, plan)
        assert (said.code, said.err) == (
            2,
            f"{_HEAD}folder {plan}: is being written, or the writing of it was cut short\n",
        )
        assert driver.run(*_assign(fleet, plan, "roundrobin")).code == 0
        old = rows(s3, "all/plan")
        writer.signal(signal.SIGCONT)
        said = writer.said()
        assert (said.code, said.err) == (
            2,
            f"{_HEAD}output {plan}: another run has written it meanwhile; this run's result is "
            "dropped\n",
        )
        assert rows(s3, "all/plan") == old
        assert _runs(s3, "all/plan") == [current(s3, "all/plan")]

        # A reader while the plan is replaced; then the driver is gone.
        writer.start(*_assign(fleet, plan, "range", "--overwrite"))
        stop_while_it_writes(writer, s3, "all/plan")
        assert len(_runs(s3, "all/plan")) == 2
        assert driver.run("diff", fleet, plan).code == 0
        assert rows(s3, "all/plan") == old
        writer.signal(signal.SIGKILL)
        writer.process.wait()
    assert rows(s3, "all/plan") == old
    assert driver.run(*_assign(fleet, plan, "range", "--overwrite")).code == 0
    assert _runs(s3, "all/plan") == [current(s3, "all/plan")]
    assert rows(s3, "all/plan") != old


def _runs(s3: S3, plan: str) -> list[str]:
    return sorted({f"{plan}/{name.split('/')[0]}" for name in s3.files(plan) if "/" in name})


def test_no_place_or_no_rights(driver: Driver, s3: S3, fleet: str) -> None:
    plan = f"{s3.root}/never"
    for arguments, expected in (
        (("validate", "s3a://nowhere/fleet"), "folder s3a://nowhere/fleet: "),
        (_assign(fleet, "s3a://nowhere/plan", "range"), "output s3a://nowhere/plan: "),
        (_assign(fleet, "s3a://read-only/plan", "range"), "output s3a://read-only/plan: "),
        (_assign("s3a://secret/fleet", plan, "range"), "table members in s3a://secret/fleet: "),
    ):
        said = driver.run(*arguments)
        assert said.code == 2
        assert said.err.startswith(_HEAD + expected), said.err
        assert said.err.count("\n") == 1
        reason = "bucket does not exist" if "nowhere" in expected else "Status Code: 403"
        assert reason in said.err
    assert s3.files("never") == []
