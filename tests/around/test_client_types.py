"""Each value that the pinned client's ``ConsumerConfig`` constrains is checked as it does."""

import json
import random
import re
from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql import Row, SparkSession

from kassign_spark.settings.client_settings import SETTINGS, check_settings
from kassign_spark.settings.known_names import CONSUMER_NAMES
from tests.kafka.jars import KAFKA_VERSION
from tests.kafka.oracle import new_java_object

DESERIALIZER = "org.apache.kafka.common.serialization.StringDeserializer"
BASE = {
    "bootstrap.servers": "127.0.0.1:1",
    "key.deserializer": DESERIALIZER,
    "value.deserializer": DESERIALIZER,
    "group.id": "g",
}
BITS = {"SHORT": 16, "INT": 32, "LONG": 64}
_DURATIONS = "PT1H P1D pt1h P1DT2H3M4.5S -PT1H PT P P1W 1h PT0S PT-1H P1DT PT+5M"
_BOOTSTRAP = ["", ",", "h:1,", ",h:1", "h:1,,h:2", "h:1 , h:2", "SSL://h:1", "[::1]:9", " h:1 "]
GONE = {"auto.include.jmx.reporter", "internal.leave.group.on.close"}
BROKERS = {"session.timeout.ms", "heartbeat.interval.ms"}
"""What is checked against each other and the broker's limits as well (``test_client_settings``)."""

Definitions = dict[str, dict[str, str | None]]


@pytest.fixture(scope="module")
def client(spark: SparkSession) -> Any:
    return new_java_object(spark, "ClientLimits")


@pytest.fixture(scope="module")
def definitions(client: Any) -> Definitions:
    result: Definitions = json.loads(client.definitions())
    return result


def test_every_setting_of_the_client_is_known(definitions: Definitions) -> None:
    assert set(definitions) | GONE == CONSUMER_NAMES


def test_every_constrained_setting_has_a_rule(definitions: Definitions) -> None:
    """What is left takes any text, or is a class of the user's own or a secret."""
    free = {
        name
        for name, definition in definitions.items()
        if definition["type"] in ("STRING", "PASSWORD") and definition["validator"] is None
    }
    assert set(definitions) - set(SETTINGS) <= free


def _values(name: str, definition: dict[str, str | None]) -> Iterator[str]:
    """Values at the borders of what a definition takes, and others of no type."""
    kind, validator = definition["type"], definition["validator"] or ""
    yield from ("", "  ", "x", "1 0", "ja", "1.5", "-1", "0", "1", " 1 ", "1e0")
    if kind == "BOOLEAN":
        yield from ("true", "FALSE", " True ", "yes", "1", "on", "tru")
    if kind in BITS:
        bound = 1 << (BITS[kind] - 1)
        yield from map(str, (bound - 1, bound, -bound, -bound - 1, "+7", "1_000", "10L", "5s"))
    if kind in (*BITS, "DOUBLE"):
        for number in re.findall(r"-?[0-9]+(?:\.[0-9]+)?", validator):
            step = 0.001 if kind == "DOUBLE" else 1
            read = float(number) if kind == "DOUBLE" else int(number)
            yield from (str(read), str(read - step), str(read + step))
    if kind == "DOUBLE":
        yield from ("0.5d", ".5", "5.", "inf", "Infinity", "1,5", "0.75f", "1e-1")
    if kind == "STRING" and validator:
        for choice in re.findall(r"[A-Za-z_]+", validator):
            yield from (choice, choice.lower(), choice.upper(), choice.title(), f" {choice} ")
        yield from (f"{choice}s", choice.replace("_", "-"))
    if name == "auto.offset.reset":
        for text in _DURATIONS.split():
            yield f"by_duration:{text}"
        yield from ("by_duration", "by_duration:", "By_Duration:PT1H", "by_duration: PT1H")
    if kind == "LIST":
        yield from ("", ",", "a,", ",a", "a,,b", "a , b", "a,a", " a ")
    if kind == "CLASS" and name.endswith("deserializer"):
        package = "org.apache.kafka.common.serialization."
        yield from (f"{package}{simple}Deserializer" for simple in ("UUID", "Long", "Void", "Text"))
        yield from ("StringDeserializer", f"{package}StringDeserialiser", f" {DESERIALIZER} ")


