"""Snapshots and plans on S3 and HDFS: whole or not at all, whoever looks, writes or dies meanwhile.

On S3 a marker says which run is whole, on HDFS a rename does it: what users see is the same.
"""

import signal
from pathlib import Path

import pytest

from tests.stores.driver import Driver, running_driver
from tests.stores.hadoop_jars import committer_jars
from tests.stores.promises import Store, current, plans, rows, rows_of, stop_while_it_writes
from tests.stores.s3 import S3

pytestmark = pytest.mark.slow

_HEAD = "kassign-spark: error: "
_CLOUD = "org.apache.spark.internal.io.cloud"
_VERSION = "spark.hadoop.mapreduce.fileoutputcommitter.algorithm.version"


def _assign(fleet: str, plan: str, assignor: str, *more: str) -> tuple[str, ...]:
    return ("assign", fleet, "--output", plan, "--format", "json", "--assignor", assignor, *more)


def test_snapshot_in_plan_out(store: Store, driver: Driver, fleet: str, local_plan: Path) -> None:
    plan, moves = f"{store.root}/out/plan", f"{store.root}/moves"
    outcome = driver.run("assign", fleet, "--output", plan, "--format", "json")
    assert outcome.code == 0, outcome.err
    for table in ("assignment", "balance"):
        assert rows(store, "out/plan", table) == rows_of(local_plan / table)
    assert driver.run("validate", fleet).code == 0
    # A plan as an input, Parquet as an output, and a folder beside which is the root.
    outcome = driver.run("diff", fleet, plan, "--output", moves)
    assert outcome.code == 0, outcome.err
    assert any(name.endswith(".parquet") for name in store.files("moves"))
    outcome = driver.run("diff", fleet, plan, "--output", moves)
    assert outcome.code == 2
    assert outcome.errors() == [
        f"{_HEAD}output {moves}: exists; name a new folder, or say --overwrite"
    ]


def test_looked_at_overtaken_and_killed(
    store: Store, driver: Driver, fleet: str, tmp_path: Path
) -> None:
    plan = f"{store.root}/all/plan"
    # The other driver commits its tasks in Hadoop's second way.
    settings = store.settings() | {_VERSION: "2"}
    with running_driver(tmp_path, settings, store.environment()) as writer:
        # A reader meanwhile, and another run that is faster.
        writer.start(*_assign(fleet, plan, "range"))
        stop_while_it_writes(writer, store, "all")
        unfinished = "is being written, or the writing of it was cut short"
        unfinished = unfinished if store.name == "s3a" else "not found"
        outcome = driver.run("diff", fleet, plan)
        assert outcome.code == 2
        assert outcome.errors() == [f"{_HEAD}folder {plan}: {unfinished}"]
        assert driver.run(*_assign(fleet, plan, "roundrobin")).code == 0
        old = rows(store, "all/plan")
        writer.signal(signal.SIGCONT)
        outcome = writer.wait()
        assert outcome.code == 2
        assert outcome.errors() == [
            f"{_HEAD}output {plan}: another run has written it meanwhile; this run's result is "
            "dropped"
        ]
        assert rows(store, "all/plan") == old
        assert plans(store, "all") == [current(store, "all/plan")]

        # A reader while the plan is replaced; then the driver is gone.
        writer.start(*_assign(fleet, plan, "range", "--overwrite"))
        stop_while_it_writes(writer, store, "all")
        assert driver.run("diff", fleet, plan).code == 0
        assert rows(store, "all/plan") == old
        writer.signal(signal.SIGKILL)
        writer.process.wait()
    assert len(plans(store, "all")) == 2
    assert rows(store, "all/plan") == old
    outcome = driver.run(*_assign(fleet, plan, "range", "--overwrite"))
    assert outcome.code == 0, outcome.err
    assert plans(store, "all") == [current(store, "all/plan")]
    assert rows(store, "all/plan") != old


_MAGIC = {
    "spark.hadoop.fs.s3a.committer.name": "magic",
    "spark.sql.sources.commitProtocolClass": f"{_CLOUD}.PathOutputCommitProtocol",
    "spark.sql.parquet.output.committer.class": f"{_CLOUD}.BindingParquetOutputCommitter",
}


def test_the_magic_committer_copies_nothing(
    store: Store, driver: Driver, fleet: str, tmp_path: Path
) -> None:
    """And what a driver that is terminated in the middle of it leaves is no plan, and goes."""
    if not isinstance(store, S3):
        pytest.skip("HDFS renames files in one step")
    try:
        more = committer_jars()
    except RuntimeError as error:
        pytest.skip(f"no spark-hadoop-cloud: {error}")
    settings = store.settings() | _MAGIC
    settings["spark.jars"] = ",".join([settings["spark.jars"], *map(str, more)])
    plan = f"{store.root}/magic/plan"
    copied = store.copies()
    with running_driver(tmp_path, settings) as writer:
        outcome = writer.run("assign", fleet, "--output", plan)
        assert outcome.code == 0, outcome.err
        assert writer.run("diff", fleet, plan).out.count("group") > 1
        assert store.copies() == copied
        writer.start("assign", fleet, "--output", f"{store.root}/magic/late")
        stop_while_it_writes(writer, store, "magic")
        writer.signal(signal.SIGTERM)
        writer.signal(signal.SIGCONT)
        writer.process.wait(60)
    assert "current.json" not in store.files("magic/late")
    outcome = driver.run(*_assign(fleet, f"{store.root}/magic/late", "range"))
    assert outcome.code == 0, outcome.err
    assert plans(store, "magic/late") == [current(store, "magic/late")]
    assert store.copies() > copied  # by Spark's own committer


_S3_ERRORS = {
    "s3a://nowhere/fleet": "The specified bucket does not exist",
    "s3a://nowhere/plan": "The specified bucket does not exist",
    "s3a://read-only/plan": "Status Code: 403",
    "s3a://secret/fleet": "Status Code: 403",
}
_HDFS_ERRORS = {
    "/nowhere/fleet": "not found",
    "/private/plan": "Permission denied: user=planner, access=EXECUTE",
    "/private/fleet": "Permission denied: user=planner, access=EXECUTE",
}


def test_no_place_or_no_rights(driver: Driver, store: Store, fleet: str) -> None:
    if store.name == "s3a":
        expected = _S3_ERRORS
    else:
        expected = {f"{store.root}{path}": reason for path, reason in _HDFS_ERRORS.items()}
    for place, reason in expected.items():
        if place.endswith("/plan"):
            outcome = driver.run(*_assign(fleet, place, "range"))
        else:
            outcome = driver.run(*_assign(place, f"{store.root}/never/plan", "range"))
        assert outcome.code == 2
        (error,) = outcome.errors()
        assert error.startswith(_HEAD)
        assert place in error
        assert reason in error
    assert store.files("never") == []
