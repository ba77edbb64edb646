"""What the README and the examples show is what happens."""

import json
import re
import runpy
from itertools import pairwise
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from kassign_spark import cli
from kassign_spark.simulation.event_file import read_events
from kassign_spark.simulation.events import KINDS

_ROOT = Path(__file__).parents[1]
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
_BLOCKS = _BLOCK.findall((_ROOT / "README.md").read_text())
_MOVED = """\
| billing|orders|        4|         C0|       C2| moved|
| billing|orders|        5|         C1|       C2| moved|
"""


def test_python_of_the_readme(spark: SparkSession, capsys: pytest.CaptureFixture[str]) -> None:
    """Each block prints the block of text after it."""
    pairs = list(pairwise(_BLOCKS))
    examples = [(code, text) for (kind, code), (_, text) in pairs if kind == "python"]
    assert len(examples) == sum(kind == "python" for kind, _ in _BLOCKS) > 0
    for code, text in examples:
        exec(compile(code, "README.md", "exec"), {})
        assert text in capsys.readouterr().out


def test_output_of_the_readme(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "plan"
    assert cli.main(["assign", str(_ROOT / "examples" / "fleet"), "--output", str(output)]) == 0
    printed = capsys.readouterr().out.replace(str(output), "build/plan").splitlines()
    shown = next(text for kind, text in _BLOCKS if kind == "text").splitlines()
    assert [line for line in shown if line != "..." and line not in printed] == []


def test_quickstart(spark: SparkSession, capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(_ROOT / "examples" / "quickstart.py"))
    by_range, by_stickiness = capsys.readouterr().out.split("sticky:\n")
    assert by_range.count("moved|") == 4
    assert by_stickiness.count("moved|") == 2
    assert _MOVED in by_stickiness


def test_events_of_the_example() -> None:
    asked = read_events(_ROOT / "examples" / "events.yaml")
    folder = _ROOT / "examples" / "fleet"
    rows = [json.loads(line) for line in (folder / "members" / "members.json").open()]
    groups = {row["group_id"] for row in rows}
    assert {row["group_id"] for row in asked.rows if "group_id" in row} <= groups
    assert {each.group_id for each in asked.sweeps} <= groups
    static = {row.get("group_instance_id") for row in rows}
    named = {row["member_id"] for row in asked.rows if row["kind"] == "member_restarts"}
    assert named <= static


def test_the_readme_lists_every_kind_of_event() -> None:
    text = (_ROOT / "README.md").read_text()
    assert [kind for kind in KINDS if f"`{kind}`" not in text] == []
