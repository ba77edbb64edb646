"""Folders that only a server of Spark Connect sees, by Spark alone; here of this session's."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from kassign_spark.errors import InputError, OutputError
from kassign_spark.schemas import TOPICS
from kassign_spark.tables import folder_reading, origin, output_folder
from kassign_spark.tables.files import read_small
from kassign_spark.tables.folder_runs import CURRENT
from kassign_spark.tables.origin import note_snapshot, noted_snapshot
from kassign_spark.tables.output_folder import check_new_folder, new_folder
from kassign_spark.tables.server_files import ServerFiles
from kassign_spark.tables.snapshots import read_table, write_table
from tests import builders


@pytest.fixture
def only_there(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    def locate(session: SparkSession, path: str) -> tuple[ServerFiles, str]:
        return ServerFiles(session), path.rstrip("/")

    for module in (folder_reading, origin, output_folder):
        monkeypatch.setattr(module, "locate", locate)


def _write(
    spark: SparkSession, folder: Path, topics: dict[str, int], *, broken: bool = False
) -> None:
    with new_folder(spark, str(folder)) as writing:
        note_snapshot(spark, writing, "/snapshots/today")
        write_table(builders.topics(spark, topics), writing, "topics")
        if broken:
            raise ValueError("broken")


def test_small_files_and_folders(spark: SparkSession, tmp_path: Path) -> None:
    files, folder = ServerFiles(spark), str(tmp_path)
    (tmp_path / "table").mkdir()
    (tmp_path / "table" / "a[1].csv").write_text("x,y")
    (tmp_path / "notes.txt").write_text("two\nlines")
    (tmp_path / "_hidden").write_text("3")
    entries = files.entries(folder)
    assert {name: (entry.is_folder, entry.size) for name, entry in entries.items()} == {
        "table": (True, 0),
        "notes.txt": (False, 9),
    }
    (inner,) = files.entries(entries["table"].path)
    assert inner == "a[1].csv"
    assert read_small(files, f"{folder}/notes.txt") == b"two\nlines"
    assert read_small(files, f"{folder}/table/a[1].csv") == b"x,y"
    assert read_small(files, f"{folder}/none") is None
    assert files.is_file(f"{folder}/notes.txt")
    assert not files.is_file(folder)
    assert not files.exists(f"{folder}/none")
    assert files.entries(f"{folder}/none") == {}
    files.write_new(f"{folder}/_mark", '{"a": 1}')
    assert (read_small(files, f"{folder}/_mark") or b"").strip() == b'{"a": 1}'


@pytest.mark.usefixtures("only_there")
def test_a_folder_appears_whole_and_is_not_replaced(spark: SparkSession, tmp_path: Path) -> None:
    plan = tmp_path / "plan"
    with pytest.raises(ValueError, match="broken"):
        _write(spark, plan, {"t0": 1}, broken=True)
    with pytest.raises(InputError, match="is being written, or the writing of it was cut short"):
        read_table(spark, str(plan), TOPICS)
    _write(spark, plan, {"t0": 2})
    assert (plan / CURRENT).is_dir()
    (row,) = read_table(spark, str(plan), TOPICS).collect()
    assert (row.topic, row.num_partitions) == ("t0", 2)
    assert noted_snapshot(spark, str(plan), "topics") == "/snapshots/today"
    for overwrite in (False, True):
        with pytest.raises(OutputError, match="exists, and Spark Connect cannot remove"):
            check_new_folder(spark, str(plan), overwrite=overwrite)
    with pytest.raises(InputError, match=r"folder .*/nowhere: not found"):
        read_table(spark, str(tmp_path / "nowhere"), TOPICS)


def test_other_sessions_read_it(spark: SparkSession, tmp_path: Path) -> None:
    plan = tmp_path / "plan"
    with pytest.MonkeyPatch.context() as there:
        there.setattr(output_folder, "locate", lambda session, path: (ServerFiles(session), path))
        with new_folder(spark, str(plan)) as writing:
            write_table(builders.topics(spark, {"t0": 3}), writing, "topics")
    (row,) = read_table(spark, str(plan), TOPICS).collect()
    assert row.num_partitions == 3
    with pytest.raises(OutputError, match="so it is not overwritten"):
        check_new_folder(spark, str(plan), overwrite=True)
