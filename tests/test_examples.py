"""What the examples hold fits together; tests/docs runs what the documents show of them."""

import json
from pathlib import Path

import pytest

from kassign_spark.simulation.event_file import read_events

_ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize("name", ["events.yaml", "grow.yaml", "deploy.yaml"])
def test_events_of_the_example(name: str) -> None:
    asked = read_events(_ROOT / "examples" / name)
    folder = _ROOT / "examples" / "fleet"
    rows = [json.loads(line) for line in (folder / "members" / "members.json").open()]
    groups = {row["group_id"] for row in rows}
    assert {row["group_id"] for row in asked.rows if "group_id" in row} <= groups
    assert {each.group_id for each in asked.sweeps} <= groups
    known = {row.get(name) for row in rows for name in ("member_id", "group_instance_id")}
    named = {row["member_id"] for row in asked.rows if row["kind"] == "member_restarts"}
    assert named <= known
