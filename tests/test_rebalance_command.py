"""``kassign-spark rebalance`` through ``cli.main``."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from chispa import assert_df_equality
from pyspark.sql import SparkSession

from kassign_spark import cli, rebalance, write_snapshot
from kassign_spark.tables.snapshots import Snapshot
from tests.kafka.failing_groups import failing_group
from tests.kafka.oracle import Group, Member, to_tables

_JOINS = [Member("c1", ["t"], [("t", 0), ("t", 1)], 4), Member("c2", ["t"])]
_GROUPS = [Group({"t": 2}, _JOINS, "cooperative-sticky"), Group({"t": 2}, _JOINS, "range")]


@pytest.fixture(scope="module")
def snapshot(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    path = str(tmp_path_factory.mktemp("rebalance") / "snapshot")
    write_snapshot(Snapshot(*to_tables(spark, _GROUPS)), path)
    return path


def test_rounds_for_programs(
    spark: SparkSession, snapshot: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = str(tmp_path / "rounds")
    assert cli.main(["rebalance", snapshot, "--output", output, "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert (facts["group_count"], facts["moved_count"], facts["paused_count"]) == (2, 2, 3)
    assert (facts["max_rounds"], facts["unsettled_count"]) == (2, 0)
    eager, cooperative = facts["groups"]
    assert (eager["group_id"], eager["rounds"], eager["paused_count"]) == ("g1", 1, 2)
    assert cooperative["by_round"] == [
        {"round": 1, "retained": 1, "revoked": 1, "assigned": 0, "withheld": 1},
        {"round": 2, "retained": 1, "revoked": 0, "assigned": 1, "withheld": 0},
    ]
    for table, count in (("steps", 9), ("listener", 8), ("summary", 2)):
        assert spark.read.parquet(f"{output}/{table}").count() == count, table


def test_rounds_for_people(
    snapshot: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["--assignor", "cooperative-sticky", "--show", "1", "--format", "csv"]
    output = str(tmp_path / "rounds")
    assert cli.main(["rebalance", snapshot, "--output", output, *options]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "2 groups, 4 partitions, 2 moved, 2 paused, at most 2 rounds"
    assert "1 more group, less disturbed, not shown (--show 2 shows all)" in lines
    assert "  ... 1 more round" in lines
    assert lines[3].split() == ["c0/g0", "2", "2", "1", "1", "ok"]


def test_refusals(snapshot: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = str(tmp_path / "rounds")
    command = ["rebalance", snapshot, "--output", output]
    assert cli.main([*command, "--assignor", "range", "--protocol", "cooperative"]) == 2
    errors = capsys.readouterr().err
    assert "'range' does not know the cooperative protocol" in errors
    assert not Path(output).exists()


@pytest.mark.slow
def test_groups_that_never_settle_or_throw(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    throwing = replace(failing_group("null-pointer"), assignor="sticky")
    tables = to_tables(spark, [*_GROUPS, failing_group("never-settles"), throwing])
    snapshot, output = str(tmp_path / "snapshot"), str(tmp_path / "rounds")
    write_snapshot(Snapshot(*tables), snapshot)
    command = ["rebalance", snapshot, "--exact", "--output", output]
    assert cli.main([*command, "--json"]) == 1
    facts = json.loads(capsys.readouterr().out)
    assert facts["is_exact"]
    assert [facts[f"{kind}_count"] for kind in ("group", "unsettled", "failing", "inexact")] == [
        4, 1, 1, 0,
    ]  # fmt: skip
    assert [(row["group_id"], row["verdict"]) for row in facts["groups"]] == [
        ("g3", "throws"),
        ("g2", "never_settles"),
        ("g1", "ok"),
        ("g0", "ok"),
    ]
    expected = rebalance(*tables, exact=True)
    for name, frame in zip(("steps", "verdicts"), expected, strict=True):
        assert_df_equality(
            spark.read.parquet(f"{output}/{name}"),
            frame,
            ignore_row_order=True,
            ignore_nullable=True,
        )
    listener = spark.read.parquet(f"{output}/listener")
    assert {row.group_id for row in listener.select("group_id").distinct().collect()} == {
        "g0", "g1", "g2",
    }  # fmt: skip
    assert cli.main([*command, "--overwrite", "--show", "2"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].endswith("1 group never settling, 1 group without an answer")
    assert "  never_settles: after round 3 all own what they owned after round 1" in lines
    assert lines[-1] == f"the rounds are in {output}: steps, listener, summary, verdicts"


def test_exact_rounds_that_end_well(
    snapshot: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["rebalance", snapshot, "--exact", "--output", str(tmp_path / "rounds"), "--json"]
    assert cli.main(command) == 0
    facts = json.loads(capsys.readouterr().out)
    assert {row["verdict"] for row in facts["groups"]} == {"ok"}
    assert [row["rounds"] for row in facts["groups"]] == [1, 2]
