"""Files that people write by hand: any text and any value is read, or refused in one line."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kassign_spark.live.client_properties import admin_settings, read_properties
from kassign_spark.settings import Settings, load_settings
from kassign_spark.settings.computing import ENGINES
from kassign_spark.simulation.event_file import _FIELDS, read_events
from kassign_spark.simulation.events import KINDS
from tests.fuzz.budget import examples
from tests.fuzz.outcome import result_or_refusal
from tests.fuzz.strategies import escaped_text, text, values, whole_numbers

_MANY = 300


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("files")


def _read(path: Path, content: str | bytes, read: Any) -> Any:
    data = content if isinstance(content, bytes) else content.encode("utf-8", "surrogatepass")
    path.write_bytes(data)
    return result_or_refusal(lambda: read(path))


def _event() -> st.SearchStrategy[dict[str, Any]]:
    return st.dictionaries(st.sampled_from(_FIELDS), values(), max_size=4).flatmap(
        lambda more: st.sampled_from(list(KINDS)).map(lambda kind: {"kind": kind, **more})
    )


def _sections() -> st.SearchStrategy[Any]:
    sweep = st.dictionaries(
        st.sampled_from(["members", "partitions", "cluster_id", "group_id", "topic"]),
        values() | st.sampled_from(["-3..+3", "x2", "1..2..3", "x1..x9999", "+1, -1", "٣"]),
        max_size=3,
    )
    timeouts = st.dictionaries(
        st.sampled_from(["session_timeout_ms", "metadata_max_age_ms", "no"]), values(), max_size=2
    )
    return st.fixed_dictionaries(
        {},
        optional={
            "events": st.lists(_event(), max_size=3) | values(),
            "sweeps": st.lists(sweep, max_size=2) | values(),
            "timeouts": timeouts | values(),
            "more": values(),
        },
    )


def _checked_events(content: Any) -> None:
    """What was read can be written: Spark takes UTF-8 and 64 bits."""
    if content is not None:
        for row in content.rows:
            json.dumps(row, ensure_ascii=False).encode("utf-8")
        assert all(0 <= n < 2**31 for n in vars(content.timeouts).values())


@examples(_MANY)
@given(content=text() | st.binary(max_size=40))
@example(content="- kind: 2001-99-99")
@example(content="- {kind: member_leaves, downtime_ms: 0x_}")
@example(content="- kind: {2001-01-01: a}")
@example(content="- kind: !!int ''")
@example(content="- kind: !!bool abc")
@example(content="- kind: !!timestamp x")
@example(content="[" * 3000)
@example(content="- kind: " + "9" * 5000)
@example(content="2001-99-99: 1")
@example(content='- {kind: member_leaves, group_id: "\\uD83D", member_id: x}')
@example(content="sweeps: [{members: 0x" + "f" * 5000 + "}]")
@example(content="sweeps: [{members: &a [*a]}]")
@example(content="timeouts: {session_timeout_ms: 9223372036854775807}\nsweeps: [{members: 1}]")
@example(
    content="- kind: [&a0 x]\n  rack_id: "
    + "".join(f"[&a{n + 1} [*a{n}, *a{n}, *a{n}], " for n in range(30))
    + "]" * 30
)
def test_events_in_yaml(folder: Path, content: str | bytes) -> None:
    _checked_events(_read(folder / "e.yaml", content, read_events))


@examples(_MANY)
@given(sections=_sections() | values())
def test_events_of_any_values_in_yaml(folder: Path, sections: Any) -> None:
    # JSON with its escapes is YAML too.
    _checked_events(_read(folder / "e.yaml", json.dumps(sections), read_events))


@examples(_MANY)
@given(
    lines=st.lists(
        _event().map(json.dumps)
        | values().map(json.dumps)
        | st.tuples(st.sampled_from(["sweep", "timeouts", "sweeps"]), values()).map(
            lambda pair: json.dumps(dict([pair]))
        )
        | _sections().flatmap(lambda s: st.sampled_from([json.dumps(s), *map(json.dumps, s)]))
        | text(),
        max_size=4,
    )
)
@example(lines=["9" * 5000])
@example(lines=["[" * 100_000])
@example(lines=['{"kind": "member_leaves", "group_id": "\\ud800", "member_id": "x"}'])
def test_events_in_json_lines(folder: Path, lines: list[str]) -> None:
    _checked_events(_read(folder / "e.jsonl", "\n".join(lines), read_events))


@examples(_MANY)
@given(
    content=text()
    | st.binary(max_size=40)
    | st.dictionaries(st.sampled_from(list(vars(Settings()))), values(), max_size=3).map(
        lambda named: "\n".join(f"{name} = {json.dumps(value)}" for name, value in named.items())
    )
    | whole_numbers().map(lambda n: f"max_rounds = {n}")
)
@example(content="max_rounds = " + "9" * 5000)
@example(content="max_rounds = 0x" + "f" * 5000)
@example(content="a = " + "[" * 5000)
@example(content="max_rounds = 2001-99-99")
@example(content='"a\\nb" = 1')
def test_settings(folder: Path, content: str | bytes) -> None:
    settings = _read(folder / "s.toml", content, load_settings)
    if settings is not None:
        values = dict(vars(settings))
        assert values.pop("engine") in ENGINES
        assert all(isinstance(of, bool | None) or 0 <= of <= 2**50 for of in values.values())


_KEYS = [
    "client.id",
    "security.protocol",
    "request.timeout.ms",
    "bootstrap.servers",
    "sasl.mechanism",
    "sasl.jaas.config",
    *(f"ssl.{s}.{k}" for s in ("truststore", "keystore") for k in ("type", "location")),
    "ssl.truststore.certificates",
    "ssl.key.password",
    "ssl.endpoint.identification.algorithm",
]
_PLAIN = (
    "security.protocol=SASL_SSL\nsasl.mechanism=PLAIN\nsasl.jaas.config="
    "org.apache.kafka.common.security.plain.PlainLoginModule required "
)


def _escaped(value: str) -> str:
    """As ``java.util.Properties`` writes it."""
    units = value.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[i : i + 4]}" for i in range(0, len(units), 4))


@examples(_MANY)
@given(
    content=text()
    | st.binary(max_size=40)
    | st.lists(
        st.tuples(
            st.sampled_from(_KEYS),
            st.sampled_from(["SSL", "SASL_SSL", "PEM", "PLAIN", "SCRAM-SHA-256", "https", "1"])
            | escaped_text().map(_escaped)
            | text(),
        ),
        max_size=6,
    ).map(lambda pairs: "\n".join(f"{key}={value}" for key, value in pairs))
    | escaped_text().map(lambda v: f'{_PLAIN} username="{_escaped(v)}" password="secret";')
)
@example(content="client.id=\\uD83D\\uDE00")
@example(content="client.id=\\uD800")
@example(
    content="security.protocol=SSL\nssl.truststore.type=PEM\nssl.truststore.certificates=\\u00e9"
)
def test_client_properties(folder: Path, content: str | bytes) -> None:
    settings = _read(
        folder / "c.properties", content, lambda path: admin_settings(read_properties(path))
    )
    for value in (settings or {}).values():
        if isinstance(value, str):
            value.encode("utf-8")
