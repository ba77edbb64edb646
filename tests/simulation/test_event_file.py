"""Files of events, as a person writes them: what is read, and what is refused with its line."""

from pathlib import Path

import pytest

from kassign_spark.errors import InputError
from kassign_spark.simulation.event_file import EventFile, read_events
from kassign_spark.simulation.questions import Growth, parse_sweep
from kassign_spark.simulation.timeouts import Timeouts

_YAML = """\
# a deploy
timeouts: {session_timeout_ms: 10000}
events:
  - kind: member_restarts
    group_id: billing
    member_id: C1
    downtime_ms: 20_000
  - {kind: topic_grows, topic: orders, num_partitions: 12}

  - {kind: subscription_changes, group_id: billing, topics: [orders, payments]}
sweeps:
  - members: -3..+3
  - {members: 1, partitions: x2, group_id: billing}
"""
_JSON = """\
{"timeouts": {"session_timeout_ms": 10000}}
{"kind": "member_restarts", "group_id": "billing", "member_id": "C1", "downtime_ms": 20000}

{"kind": "topic_grows", "topic": "orders", "num_partitions": 12}
{"kind": "subscription_changes", "group_id": "billing", "topics": ["orders", "payments"]}
{"sweep": {"members": "-3..+3"}}
{"sweep": {"members": 1, "partitions": "x2", "group_id": "billing"}}
"""


def _read(tmp_path: Path, name: str, text: str) -> EventFile:
    path = tmp_path / name
    path.write_text(text)
    return read_events(path)


def test_both_forms_say_the_same(tmp_path: Path) -> None:
    by_form = [_read(tmp_path, "e.yaml", _YAML), _read(tmp_path, "e.jsonl", _JSON)]
    lines = [[row.pop("line") for row in of.rows] for of in by_form]
    assert lines == [[4, 8, 10], [2, 4, 5]]
    yaml, jsonl = by_form
    assert yaml.rows == jsonl.rows
    assert yaml.rows[0] == {
        "kind": "member_restarts",
        "group_id": "billing",
        "member_id": "C1",
        "downtime_ms": 20_000,
        "event": 1,
    }
    assert yaml.timeouts == jsonl.timeouts == Timeouts(session_timeout_ms=10_000)
    assert [s.members for s in yaml.sweeps] == [(-3, -2, -1, 0, 1, 2, 3), (1,)]
    assert yaml.sweeps[1].partitions == (Growth(times=2),)
    assert [s.line for s in yaml.sweeps] == [12, 13]
    listed = _read(tmp_path, "list.yml", "- {kind: topic_disappears, topic: t}\n")
    assert [row["line"] for row in listed.rows] == [1]


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("e.yaml", "", "holds no events and no sweeps"),
        ("e.jsonl", "\n\n", "holds no events and no sweeps"),
        ("e.yaml", "events: [\n", "line 2: no YAML: "),
        ("e.yaml", "events:\n  kind: x\n", "line 2: events is a list"),
        ("e.yaml", "event:\n  - kind: x\n", 'line 2: unknown section "event"; known are timeouts,'),
        ("e.yaml", "- kind: x\n- 7\n", "line 2: an event is a mapping of names to values, not 7"),
        ("e.yaml", "- kind: x\n- kind: y\n  kind: z\n", "line 2: kind appears twice"),
        ("e.yaml", "timeouts: {session_timeout: 1}\n", 'line 1: unknown name "session_timeout"'),
        ("e.yaml", "timeouts: {session_timeout_ms: 0}\n", "session_timeout_ms is 0; give whole"),
        ("e.yaml", "- kind: &a x\n  topic: !!python/object:os.x y\n", "line 2: no YAML: could not"),
        ("e.jsonl", '{"kind": "x"}\n{"kind": \n', "line 2: no JSON: Expecting value"),
        ("e.jsonl", '{"kind": 3}\n', "line 1: kind is 3; must be text"),
        ("e.jsonl", '{"num_partitions": 1.5}\n', "num_partitions is 1.5; must be a whole number"),
        ("e.jsonl", '{"num_partitions": true}\n', "num_partitions is true; must be a whole number"),
        ("e.jsonl", '{"topics": "t"}\n', 'topics is "t"; must be a list of names'),
        ("e.jsonl", '{"group": "g"}\n', 'line 1: unknown name "group"; known are cluster_id, kind'),
        ("e.jsonl", '{"kind": "a", "kind": "b"}\n', "line 1: kind appears twice"),
        ("e.jsonl", "[" * 100_000, "line 1: no JSON: "),
        ("e.jsonl", '{"sweep": {}}\n', "line 1: sweep: needs members or partitions"),
        ("e.jsonl", '{"sweep": {"members": "x2"}}\n', "members 'x2' cannot be read; write -3..+3"),
        ("e.jsonl", '{"sweep": {"members": "3..1"}}\n', "members '3..1' is not a range"),
        ("e.jsonl", '{"sweep": {"members": "0..9999"}}\n', "at most 1,000 variants"),
        ("e.jsonl", '{"sweep": {"partitions": "-2"}}\n', "'-2': partitions only grow"),
        ("e.jsonl", '{"sweep": {"partitions": "x0"}}\n', "'x0': partitions only grow"),
        ("e.jsonl", '{"sweep": {"hosts": 2}}\n', "sweep: unknown name 'hosts'"),
        ("e.yaml", "- kind: x\0\n", "no YAML: special characters are not allowed"),
        ("e.yaml", "[" * 3_000, "no YAML: nested too deeply"),
        ("e.yaml", "- 1\n- kind: 2001-99-99\n", "line 2: no YAML: a value is not what its tag"),
        ("e.yaml", "- kind: !!int ''\n", "line 1: no YAML: a value is not what its tag"),
        ("e.yaml", "2001-99-99: []\n", "no YAML: a value is not what its tag"),
        ("e.yaml", "- kind: {2001-01-01: x}\n", "line 1: kind is {...; must be text"),
        ("e.yaml", '- {group_id: "\\uD83D"}\n', 'group_id is "\\ud83d"; must be text'),
        ("e.jsonl", '{"topics": ["\\ud83d"]}\n', 'topics is ["\\ud83d"]; must be a list of names'),
        ("e.jsonl", '{"num_partitions": ' + "9" * 5_000, "line 1: no JSON: a number is too long"),
        ("e.yaml", "sweeps: [{members: 0x" + "f" * 5_000 + "}]", "members ... cannot be read"),
        ("e.yaml", "timeouts: {session_timeout_ms: 2147483648}", "give at most 2147483647"),
    ],
)
def test_what_cannot_be_read_is_named_with_its_line(
    tmp_path: Path, name: str, text: str, says: str
) -> None:
    with pytest.raises(InputError) as error:
        _read(tmp_path, name, text)
    assert says in str(error.value)
    assert "\n" not in str(error.value)


