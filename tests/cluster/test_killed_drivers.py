"""Drivers killed while they write, two runs at once, and an output that is full."""

import json
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from kassign_spark import cli
from tests.cluster.standalone import Standalone, end_driver
from tests.small_fleet import write_small_fleet

pytestmark = pytest.mark.slow

_HEAD = "kassign-spark: error: "


@pytest.fixture
def fleet(tmp_path: Path) -> Path:
    return write_small_fleet(tmp_path / "fleet")


def _wait_for(folder: Path, pattern: str, running: "subprocess.Popen[str]") -> None:
    deadline = time.monotonic() + 300
    while not list(folder.glob(pattern)):
        assert running.poll() is None, running.communicate()[0]
        assert time.monotonic() < deadline
        time.sleep(0.02)


def _names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_driver_killed_while_it_writes(
    spark: SparkSession,
    cluster: Standalone,
    fleet: Path,
    tmp_path: Path,
    number: signal.Signals,
    capsys: pytest.CaptureFixture[str],
) -> None:
    plan = tmp_path / "plan"
    running = cluster.submit("assign", fleet, "--output", plan)
    _wait_for(tmp_path, ".plan.*.writing/assignment", running)
    end_driver(running, number)
    assert not plan.exists(), "half a plan"
    assert _names(tmp_path) == ["fleet"], "Python tidies up where Java is gone"
    assert cli.main(["diff", str(fleet), str(plan), "--output", str(tmp_path / "d")]) == 2
    assert capsys.readouterr().err == f"{_HEAD}folder {plan}: not found\n"

    assert cli.main(["assign", str(fleet), "--output", str(plan)]) == 0
    assert _names(tmp_path) == ["fleet", "plan"]


def test_two_runs_at_once(
    spark: SparkSession,
    cluster: Standalone,
    fleet: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """One range, the other round robin; the first that is done has the folder for itself."""
    plan = tmp_path / "plan"
    arguments = ["assign", str(fleet), "--output", str(plan), "--format", "json", "--assignor"]
    there = cluster.submit(*arguments, "range")
    _wait_for(tmp_path, ".plan.*.writing", there)
    here = cli.main([*arguments, "roundrobin"])
    said_here = "".join(capsys.readouterr())
    said_there, _ = there.communicate(timeout=300)
    assert sorted([here, there.returncode]) == [0, 2]
    winner, refused = ("roundrobin", said_there) if here == 0 else ("range", said_here)
    expected = f"{_HEAD}output {plan}: another run has written it meanwhile; this run's result is "
    assert refused.splitlines()[-1] == f"{expected}dropped"
    assert refused.count("\n") == 1
    assert _names(tmp_path) == ["fleet", "plan"]
    assert _names(plan) == ["_kassign_spark", "assignment", "balance"]

    alone = tmp_path / "alone"
    assert cli.main([*arguments[:3], str(alone), *arguments[4:], winner]) == 0
    assert _json_rows(plan / "assignment") == _json_rows(alone / "assignment")
    assert {json.loads(row)["assignor"] for row in _json_rows(plan / "balance")} == {winner}


def _json_rows(folder: Path) -> list[str]:
    return sorted(line for part in folder.glob("part-*") for line in part.read_text().splitlines())


@pytest.fixture
def full_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of its own with room for a page or two of data."""
    mounted = tmp_path / "disk"
    mounted.mkdir()
    options = ["-t", "tmpfs", "-o", "size=8k", "tmpfs"]
    made = subprocess.run(
        ["mount", *options, str(mounted)], capture_output=True, text=True, check=False
    )
    if made.returncode:
        pytest.skip(f"a file system cannot be mounted here: {made.stderr.strip()}")
    try:
        yield mounted
    finally:
        subprocess.run(["umount", str(mounted)], check=True)


def test_a_full_disk(cluster: Standalone, fleet: Path, full_disk: Path) -> None:
    submitted = cluster.submit("assign", fleet, "--output", full_disk / "new" / "plan")
    printed, _ = submitted.communicate(timeout=600)
    assert submitted.returncode == 2, printed
    assert printed.count("\n") == 1
    assert printed.startswith(_HEAD)
    assert "No space left on device" in printed
    assert _names(full_disk) == []
