"""A log of which a part cannot be read: how much, of whom, and which holes it made."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from kassign_spark import cli
from kassign_spark.history.rebalances import rebalances
from tests.history.example_log import table
from tests.quick_frames import takes_arrow

Captured = pytest.CaptureFixture[str]
_TOPICS = "topic,num_partitions\norders,6\npayments,4\ncatalogue,4\n"


def _is_generation(row: Mapping[str, Any]) -> bool:
    return row["key"][:2] == b"\0\2" and row["value"] is not None


def _group(row: Mapping[str, Any]) -> str:
    return str(row["key"][4:].decode())


@pytest.fixture(scope="module")
def rows() -> list[dict[str, Any]]:
    return table().to_pylist()


def _write(rows: list[dict[str, Any]], folder: Path) -> Path:
    (folder / "records").mkdir(parents=True)
    pq.write_table(pa.Table.from_pylist(rows, table().schema), folder / "records" / "r.parquet")
    (folder / "topics.csv").write_text(_TOPICS)
    return folder


def _json(capsys: Captured, *arguments: str | Path, code: int) -> dict[str, Any]:
    assert cli.main([*map(str, arguments), "--json"]) == code
    facts: dict[str, Any] = json.loads(capsys.readouterr().out)
    return facts


@pytest.fixture(scope="module")
def damaged(
    rows: list[dict[str, Any]], tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, int]:
    """A third of the values cut, and one key."""
    cut = 0
    broken = []
    for number, row in enumerate(rows):
        if row["value"] is not None and number % 3 == 1:
            row, cut = row | {"value": row["value"][:-3]}, cut + 1
        broken.append(row)
    broken.append(rows[0] | {"key": b"\0", "offset": 10**6})
    return _write(broken, tmp_path_factory.mktemp("damaged")), cut + 1


@pytest.mark.slow
def test_history_counts_what_it_cannot_read(
    spark: SparkSession, damaged: tuple[Path, int], tmp_path: Path, capsys: Captured
) -> None:
    folder, cut = damaged
    output = tmp_path / "out"
    facts = _json(capsys, "history", "--log", folder, "--explain", "--output", output, code=1)
    assert facts["unread_count"] == cut == sum(row["count"] for row in facts["unread"])
    assert {row["group_id"] for row in facts["unread"]} > {"billing", None}
    assert {row["kind"] for row in facts["unread"]} > {"GroupMetadata", "OffsetCommit"}
    assert facts["unread_not_shown"] == 0
    generations = spark.read.parquet(str(output / "rebalances"))
    assert "unread_count" not in generations.columns
    reasons = [row.reason for row in generations.collect()]
    assert "damaged" in reasons
    assert "gap" not in reasons
    quiet = ("--at-least", "1000", "--group", "billing", "--show", "1")
    facts = _json(capsys, "history", "--log", folder, *quiet, code=1)
    assert 0 < facts["unread_count"] < cut
    assert (len(facts["unread"]), facts["storm_count"]) == (1, 0)
    assert cli.main(["history", "--log", str(folder), "--since", "2030-01-01"]) == 1
    printed = capsys.readouterr().out
    assert (
        f"\n{cut} records of the log cannot be read: their groups are reported in part" in printed
    )
    assert "(its key cannot be read)" in printed


@takes_arrow
def test_a_hole_of_damage_is_not_one_of_compaction(
    spark: SparkSession, rows: list[dict[str, Any]]
) -> None:
    mine = [i for i, row in enumerate(rows) if _is_generation(row) and _group(row) == "billing"]
    broken = dict(enumerate(rows))
    for i in mine[2], mine[3]:
        broken[i] = rows[i] | {"value": rows[i]["value"][:20]}
    del broken[mine[6]]
    frame = spark.createDataFrame(pa.Table.from_pylist([*broken.values()], table().schema))
    generations = rebalances(frame).where("group_id = 'billing'").orderBy("offset").collect()
    holes = [
        (row.reason, row.reason_detail.split("; ")) for row in generations if row.reason in _HOLES
    ]
    assert [reason for reason, _ in holes] == ["damaged", "gap"]
    assert holes[0][1][-1] == "2 records before it cannot be read"
    assert holes[0][1][0].endswith("are not in the log")
    assert not [part for part in holes[1][1] if "cannot be read" in part]


_HOLES = ("gap", "damaged")


def test_a_healthy_log_has_nothing_unread(
    spark: SparkSession, rows: list[dict[str, Any]], tmp_path: Path, capsys: Captured
) -> None:
    folder = _write(rows, tmp_path / "log")
    facts = _json(capsys, "history", "--log", folder, "--at-least", "1000", code=0)
    assert (facts["unread_count"], facts["unread"]) == (0, [])


def test_a_group_whose_newest_record_is_damaged_is_left_out(
    spark: SparkSession, rows: list[dict[str, Any]], tmp_path: Path, capsys: Captured
) -> None:
    newest = {_group(row): i for i, row in enumerate(rows) if _is_generation(row)}
    broken = list(rows)
    older = next(i for i, row in enumerate(rows) if _is_generation(row) and _group(row) == "search")
    for i in newest["billing"], older:
        broken[i] = rows[i] | {"value": rows[i]["value"][:20]}
    broken.append(rows[0] | {"key": b"\x7f\x7f\0", "offset": 10**6})
    folder = _write(broken, tmp_path / "log")
    snapshot = ("snapshot", "--from-log", folder, "--topics", folder, "--output")
    facts = _json(capsys, *snapshot, tmp_path / "out", code=1)
    assert {"kind": "group", "name": "billing", "reason": "its newest record cannot be read"} in (
        facts["omitted"]
    )
    assert [(row["group_id"], row["kind"], row["count"]) for row in facts["unread"]] == [
        (None, "unknown", 1), ("billing", "GroupMetadata", 1),
    ]  # fmt: skip
    healthy = _json(
        capsys, "snapshot", "--from-log", _write(rows, tmp_path / "fine"), "--topics", folder,
        "--output", tmp_path / "other", code=0,
    )  # fmt: skip
    assert facts["group_count"] == healthy["group_count"] - 1
    assert healthy["unread_count"] == 0


def test_following_says_it_too(
    spark: SparkSession, damaged: tuple[Path, int], tmp_path: Path, capsys: Captured
) -> None:
    folder, cut = damaged
    follow = ("history", "--log", folder, "--follow", "--available-now", "--output")
    facts = _json(capsys, *follow, tmp_path / "out", code=1)
    assert facts["unread_count"] == cut
