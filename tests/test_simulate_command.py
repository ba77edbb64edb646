"""``kassign-spark simulate`` through ``cli.main``."""

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from kassign_spark import cli
from tests.small_fleet import write_small_fleet

_EVENTS = """\
events:
  - {kind: member_joins, group_id: mail, member_id: mail-c}
  - {kind: member_crashes, group_id: billing, member_id: billing-a, session_timeout_ms: 6000}
  - {kind: topic_grows, topic: payments, num_partitions: 4}
sweeps:
  - {members: -2..+1, group_id: mail}
"""


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    folder = tmp_path_factory.mktemp("simulate")
    events = folder / "events.yaml"
    events.write_text(_EVENTS)
    return str(write_small_fleet(folder / "fleet")), str(events)


def test_events_and_sweeps(
    spark: SparkSession,
    files: tuple[str, str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    fleet, events = files
    output = tmp_path / "out"
    command = ["simulate", fleet, "--events", events, "--output", str(output), "--format", "json"]
    assert cli.main([*command, "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    by_event = {(row["event"], row["group_id"]): row for row in facts["events"]}
    assert sorted(by_event) == [
        (1, "mail"),
        (2, "billing"),
        (3, "billing"),
        (3, "mail"),
        (3, "search"),
    ]
    assert (facts["event_count"], facts["rebalance_count"]) == (3, 4)
    joins = by_event[1, "mail"]
    assert (joins["rounds"], joins["moved_count"], joins["paused_count"]) == (2, 3, 3)
    assert joins["partition_count"] == 5
    crashes = by_event[2, "billing"]
    assert (crashes["noticed_within_ms"], crashes["stopped_count"]) == (6000, 0)
    assert by_event[3, "mail"]["reason"] == "no member subscribes to topic payments"
    variants = [(r["variant"], r["member_count"], r["max_assigned"]) for r in facts["sweep"]]
    assert variants == [
        ("members -2", 0, None),
        ("members -1", 1, 5),
        ("members +0", 2, 3),
        ("members +1", 3, 2),
    ]
    written = {name: spark.read.json(str(output / name)) for name in ("events", "sweep", "steps")}
    assert (written["events"].count(), written["sweep"].count()) == (5, 4)


def test_bad_events_end_with_one_line(
    spark: SparkSession,
    files: tuple[str, str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    events = tmp_path / "events.jsonl"
    events.write_text('\n{"kind": "member_leaves", "group_id": "mail", "member_id": "x"}\n')
    output = tmp_path / "out"
    command = ["simulate", files[0], "--events", str(events), "--output", str(output)]
    assert cli.main(command) == 2
    assert capsys.readouterr().err.splitlines()[-1] == (
        'kassign-spark: error: line 2: event 1 (member_leaves): group "mail" has no member "x"'
    )
    assert not output.exists()


@pytest.mark.parametrize(("members", "verdict"), [(2, "throws"), (3, "ok")])
def test_claims_that_mislead_the_client(
    spark: SparkSession,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    members: int,
    verdict: str,
) -> None:
    """It throws, or is ok but gives a member what does not exist: neither is well."""
    (tmp_path / "topics.csv").write_text("topic,num_partitions\norders,6\n")
    ids = [f"c{i}" for i in range(members)]
    rows = "".join(f"g,{member},orders,sticky\n" for member in ids)
    (tmp_path / "members.csv").write_text(f"group_id,member_id,topics,assignor\n{rows}")
    rows = "".join(f"g,c{p // 3},orders,{p}\n" for p in range(6))
    (tmp_path / "owned.csv").write_text(f"group_id,member_id,topic,partition\n{rows}")
    events = tmp_path / "events.jsonl"
    events.write_text('{"kind":"topic_is_recreated","topic":"orders","num_partitions":3}\n')
    assert cli.main(["simulate", str(tmp_path), "--events", str(events), "--json"]) == 1
    facts = json.loads(capsys.readouterr().out)
    assert facts["misled_count"] == 1
    assert [row["verdict"] for row in facts["events"]] == [verdict]
