"""Object stores' way to a whole folder, on a local one: runs, and a marker that names one."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from kassign_spark.errors import InputError, OutputError
from kassign_spark.processes import new_owner
from kassign_spark.schemas import TOPICS
from kassign_spark.tables import output_folder
from kassign_spark.tables.folder_runs import CURRENT, name_run, run_in, run_name
from kassign_spark.tables.hadoop import HadoopFiles
from kassign_spark.tables.local_files import LocalFiles
from kassign_spark.tables.locating import locate
from kassign_spark.tables.origin import note_snapshot, noted_snapshot
from kassign_spark.tables.output_folder import new_folder
from kassign_spark.tables.snapshots import one_run, read_table, write_table
from tests import builders


@pytest.fixture(autouse=True)
def _as_an_object_store(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LocalFiles, "renames_at_once", lambda *_: False)


def _names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.suffix != ".crc")


def _topics(spark: SparkSession, folder: Path) -> dict[str, int]:
    rows = read_table(spark, str(folder), TOPICS).collect()
    return {row.topic: row.num_partitions for row in rows}


def _write(
    spark: SparkSession,
    folder: Path,
    topics: dict[str, int],
    *,
    overwrite: bool = False,
    meanwhile: Callable[[], None] = lambda: None,
) -> None:
    with new_folder(spark, str(folder), overwrite=overwrite) as writing:
        write_table(builders.topics(spark, topics), writing, "topics", "json")
        meanwhile()


def _ended_run() -> str:
    """As of a process of this machine that is no more."""
    text = "from kassign_spark.processes import new_owner; print(new_owner())"
    ended = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    return run_name(ended.stdout.strip())


def _refused(spark: SparkSession, folder: Path) -> str:
    with pytest.raises(InputError) as error:
        read_table(spark, str(folder), TOPICS)
    return str(error.value).replace(str(folder), "plan")


_UNFINISHED = "folder plan: is being written, or the writing of it was cut short"


def test_who_looks_meanwhile_finds_nothing_or_the_old(spark: SparkSession, tmp_path: Path) -> None:
    plan = tmp_path / "new" / "plan"
    seen: list[object] = []
    _write(spark, plan, {"t0": 1}, meanwhile=lambda: seen.append(_refused(spark, plan)))
    seen.append(_topics(spark, plan))
    (first,) = set(_names(plan)) - {CURRENT}
    _write(
        spark,
        plan,
        {"t1": 2},
        overwrite=True,
        meanwhile=lambda: seen.append(_topics(spark, plan)),
    )
    seen.append(_topics(spark, plan))
    assert seen == [_UNFINISHED, {"t0": 1}, {"t0": 1}, {"t1": 2}]
    (second,) = set(_names(plan)) - {CURRENT}
    assert first != second
    assert one_run(spark, str(plan), "topics").endswith(f"new/plan/{second}")
    # Any program finds the tables by the marker.
    assert json.loads((plan / CURRENT).read_text()) == {"run": second}
    assert spark.read.json(str(plan / CURRENT)).collect() == [(second,)]


def test_the_snapshot_of_a_plan_is_noted_in_its_run(spark: SparkSession, tmp_path: Path) -> None:
    plan = tmp_path / "plan"
    with new_folder(spark, str(plan)) as folder:
        note_snapshot(spark, folder, "/fleets/today")
        assert noted_snapshot(spark, str(plan), "balance") is None
    assert noted_snapshot(spark, str(plan), "balance") == "file:/fleets/today"


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError, OutputError])
def test_a_failure_leaves_nothing_or_the_old(
    spark: SparkSession, tmp_path: Path, error: type[BaseException]
) -> None:
    def fail() -> None:
        raise error("broken")

    plan = tmp_path / "new" / "plan"
    with pytest.raises(error, match="broken"):
        _write(spark, plan, {"t0": 1}, meanwhile=fail)
    assert list(tmp_path.iterdir()) == []
    _write(spark, plan, {"t0": 1})
    before = sorted(plan.rglob("*"))
    with pytest.raises(error, match="broken"):
        _write(spark, plan, {"t1": 1}, overwrite=True, meanwhile=fail)
    assert sorted(plan.rglob("*")) == before


@pytest.mark.parametrize("overwrite", [True, False])
def test_two_runs_at_once(spark: SparkSession, tmp_path: Path, overwrite: bool) -> None:
    plan = tmp_path / "plan"

    def other() -> None:
        _write(spark, plan, {"theirs": 1}, overwrite=overwrite)

    if overwrite:  # the last to be done has it
        _write(spark, plan, {"ours": 1}, overwrite=True, meanwhile=other)
    else:
        with pytest.raises(OutputError, match="another run has written it meanwhile"):
            _write(spark, plan, {"ours": 1}, meanwhile=other)
    assert _topics(spark, plan) == {"ours" if overwrite else "theirs": 1}
    assert len(_names(plan)) == 2


def test_runs_that_ended_go_and_others_stay(spark: SparkSession, tmp_path: Path) -> None:
    plan, ended = tmp_path / "plan", _ended_run()
    at_work, elsewhere = run_name(new_owner()), run_name(f"{'0' * 12}-1-1-{'0' * 12}")
    for name in (ended, at_work, elsewhere):
        (plan / name / "topics").mkdir(parents=True)
    assert _refused(spark, plan) == _UNFINISHED
    _write(spark, plan, {"t0": 1})  # nothing whole was there, so there is nothing to overwrite
    (run,) = set(_names(plan)) - {CURRENT, at_work, elsewhere}
    # A whole one's process has ended, too.
    own = plan / _ended_run()
    (plan / run).rename(own)
    (plan / CURRENT).write_text(json.dumps({"run": own.name}))
    with pytest.raises(OutputError, match=r"exists; name a new folder, or say --overwrite$"):
        _write(spark, plan, {"t1": 1})
    assert _topics(spark, plan) == {"t0": 1}
    _write(spark, plan, {"t1": 1}, overwrite=True)
    assert not own.exists()
    assert _topics(spark, plan) == {"t1": 1}


def test_a_folder_that_was_renamed_into_place_is_replaced(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after a copy from HDFS to an object store; and back."""
    plan = tmp_path / "plan"
    with monkeypatch.context() as renaming:
        renaming.setattr(LocalFiles, "renames_at_once", lambda *_: True)
        _write(spark, plan, {"t0": 1})
        assert _names(plan) == ["_kassign_spark", "topics"]
    with pytest.raises(OutputError, match="exists"):
        _write(spark, plan, {"t1": 1})
    seen: list[object] = []
    _write(
        spark,
        plan,
        {"t1": 1},
        overwrite=True,
        meanwhile=lambda: seen.append(_topics(spark, plan)),
    )
    assert seen == [{"t0": 1}]
    assert len(_names(plan)) == 2
    monkeypatch.setattr(LocalFiles, "renames_at_once", lambda *_: True)
    _write(spark, plan, {"t2": 1}, overwrite=True)
    assert _names(plan) == ["_kassign_spark", "topics"]