def test_a_few_lines_that_stand_for_gigabytes_are_shown_in_part(tmp_path: Path) -> None:
    lists = [f"- &a{n + 1} [{', '.join([f'*a{n}'] * 9)}]" for n in range(30)]
    with pytest.raises(InputError) as error:
        _read(tmp_path, "e.yaml", "\n".join(["- &a0 [x]", *lists]))
    assert len(str(error.value)) < 10_000


def test_of_many_faults_the_first_are_named(tmp_path: Path) -> None:
    with pytest.raises(InputError) as error:
        _read(tmp_path, "e.jsonl", "root:x:0:0\n" * 30)
    assert "line 5: no JSON: Expecting value; and 25 more" in str(error.value)
    assert "line 6" not in str(error.value)


def test_every_fault_of_a_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"line 1: .*; line 3: "):
        _read(tmp_path, "e.jsonl", '{"a": 1}\n{"kind": "x"}\n[]\n')
    with pytest.raises(InputError, match="No such file"):
        read_events(tmp_path / "none.yaml")


def test_sweeps_are_read() -> None:
    assert parse_sweep({"members": "-1, +2,2"}).members == (-1, 2)
    assert parse_sweep({"members": [-1, "0..1"]}).members == (-1, 0, 1)
    grown = parse_sweep({"partitions": "x1..x3, +4"}).partitions
    assert grown == (Growth(1), Growth(2), Growth(3), Growth(more=4))
    assert parse_sweep({"partitions": "\u00d72"}).partitions == (Growth(2),)
