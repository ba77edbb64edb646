"""The schemas of ``--json`` themselves, and the exit codes as the documents have them."""

import json
import re
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from pyspark.sql.types import (
    ArrayType,
    DoubleType,
    IntegerType,
    StringType,
    StructField,
    StructType,
)

from kassign_spark import cli
from kassign_spark.commands import simulate_command
from kassign_spark.commands.common import Outcome
from kassign_spark.commands.documents import DIALECT, record
from kassign_spark.schemas import Table
from tests.json_schemas import check_document, parsers, schema_of

_DOCUMENT = Path(__file__).parents[1] / "docs" / "commands.md"
_GOOD: dict[str, Any] = {
    "snapshot": "fleet",
    "output": None,
    "problem_count": 1,
    "problems_not_shown": 0,
    "problems": [
        {
            "group_id": "g",
            "problem": "duplicate_member",
            "member_id": "m",
            "topic": None,
            "partition": None,
            "detail": "twice",
        }
    ],
}


def _objects(schema: Any) -> Iterator[dict[str, Any]]:
    if isinstance(schema, dict):
        if schema.get("type") == "object":
            yield schema
        for part in schema.values():
            yield from _objects(part)
    elif isinstance(schema, list):
        for part in schema:
            yield from _objects(part)


@pytest.mark.parametrize("command", parsers())
def test_a_schema_is_printed_and_lets_nothing_through(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without any other argument; each object says which keys it has, and all are typed."""
    with pytest.raises(SystemExit) as ended:
        cli.main([command, "--json-schema"])
    assert ended.value.code == 0
    schema = json.loads(capsys.readouterr().out)
    assert schema == schema_of(command)
    Draft202012Validator.check_schema(schema)
    assert (schema["$schema"], schema["title"]) == (DIALECT, f"kassign-spark {command} --json")
    objects = list(_objects(schema))
    assert objects
    assert [each for each in objects if each["additionalProperties"] is True] == []
    parts = [part for each in objects for part in each.get("properties", {}).values()]
    assert [part for part in parts if not {"type", "anyOf"} & set(part)] == []


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"extra": 1}, "Additional properties are not allowed"),
        ({"output": 3}, r"\$\.output"),
        ({"problem_count": None}, r"\$\.problem_count"),
        ({"problems_not_shown": -1}, "minimum"),
        ({"problems": [{**_GOOD["problems"][0], "rank": 1}]}, r"\$\.problems\[0\]"),
        ({"problems": [{"group_id": "g"}]}, "required"),
    ],
)
def test_what_does_not_fit_is_seen(change: dict[str, Any], error: str) -> None:
    check_document("validate", _GOOD)
    with pytest.raises(AssertionError, match=error):
        check_document("validate", _GOOD | change)


def test_a_missing_key_is_seen() -> None:
    with pytest.raises(AssertionError, match="'output' is a required property"):
        check_document("validate", {k: v for k, v in _GOOD.items() if k != "output"})


def test_a_number_that_json_has_not() -> None:
    with pytest.raises(ValueError, match="JSON compliant"):
        check_document("validate", _GOOD | {"problem_count": float("nan")})


def test_commands_of_the_tests_are_looked_at() -> None:
    """What ``conftest`` puts before the printing sees a wrong document, and a wrong exit code."""
    args = cli._parser().parse_args(["validate", "fleet", "--json"])
    assert json.loads(cli._format_outcome(args, Outcome(1, _GOOD, []))) == _GOOD
    with pytest.raises(AssertionError, match="Additional properties"):
        cli._format_outcome(args, Outcome(1, _GOOD | {"extra": 1}, []))
    facts = {"before": "a", "after": "b", "output": None, "groups": []} | {
        f"{name}_count": 0 for name in ("group", "changed_group", "kept", "moved", "new", "dropped")
    }
    args = cli._parser().parse_args(["diff", "a", "b"])
    with pytest.raises(AssertionError, match="diff"):
        cli._format_outcome(args, Outcome(1, facts | {"groups_not_shown": 0}, []))


def test_columns_of_a_table() -> None:
    columns = [
        StructField("cluster_id", StringType()),
        StructField("names", ArrayType(StringType()), nullable=False),
        StructField("moved_count", IntegerType(), nullable=False),
        StructField("load", DoubleType()),
    ]
    schema = record(Table("t", StructType(columns)), "more? boolean")
    assert schema["required"] == ["names", "moved_count", "load"]
    assert schema["properties"] == {
        "cluster_id": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        "names": {"type": "array", "items": {"type": "string"}},
        "moved_count": {"type": "integer", "minimum": 0},
        "load": {"anyOf": [{"type": "number"}, {"type": "null"}]},
        "more": {"type": "boolean"},
    }


@pytest.mark.parametrize("unsettled", [0, 1])
def test_the_exit_code_of_simulate(
    unsettled: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of the other commands with exit code 1 each has a test on a fleet of its own."""
    facts = {"snapshot": "fleet", "events_file": "e", "output": None, "event_count": 0}
    facts |= {
        "rebalance_count": 0,
        "moved_count": 0,
        "unsettled_count": unsettled,
        "misled_count": 0,
    }
    monkeypatch.setattr(simulate_command, "read_events", lambda file: None)
    monkeypatch.setattr(simulate_command, "session_reading", lambda *_: nullcontext())
    monkeypatch.setattr(simulate_command, "read_snapshot", lambda *_: None)
    monkeypatch.setattr(simulate_command, "_simulate", lambda *_: facts)
    assert cli.main(["simulate", "fleet", "--events", "e", "--json"]) == unsettled
    assert json.loads(capsys.readouterr().out) == facts


def test_exit_codes_are_in_the_documents() -> None:
    """In one table, which says of each command what its help says."""
    table = re.findall(r"^\| (\d+) \| (.+?) \| (.+?) \|$", _DOCUMENT.read_text(), re.MULTILINE)
    conditions = {of.strip("`"): when for code, of, when in table if code == "1"}
    result = {}
    for command, parser in parsers().items():
        text = " ".join(str(parser.description).split())
        (finds,) = re.findall(r"Exits 0 when done,(?: 1 when (.+),)? 2 on an error\.$", text)
        result |= {command: finds} if finds else {}
    assert conditions == result
    assert [code for code, of, _ in table if of == "every command"] == ["0", "2", "130", "143"]