def test_where_only_an_ended_run_was_nothing_is_in_the_way(
    spark: SparkSession, tmp_path: Path
) -> None:
    plan = tmp_path / "plan"
    (plan / _ended_run() / "topics").mkdir(parents=True)
    _write(spark, plan, {"t0": 1})
    assert _topics(spark, plan) == {"t0": 1}
    assert len(_names(plan)) == 2


@pytest.mark.parametrize(
    ("extra", "shown"), [("notes.txt", r"notes.txt"), ("RUN/notes.txt", r"run-\S+/notes.txt")]
)
def test_what_somebody_added_is_not_overwritten(
    spark: SparkSession, tmp_path: Path, extra: str, shown: str
) -> None:
    plan = tmp_path / "plan"
    _write(spark, plan, {"t0": 1})
    (run,) = set(_names(plan)) - {CURRENT}
    precious = plan / extra.replace("RUN", run)
    precious.write_text("precious")
    with pytest.raises(OutputError, match=rf"did not write \({shown}\), so it is not overwritten"):
        _write(spark, plan, {"t1": 1}, overwrite=True)
    assert precious.read_text() == "precious"
    assert _topics(spark, plan) == {"t0": 1}


def test_the_marker_is_put_but_the_answer_lost(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the marker names is not removed, whatever came after."""

    def put_and_fail(*arguments: object, overwrite: bool) -> bool:
        name_run(*arguments, overwrite=overwrite)  # type: ignore[arg-type]
        raise KeyboardInterrupt

    plan = tmp_path / "plan"
    monkeypatch.setattr(output_folder, "name_run", put_and_fail)
    with pytest.raises(KeyboardInterrupt):
        _write(spark, plan, {"t0": 1})
    assert _topics(spark, plan) == {"t0": 1}


@pytest.mark.parametrize("text", ["", "{}", "[1]", '{"run": "../plan"}', '{"run": 7}', "run-1"])
def test_a_marker_that_is_none(text: str) -> None:
    with pytest.raises(InputError, match=r"^folder plan: its current.json names no run"):
        run_in([CURRENT, "topics"], lambda: text, "plan")


def test_a_marker_that_is_a_pipe_is_not_waited_for(spark: SparkSession, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / CURRENT)
    with pytest.raises(InputError, match=r"current\.json is not a regular file"):
        read_table(spark, str(tmp_path), TOPICS)
    with (
        pytest.raises(InputError, match=r"current\.json is not a regular file"),
        new_folder(spark, str(tmp_path), overwrite=True),
    ):
        raise AssertionError("it is refused before any work")


def test_folders_without_a_marker_are_as_they_are() -> None:
    run = run_name(new_owner())
    assert run_in([], str, "plan") is None
    assert run_in(["members.csv", "run-1"], str, "plan") is None
    assert run_in([CURRENT, run], lambda: json.dumps({"run": run}), "plan") == run


def test_which_file_systems_rename_at_once(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()
    files, path = locate(spark, str(tmp_path))
    assert files.renames_at_once(path)

    class _Azure:
        def __init__(self, hierarchical: bool) -> None:
            self._hierarchical = hierarchical

        def hasPathCapability(self, path: object, name: str) -> bool:  # noqa: N802
            assert name == "fs.capability.etags.preserved.in.rename"
            return self._hierarchical

    hadoop = HadoopFiles(spark, str(tmp_path))
    at_once = []
    for scheme in ("hdfs", "viewfs", "s3a", "gs", "abfs", "abfss", "something"):
        monkeypatch.setattr(hadoop, "_files", _Azure(scheme == "abfss"))
        if hadoop.renames_at_once(f"{scheme}://there/plan"):
            at_once.append(scheme)
    assert at_once == ["hdfs", "viewfs", "abfss"]