@pytest.mark.slow
def test_what_the_pinned_config_refuses(
    spark: SparkSession, client: Any, definitions: Definitions
) -> None:
    names = [name for name in definitions if name not in BROKERS]
    by_name = {name: [*dict.fromkeys(_values(name, definitions[name]))] for name in names}
    # That each has a port and that a class is there, the consumer sees, not its settings.
    by_name["bootstrap.servers"] = _BOOTSTRAP
    strategies = by_name["partition.assignment.strategy"]
    by_name["partition.assignment.strategy"] = [
        text for text in strategies if not text.strip() or ",," in f",{text},".replace(" ", "")
    ]
    rng = random.Random(4400)
    cases = [{name: value} for name, values in by_name.items() for value in values]
    for _ in range(200):
        drawn = rng.sample(names, rng.randint(2, 5))
        cases.append({name: rng.choice(by_name[name]) for name in drawn})
    cases += [
        {"security.protocol": protocol, "sasl.mechanism": mechanism}
        for protocol in ("SASL_SSL", "sasl_plaintext", "SSL", "x")
        for mechanism in ("", " ", "PLAIN")
    ]
    cases += [
        {"group.protocol": protocol, **extra}
        for protocol in ("consumer", "CLASSIC", "classic")
        for extra in (
            {},
            {"group.remote.assignor": "uniform"},
            {"partition.assignment.strategy": ""},
            {"session.timeout.ms": "45000"},
        )
    ]
    refusals = json.loads(client.refusals(json.dumps([BASE | settings for settings in cases])))
    rows = [
        (str(i), KAFKA_VERSION, name, value)
        for i, settings in enumerate(cases)
        for name, value in (BASE | {"group.id": f"g{i}"} | settings).items()
    ]
    schema = "client string, client_version string, setting string, value string"
    result: dict[str, list[Row]] = {}
    for row in check_settings(spark.createDataFrame(rows, schema)).collect():
        # The constructor of the consumer asks more than its settings do.
        if row.severity == "refused" and row.setting != "group.id":
            result.setdefault(row.client, []).append(row)
    wrong = [
        (settings, refusal, result.get(str(i)))
        for i, (settings, refusal) in enumerate(zip(cases, refusals, strict=True))
        if (refusal is None) == (str(i) in result)
    ]
    assert wrong == [], "\n".join(map(str, wrong))
    assert len(cases) > 1_000
    assert 300 < sum(refusal is not None for refusal in refusals) < len(cases) - 300


def test_a_value_is_shown_where_it_is_no_secret(spark: SparkSession) -> None:
    shown = {
        ("isolation.level", "READ_COMMITTED"),
        ("auto.offset.reset", "Earliest"),
        ("auto.offset.reset", "by_duration:1h"),
        ("fetch.min.bytes", "1 MB"),
        ("session.timeout.ms", "45s"),
        ("enable.auto.commit", "yes"),
        ("key.deserializer", "StringDeserializer"),
    }
    hidden = {
        ("isolation.level", "hunter2"),
        ("fetch.min.bytes", "hunter2"),
        ("max.poll.records", "hunter2"),
        ("session.timeout.ms", "hunter2"),
        ("enable.auto.commit", "hunter2!"),
        ("bootstrap.servers", "user:hunter2@host"),
        ("bootstrap.servers", ""),
        ("interceptor.classes", "hunter2,"),
    }
    every = [*sorted(shown), *sorted(hidden)]
    rows = [(str(i), KAFKA_VERSION, *setting) for i, setting in enumerate(every)]
    schema = "client string, client_version string, setting string, value string"
    result = check_settings(spark.createDataFrame(rows, schema)).where("severity = 'refused'")
    values = {(row.client, row.setting): row.value for row in result.collect()}
    assert "hunter2" not in repr(values)
    assert [values[str(i), name] for i, (name, _) in enumerate(every)] == [
        value if (name, value) in shown else None for name, value in every
    ]
