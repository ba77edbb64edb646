"""``kassign-spark predict``, ``explain`` and ``compare`` through ``cli.main``."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from kassign_spark import cli, write_snapshot
from kassign_spark.tables.snapshots import Snapshot
from tests.kafka.failing_groups import failing_group
from tests.kafka.oracle import Group, Member, to_tables

_OWN = [Member("c1", ["t"], [("t", 0), ("t", 1)], 4), Member("c2", ["t"], [("t", 2)], 4)]
_ODD = [Member("c1", ["t"], [("t", 0), ("t", 1)], 4), Member("c2", ["t"])]
_GROUPS = [
    Group({"t": 3}, _OWN, "range"),
    Group({"t": 3}, _ODD, "cooperative-sticky"),
    replace(failing_group("null-pointer"), assignor="sticky"),
    failing_group("never-ends"),
]


@pytest.fixture(scope="module")
def fleet(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("predict")
    for name, groups in (("all", _GROUPS), ("well", _GROUPS[:2]), ("settled", _GROUPS[:1])):
        write_snapshot(Snapshot(*to_tables(spark, groups)), str(folder / name))
    return folder


def run(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> tuple[int, Any]:
    """The exit code and the facts."""
    code = cli.main([*map(str, arguments), "--json"])
    return code, json.loads(capsys.readouterr().out)


def lines(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> list[str]:
    cli.main([*map(str, arguments)])
    return capsys.readouterr().out.splitlines()


def test_predict(
    spark: SparkSession, fleet: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "predicted"
    code, facts = run(capsys, "predict", fleet / "all", "--output", output)
    assert code == 1
    assert [facts[f"{v}_count"] for v in ("group", "ok", "throws", "never_ends")] == [4, 2, 1, 1]
    assert [(row["group_id"], row["verdict"]) for row in facts["groups"]] == [
        ("g3", "never_ends"),
        ("g2", "throws"),
    ]
    assert spark.read.parquet(str(output / "verdicts")).count() == 4
    assignment = spark.read.parquet(str(output / "assignment"))
    assert {row.group_id for row in assignment.collect()} == {"g0", "g1"}
    output_lines = lines(capsys, "predict", fleet / "all", "--show", "1")
    assert output_lines[0] == (
        "4 groups: 2 answered exactly, 0 maybe otherwise, 1 throwing, 1 never ending"
    )
    assert output_lines[-1] == "1 more group not shown (--show 2 shows all)"
    code, facts = run(capsys, "predict", fleet / "well", "--assignor", "sticky")
    assert (code, facts["ok_count"], facts["groups"]) == (0, 2, [])


def test_explain(
    spark: SparkSession, fleet: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, facts = run(capsys, "explain", fleet / "well")
    assert (code, facts["explained_count"], facts["groups_not_shown"]) == (1, 1, 0)
    unexplained, settled = facts["groups"]
    assert (unexplained["group_id"], unexplained["assignor"]) == ("g1", None)
    assert settled["assignor"] == "range"
    output = lines(capsys, "explain", fleet / "well")
    assert output[0] == "2 groups: 1 explained (1 range), 1 not"
    assert cli.main(["explain", str(fleet / "settled"), "--json"]) == 0
    capsys.readouterr()
    # What predict says will be, explain says has been.
    planned, copied = tmp_path / "planned", tmp_path / "found"
    cli.main(["predict", str(fleet / "well"), "--output", str(planned)])
    capsys.readouterr()
    code, facts = run(capsys, "explain", fleet / "well", planned, "--output", copied)
    assert (code, facts["explained_count"]) == (0, 2)
    assert spark.read.parquet(str(copied / "explained")).count() == 2


def test_explain_asks_the_own_assignor(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "topics.csv").write_text("topic,num_partitions\nt,3\nu,3\n")
    members = "group_id,member_id,topics,assignor\ng,a,t;u,range\ng,b,t;u,range\n"
    (tmp_path / "members.csv").write_text(members)
    owned = "".join(f"g,{m},{t},{p}\n" for m, t in ("at", "bu") for p in range(3))
    (tmp_path / "owned.csv").write_text(f"group_id,member_id,topic,partition\n{owned}")
    assert cli.main(["explain", str(tmp_path)]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == [
        "1 group: 1 explained (1 sticky), 0 not",
        "1 by another than their own assignor",
    ]
    assert "its own assignor range differs in 3 partitions" in lines[-1]


def test_explain_names_the_coordinators_assignors(
    spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["validate", "examples/both-protocols"]) == 0
    assert "uniform" not in capsys.readouterr().out
    cli.main(["explain", "examples/both-protocols", "--show", "100", "--json"])
    members = spark.read.json("examples/both-protocols/members")
    theirs = members.where("group_type = 'consumer'").select("group_id").distinct().collect()
    groups = {row["group_id"]: row for row in json.loads(capsys.readouterr().out)["groups"]}
    assert len(theirs) > 1
    for (name,) in theirs:
        row = groups[name]
        assert row["own_assignor"] in ("uniform", "range")
        assert row["assignor"] in ("uniform", "range"), row


@pytest.mark.parametrize(
    ("command", "says"),
    [
        (["validate"], "all well"),
        (["assign"], "(uniform)"),
        (["rebalance"], "payments-ledger"),
        (["predict"], "7 answered exactly"),
        (["explain"], "payments-ledger    uniform"),
        (["compare"], "uniform             consumer"),
        (["advise"], "3 groups of the new protocol left out"),
        (["migrate"], "3 groups of that protocol already"),
        (["graph"], "7 groups"),
        (["coordinators"], "payments-ledger"),
        (["touched-by", "payments.captured"], ""),
        (["simulate", "--events"], "payments-ledger"),
    ],
    ids=lambda of: of[0] if isinstance(of, list) else "",
)
def test_every_command_knows_groups_of_the_new_protocol(
    spark: SparkSession,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    command: list[str],
    says: str,
) -> None:
    name, *more = command
    if name == "simulate":
        events = tmp_path / "events.jsonl"
        events.write_text('{"kind":"member_joins","group_id":"payments-ledger","member_id":"m"}\n')
        more.append(str(events))
    fleet = "examples/both-protocols"
    assert cli.main([name, fleet, *more]) in (0, 1)
    output = capsys.readouterr()
    assert says in output.out
    assert "unknown" not in output.out


def test_explain_needs_something_to_explain(
    fleet: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "members.csv").write_text("group_id,member_id,topics\ng,m,t\n")
    (tmp_path / "topics.csv").write_text("topic,num_partitions\nt,1\n")
    assert cli.main(["explain", str(tmp_path)]) == 2
    assert "has no table owned, so nothing is observed" in capsys.readouterr().err


def test_compare(
    spark: SparkSession, fleet: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "compared"
    code, facts = run(
        capsys, "compare", fleet / "all", "--exact", "--show", "1", "--output", output
    )
    assert (code, facts["group_count"], facts["groups_not_shown"]) == (0, 4, 3)
    totals = {(row["assignor"], row["protocol"]): row for row in facts["assignors"]}
    assert len(totals) == 7
    assert totals["uniform", "consumer"]["failing_count"] == 0
    assert totals["sticky", "eager"]["failing_count"] == 2
    assert totals["range", "eager"]["failing_count"] == 0
    assert len(facts["groups"][0]["by_assignor"]) == 7
    assert spark.read.parquet(str(output / "comparison")).count() == 4 * 7
    output_lines = lines(capsys, "compare", fleet / "settled")
    assert output_lines[0] == "1 group"
    rows = (line.split() for line in output_lines)
    (row,) = (row for row in rows if row[:2] == ["range", "eager"] and "ok" in row)
    assert row == ["range", "eager", "0", "0", "3", "1", "1", "1", "0", "5", "5", "ok"]
