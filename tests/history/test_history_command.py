"""``kassign-spark history`` on the example log: what it prints, writes and refuses."""

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from kassign_spark import cli
from kassign_spark.history.explained_generations import AS_ASSIGNED
from tests.history.example_log import FOLDER, table

Captured = pytest.CaptureFixture[str]


def _json(capsys: Captured, *arguments: str | Path, code: int) -> dict[str, Any]:
    assert cli.main(["history", "--log", str(FOLDER), "--json", *map(str, arguments)]) == code
    result: dict[str, Any] = json.loads(capsys.readouterr().out)
    return result


def test_the_example_is_what_its_maker_makes() -> None:
    assert pq.read_table(FOLDER / "records" / "records.parquet").equals(table())


def test_the_worst_comes_first(spark: SparkSession, tmp_path: Path, capsys: Captured) -> None:
    facts = _json(capsys, "--output", tmp_path / "out", code=1)
    assert [(row["group_id"], row["hour"], row["rebalances"]) for row in facts["hours"]] == [
        ("billing", "2026-11-22T03:00:00Z", 10),
        ("search", "2026-11-22T04:00:00Z", 3),
        ("audit", "2026-11-22T03:00:00Z", 1),
    ]
    (storm,) = facts["storms"]
    assert (storm["cause"], storm["client_id"], storm["saved_by_static"]) == (
        "restarts", "billing-3", 6,
    )  # fmt: skip
    generations = spark.read.parquet(str(tmp_path / "out" / "rebalances"))
    audit = generations.where("group_id = 'audit' AND generation = 5").collect()[0]
    assert (audit.reason, audit.static_restarts) == ("member_crashed", 2)
    assert spark.read.parquet(str(tmp_path / "out" / "storms")).count() == 1


def test_one_group_since_a_time(spark: SparkSession, capsys: Captured) -> None:
    facts = _json(capsys, "--group", "search", "--since", "2026-11-22T04:05", code=0)
    assert (facts["group_count"], facts["rebalance_count"]) == (1, 3)
    facts = _json(capsys, "--since", "2026-11-22T05:00+01:00", "--show", "0", code=0)
    assert (facts["rebalance_count"], facts["hours_not_shown"]) == (3, 1)


@pytest.mark.slow
def test_which_generations_are_not_what_their_assignor_gives(
    spark: SparkSession, tmp_path: Path, capsys: Captured
) -> None:
    facts = _json(capsys, "--explain", "--show", "1", "--output", tmp_path / "out", code=1)
    explained = facts["explained"]
    rows = spark.read.parquet(str(tmp_path / "out" / "explained"))
    others = rows.where("NOT is_explained")
    assert explained["generation_count"] == rows.count()
    assert explained["not_explained_count"] == others.count() > 0
    assert explained["groups"][0]["group_id"] == "billing"
    assert explained["groups_not_shown"] == others.select("group_id").distinct().count() - 1
    facts = _json(capsys, "--explain", "--since", "2026-11-23", code=0)
    assert facts["explained"]["generation_count"] == 0


def test_topics_say_how_many_partitions_there_were(
    spark: SparkSession, tmp_path: Path, capsys: Captured
) -> None:
    sizes = {"orders": 6, "payments": 4, "catalogue": 4}
    lines = ["topic,num_partitions", *(f"{topic},{size}" for topic, size in sizes.items())]
    cluster = tmp_path / "cluster"
    cluster.mkdir()
    (cluster / "topics.csv").write_text("\n".join(lines))
    outputs = {"own": (), "given": ("--topics", cluster)}
    for name, options in outputs.items():
        _json(capsys, "--explain", *options, "--output", tmp_path / name, code=1)
    own, values = (
        {
            (row.group_id, row.generation): AS_ASSIGNED in (row.detail or "")
            for row in spark.read.parquet(str(tmp_path / name / "explained")).collect()
        }
        for name in outputs
    )
    assert own.keys() == values.keys()
    assert set(own.values()) == {True}
    # Of a topic that had two partitions when it was read first.
    assert [place for place, as_assigned in values.items() if as_assigned] == [("search", 1)]


def test_what_is_refused_is_one_line(spark: SparkSession, tmp_path: Path, capsys: Captured) -> None:
    (tmp_path / "mine").touch()
    for arguments, message in (
        (["--group", "bilings"], "unknown group 'bilings'; the nearest are billing"),
        (["--within", "ten"], "within 'ten' is not a length of time"),
        (["--follow"], "--follow needs --output"),
        (["--follow", "--explain", "--output", "x"], "it does not go with --follow"),
        (["--available-now"], "--available-now goes with --follow"),
        (["--topics", "x"], "--topics goes with --explain"),
        (["--explain", "--topics", str(tmp_path)], "table topics: not found in"),
        (["--follow", "--output", str(tmp_path)], "is not a folder of history --follow"),
    ):
        assert cli.main(["history", "--log", str(FOLDER), *arguments]) == 2
        assert message in capsys.readouterr().err


def test_it_follows_and_goes_on(spark: SparkSession, tmp_path: Path, capsys: Captured) -> None:
    records = tmp_path / "log" / "records"
    records.mkdir(parents=True)
    whole = table()
    arguments = ["history", "--log", str(tmp_path / "log"), "--follow", "--available-now"]
    arguments += ["--output", str(tmp_path / "out")]
    lines: list[str] = []
    for part, (begin, count) in enumerate([(0, 100), (100, 10_000)]):
        pq.write_table(whole.slice(begin, count), records / f"{part}.parquet")
        assert cli.main(arguments) == 0
        lines += capsys.readouterr().out.splitlines()[:-1]
    assert cli.main(arguments) == 0
    assert capsys.readouterr().out.startswith("0 rebalances more")
    rows = spark.read.parquet(str(tmp_path / "out" / "rebalances"))
    assert len(lines) == rows.count() == rows.dropDuplicates(["group_id", "offset"]).count()
    assert (
        "2026-11-22 04:05:01 search generation 2: a topic got more partitions, or came to be: "
        "grown: catalogue"
    ) in lines
