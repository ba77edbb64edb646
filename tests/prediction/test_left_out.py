"""Groups that get nothing, and topics that are not there or hidden: plans say so."""

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from kassign_spark import cli, validate, violations, write_snapshot
from kassign_spark.tables.snapshots import Snapshot
from tests import builders


def _member(group: str, topics: list[str], assignor: str) -> dict[str, Any]:
    group_type = "consumer" if assignor == "uniform" else "classic"
    member = {"group_id": group, "member_id": "m", "topics": topics, "assignor": assignor}
    return {**member, "group_type": group_type, "generation": 3}


_ASSIGNORS = ("range", "sticky", "uniform")
_GROUPS = {
    "well": ["t"],
    "partly": ["t", "gone"],
    "nothing": ["gone"],
    "none": [],
    "hidden": ["t", "secret"],
}


@pytest.fixture(scope="module")
def tables(spark: SparkSession) -> Snapshot:
    members = [
        _member(f"{group}-{assignor}", topics, assignor)
        for group, topics in _GROUPS.items()
        for assignor in _ASSIGNORS
    ]
    owned = [
        {"group_id": f"hidden-{name}", "member_id": "m", "topic": "secret", "partition": p}
        for name in _ASSIGNORS
        for p in range(3)
    ]
    owned.append({"group_id": "well-range", "member_id": "m", "topic": "other", "partition": 0})
    topics = [{"topic": "t", "num_partitions": 2}]
    frames = builders.members(spark, members), builders.topics(spark, topics)
    return Snapshot(*frames, builders.owned(spark, owned))


@pytest.fixture(scope="module")
def snapshot(tables: Snapshot, tmp_path_factory: pytest.TempPathFactory) -> str:
    path = str(tmp_path_factory.mktemp("left") / "snapshot")
    write_snapshot(tables, path)
    return path


def test_predict(snapshot: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["predict", snapshot, "--json"]) == 1
    facts = json.loads(capsys.readouterr().out)
    details = {row["group_id"]: row["detail"] for row in facts["groups"]}
    assert (facts["ok_count"], facts["noted_count"], len(details)) == (15, 12, 12)
    for assignor in _ASSIGNORS:
        assert details[f"partly-{assignor}"].endswith("without partitions: gone")
        assert details[f"nothing-{assignor}"].startswith("the group gets nothing: left out")
        assert details[f"none-{assignor}"].endswith("no member subscribes to a topic")
        assert "members own 3 of their partitions" in details[f"hidden-{assignor}"]
    cli.main(["predict", snapshot])
    assert "of these 12 with something amiss" in capsys.readouterr().out


@pytest.mark.slow
def test_assign(snapshot: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["assign", snapshot, "--output", str(tmp_path / "plan"), "--overwrite"]
    assert cli.main([*command, "--json"]) == 1
    facts = json.loads(capsys.readouterr().out)
    assert facts["idle_group_count"] == 6
    rules = {(row["group_id"].split("-")[0], row["rule"]): row for row in facts["violations"]}
    assert set(rules) == {
        ("partly", "unknown_topic"),
        ("nothing", "unknown_topic"),
        ("hidden", "hidden_topic"),
    }
    assert "owns 3 of its partitions" in rules["hidden", "hidden_topic"]["detail"]
    assert facts["violation_count"] == 9
    assert cli.main(command) == 1
    text = capsys.readouterr().out
    assert "6 groups without anything" in text
    assert "no violations" not in text


@pytest.mark.parametrize("options", [[], pytest.param(["--exact"], marks=pytest.mark.slow)])
def test_rebalance(snapshot: str, capsys: pytest.CaptureFixture[str], options: list[str]) -> None:
    assert cli.main(["rebalance", snapshot, "--json", *options]) == 1
    facts = json.loads(capsys.readouterr().out)
    assert (facts["misled_count"], facts["hidden_count"]) == (0, 3)
    assert {(row["group_id"], row["topic"]) for row in facts["hidden"]} == {
        (f"hidden-{assignor}", "secret") for assignor in _ASSIGNORS
    }
    assert cli.main(["rebalance", snapshot, *options]) == 1
    assert "members own partitions of topics that the table" in capsys.readouterr().out


def test_the_functions(tables: Snapshot) -> None:
    """A violation is one of a rule of assignments: that a topic does not exist is none."""
    members, topics, owned = tables[:3]
    problems = validate(members, topics, owned).collect()
    details = {row.group_id: row.detail for row in problems if row.topic == "secret"}
    hidden = [row for row in problems if row.problem == "topic_without_metadata"]
    assert sum("who own 3 of its partitions" in row.detail for row in hidden) == 3
    assert set(details) == {"hidden-range", "hidden-sticky", "hidden-uniform"}
    nobody = owned.where("false")
    assert {row.rule for row in violations(nobody, members, topics).collect()} == {"unassigned"}
