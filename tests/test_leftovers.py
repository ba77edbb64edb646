"""What ended runs left beside an output goes; what may be at work, or the last copy, stays."""

import os
import re
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from kassign_spark.errors import OutputError
from kassign_spark.tables.leftovers import hidden_stem, tidy
from kassign_spark.tables.local_files import LocalFiles
from kassign_spark.tables.output_folder import new_folder

_STEM = re.compile(r"\.plan\.([0-9a-f]{12})-(\d+)-(\d+)-([0-9a-f]{12})")


def _ended_stem() -> str:
    """As of a process of this machine that is no more."""
    text = "from kassign_spark.tables.leftovers import hidden_stem; print(hidden_stem('plan'))"
    ended = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    return ended.stdout.strip()


def _names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def _write(spark: SparkSession, plan: Path, *, overwrite: bool = False) -> None:
    with new_folder(spark, str(plan), overwrite=overwrite) as folder:
        (Path(folder.removeprefix("file:")) / "assignment").mkdir()


def test_only_what_ended_here_goes(spark: SparkSession, tmp_path: Path) -> None:
    alive = hidden_stem("plan")
    result = _STEM.fullmatch(alive)
    assert result is not None
    assert int(result[2]) == os.getpid()
    machine, pid, start, run = result.groups()
    kept = [
        f"{alive}.writing",
        f"{alive}.replaced",
        f".plan.{'0' * 12}-{pid}-1-{run}.writing",  # of another machine
        f".plan.{machine}-{pid}-{start}.writing",  # not one of our names
        f".planned.{machine}-{pid}-1-{run}.writing",  # of another output
        ".plan.notes",
    ]
    # The second one's process id has gone to another process since.
    gone = [f"{_ended_stem()}.writing", f".plan.{machine}-{pid}-1-{run}.writing"]
    for name in kept + gone:
        (tmp_path / name / "assignment").mkdir(parents=True)
    _write(spark, tmp_path / "plan")
    assert _names(tmp_path) == sorted([*kept, "plan"])


@pytest.mark.parametrize("overwrite", [True, False])
def test_a_run_that_ended_in_the_middle_of_replacing(
    spark: SparkSession, tmp_path: Path, overwrite: bool
) -> None:
    """The old plan was moved away and the new one not yet there: the old one comes back."""
    plan, stem = tmp_path / "plan", _ended_stem()
    _write(spark, plan)
    plan.rename(tmp_path / f"{stem}.replaced")
    (tmp_path / f"{stem}.writing").mkdir()
    if overwrite:
        with pytest.raises(ValueError, match="broken"):  # noqa: SIM117
            with new_folder(spark, str(plan), overwrite=True):
                raise ValueError("broken")
    else:
        with pytest.raises(OutputError, match="exists"), new_folder(spark, str(plan)):
            raise AssertionError
    assert _names(tmp_path) == ["plan"]
    assert (plan / "assignment").is_dir()


def test_an_old_plan_stays_where_it_may_be_the_last(spark: SparkSession, tmp_path: Path) -> None:
    """Its run had put the new one in place, so it goes; somebody removed that one: it stays."""
    plan, replaced = tmp_path / "plan", tmp_path / f"{_ended_stem()}.replaced"
    replaced.mkdir()
    _write(spark, plan)
    assert _names(tmp_path) == [replaced.name, "plan"]
    _write(spark, plan, overwrite=True)
    assert _names(tmp_path) == ["plan"]


@pytest.mark.parametrize("overwrite", [True, False])
def test_another_run_comes_in_between(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, overwrite: bool
) -> None:
    plan = tmp_path / "plan"
    if overwrite:
        _write(spark, plan)
    rename = LocalFiles.rename

    def late(files: LocalFiles, path: str, target: str) -> None:
        if path.endswith(".writing"):
            (plan / "theirs").mkdir(parents=True)
        rename(files, path, target)

    monkeypatch.setattr(LocalFiles, "rename", late)
    with pytest.raises(OutputError, match="another run has written it meanwhile"):
        _write(spark, plan, overwrite=overwrite)
    assert _names(plan) == ["theirs"]
    assert _names(tmp_path) == ["plan"]


def test_tidying_up_when_java_is_gone_leaves_no_trace(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse() -> bool:
        raise ConnectionRefusedError(111, "Connection refused")

    traces: list[object] = []
    monkeypatch.setattr(threading, "excepthook", traces.append)
    tidy(LocalFiles(), "file:/plan", [], refuse)
    assert traces == []
