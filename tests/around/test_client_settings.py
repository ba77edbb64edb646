"""Each rule passes and fails, by version; Kafka's own consumer is the oracle for the pinned one."""

import json
import random
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from kassign_spark.errors import SchemaError
from kassign_spark.settings.broker_rules import BROKER_SETTINGS
from kassign_spark.settings.client_settings import check_settings, refused_as_consumer
from tests.kafka.jars import KAFKA_VERSION
from tests.kafka.oracle import new_java_object

SCHEMA = "client STRING, client_version STRING, setting STRING, value STRING"
PACKAGE = "org.apache.kafka.clients.consumer."
RANGE, ROUND_ROBIN = PACKAGE + "RangeAssignor", PACKAGE + "RoundRobinAssignor"
STICKY, COOPERATIVE = PACKAGE + "StickyAssignor", PACKAGE + "CooperativeStickyAssignor"
SESSION, HEARTBEAT = "session.timeout.ms", "heartbeat.interval.ms"
POLL, RECORDS, REQUEST = "max.poll.interval.ms", "max.poll.records", "request.timeout.ms"
STRATEGY, INSTANCE, GROUP = "partition.assignment.strategy", "group.instance.id", "group.id"
PROTOCOL, REMOTE = "group.protocol", "group.remote.assignor"
SERVERS, RESET = "bootstrap.servers", "auto.offset.reset"
ISOLATION, DNS = "isolation.level", "client.dns.lookup"
BROKER_SESSION = "group.consumer.session.timeout.ms"
BROKER_HEARTBEAT = "group.consumer.heartbeat.interval.ms"

Findings = dict[str, str]
"""What is said of one client: severity by setting."""

INTERNAL, ACK_MODE = "exclude.internal.topics", "share.acknowledgement.mode"
INTERVAL = "group.consumer.assignment.interval.ms"
MAX_SIZE, POLICY = "group.consumer.max.size", "group.consumer.migration.policy"
NAMES, PROTOCOLS = "group.consumer.assignors", "group.coordinator.rebalance.protocols"
REFRESH = "group.consumer.regex.refresh.interval.ms"
THREADS = "group.coordinator.background.threads"
OWN = "org.apache.kafka.coordinator.group.assignor.RangeAssignor"
OF_BROKERS = set(BROKER_SETTINGS)


def findings(
    spark: SparkSession, clients: Sequence[tuple[str, Mapping[str, str | None]]]
) -> list[Findings]:
    """Check many clients at once: each a version and its settings."""
    rows: list[tuple[str, str, str | None, str | None]] = []
    for i, (version, settings) in enumerate(clients):
        rows += [(f"c{i}", version, None, None)]
        rows += [(f"c{i}", version, name, value) for name, value in settings.items()]
    got: list[Findings] = [{} for _ in clients]
    for row in check_settings(spark.createDataFrame(rows, SCHEMA)).collect():
        of_client = got[int(row.client[1:])]
        finding = of_client.get(row.setting)
        assert finding != row.severity, f"said twice: {row}"
        of_client[row.setting] = "refused" if "refused" in (finding, row.severity) else "advice"
        assert row.detail
    return got


REFUSED, ADVICE = "refused", "advice"
OLD, NEW = "0.10.2.1", "4.4.0"

CASES: list[tuple[str, dict[str, str | None], Findings]] = [
    # Defaults are at peace with one another.
    *[(version, {}, {}) for version in ("0.9.0.1", OLD, "1.1.1", "2.8.2", "3.9.1", NEW)],
    # Whole numbers.
    *[(v, {SESSION: "abc"}, {SESSION: REFUSED}) for v in ("0.9.0.1", "2.8.2", NEW)],
    *[(NEW, {SESSION: text}, {SESSION: REFUSED}) for text in ("", "6e3", "3000000000", "45000.0")],
    *[(NEW, {SESSION: text}, {}) for text in (" 45000 ", "+45000", "2147483647"[:5])],
    *[(v, {POLL: "0"}, {POLL: REFUSED}) for v in (OLD, "2.8.2", NEW)],
    *[(v, {RECORDS: "0"}, {RECORDS: REFUSED}) for v in (OLD, "2.8.2", NEW)],
    *[(v, {RECORDS: "1", POLL: "45000"}, {}) for v in (OLD, "2.8.2", NEW)],
    *[(v, {REQUEST: "-1"}, {REQUEST: REFUSED}) for v in (OLD, "2.8.2", NEW)],
    ("2.0.0", {REQUEST: "0"}, {}),
    ("2.0.1", {HEARTBEAT: "-1"}, {}),
    ("2.1.0", {HEARTBEAT: "-1"}, {HEARTBEAT: REFUSED}),
    ("2.1.0", {HEARTBEAT: "0"}, {}),
    ("0.9.0.1", {RECORDS: "0", POLL: "0"}, {RECORDS: ADVICE, POLL: ADVICE}),  # unknown to it
    # Heartbeats in a session.
    *[(v, {SESSION: "6000", HEARTBEAT: "2000"}, {}) for v in (OLD, "2.8.2", NEW)],
    *[(v, {SESSION: "6000", HEARTBEAT: "2001"}, {HEARTBEAT: ADVICE}) for v in (OLD, "2.8.2", NEW)],
    *[(v, {SESSION: "6000", HEARTBEAT: "5999"}, {HEARTBEAT: ADVICE}) for v in (OLD, "2.8.2", NEW)],
    *[(v, {SESSION: "6000", HEARTBEAT: "6000"}, {HEARTBEAT: REFUSED}) for v in (OLD, "2.8.2", NEW)],
    *[(v, {HEARTBEAT: "10000"}, {HEARTBEAT: REFUSED}) for v in (OLD, "2.8.2")],
    ("3.0.0", {HEARTBEAT: "10000"}, {}),
    ("3.0.0", {HEARTBEAT: "45000"}, {HEARTBEAT: REFUSED}),
    ("0.10.0.1", {HEARTBEAT: "10000"}, {}),
    ("0.10.1.0", {HEARTBEAT: "10000"}, {HEARTBEAT: REFUSED}),
    ("3.9.1", {SESSION: "2000"}, {SESSION: REFUSED, HEARTBEAT: REFUSED}),
    # The broker's limits of the session.
    *[(v, {SESSION: "5999", HEARTBEAT: "1000"}, {SESSION: REFUSED}) for v in (OLD, "2.8.2", NEW)],
    ("2.2.2", {SESSION: "300000"}, {}),
    ("2.2.2", {SESSION: "300001"}, {SESSION: REFUSED, POLL: ADVICE}),
    ("2.3.0", {SESSION: "300001", POLL: "300001"}, {}),
    ("2.3.0", {SESSION: "1800000", POLL: "1800000"}, {}),
    ("2.3.0", {SESSION: "1800001", POLL: "1800001"}, {SESSION: REFUSED}),
    # The poll interval below the session is advice only.
    *[(v, {POLL: "5000"}, {POLL: ADVICE}) for v in (OLD, "2.8.2", NEW)],
    ("0.10.0.1", {POLL: "5000"}, {POLL: ADVICE}),  # unknown to it
    # The request timeout had to exceed the session.
    ("1.1.1", {REQUEST: "10000"}, {REQUEST: REFUSED}),
    ("1.1.1", {REQUEST: "10001"}, {}),
    ("1.1.1", {SESSION: "300000", REQUEST: "300000"}, {REQUEST: REFUSED}),
    ("2.0.0", {REQUEST: "10000"}, {}),
    # Static ids.
    *[(v, {INSTANCE: "a.B_c-9"}, {}) for v in ("2.3.0", "2.8.2", NEW)],
    *[(v, {INSTANCE: " a\n"}, {}) for v in ("2.3.0", "2.8.2", NEW)],  # Kafka trims it
    *[(v, {INSTANCE: "x" * 249}, {}) for v in ("2.3.0", "2.8.2", NEW)],
    *[
        (v, {INSTANCE: bad}, {INSTANCE: REFUSED})
        for v in ("2.3.0", "2.8.2", NEW)
        for bad in ("", "a b", "é", "x" * 250, ".", "..", "a\nb")
    ],
    ("2.2.0", {INSTANCE: "a b"}, {INSTANCE: ADVICE}),
    # Group ids.
    ("4.0.0", {GROUP: "g"}, {}),
    *[("4.0.0", {GROUP: bad}, {GROUP: REFUSED}) for bad in ("", " ")],
    *[("3.9.1", {GROUP: bad}, {GROUP: ADVICE}) for bad in ("", " ")],
    # Assignor lists.
    *[(v, {STRATEGY: RANGE}, {}) for v in (OLD, "2.8.2", NEW)],
    *[(v, {STRATEGY: f"{ROUND_ROBIN} , {RANGE}"}, {}) for v in (OLD, "2.8.2", NEW)],
    *[
        (v, {STRATEGY: name}, {STRATEGY: REFUSED})
        for v in (OLD, NEW)
        for name in ("range", "sticky")
    ],
    *[(v, {STRATEGY: f"{RANGE},"}, {STRATEGY: REFUSED}) for v in (OLD, "2.8.2", NEW)],
    *[(v, {STRATEGY: ""}, {}) for v in (OLD, "2.8.2", NEW)],
    *[(v, {STRATEGY: f"{RANGE},{RANGE}"}, {}) for v in ("2.8.2", "3.0.2", "4.2.0", NEW)],
    *[(v, {STRATEGY: f"{RANGE},{RANGE}"}, {STRATEGY: REFUSED}) for v in ("3.9.1", "4.1.0")],
    ("0.10.2.1", {STRATEGY: STICKY}, {STRATEGY: REFUSED}),
    ("0.11.0.0", {STRATEGY: STICKY}, {}),
    ("2.3.1", {STRATEGY: COOPERATIVE}, {STRATEGY: REFUSED}),
    ("2.4.0", {STRATEGY: COOPERATIVE}, {STRATEGY: ADVICE}),
    ("3.0.0", {STRATEGY: COOPERATIVE}, {}),
    ("3.0.0", {STRATEGY: f"{RANGE},{COOPERATIVE}"}, {STRATEGY: ADVICE}),
    ("3.5.0", {STRATEGY: STICKY, "client.rack": "r1"}, {STRATEGY: ADVICE}),
    ("3.7.0", {STRATEGY: STICKY, "client.rack": "r1"}, {STRATEGY: ADVICE}),
    ("3.7.0", {STRATEGY: STICKY, "client.rack": ""}, {}),
    ("3.7.1", {STRATEGY: STICKY, "client.rack": "r1"}, {}),
    # The group protocol.
    *[(v, {PROTOCOL: "classic"}, {}) for v in ("3.7.0", NEW)],
    *[(v, {PROTOCOL: "CONSUMER"}, {}) for v in ("4.0.0", NEW)],
    *[(v, {PROTOCOL: "consumer"}, {PROTOCOL: ADVICE}) for v in ("3.7.0", "3.9.1")],
    *[(v, {PROTOCOL: "foo"}, {PROTOCOL: REFUSED}) for v in ("3.7.0", NEW)],
    ("3.6.2", {PROTOCOL: "foo"}, {PROTOCOL: ADVICE}),
    *[
        (v, {PROTOCOL: "consumer", name: value}, {name: severity} | preview)
        for v, severity, preview in (
            ("3.9.1", ADVICE, {PROTOCOL: ADVICE}),
            ("4.0.0", REFUSED, {}),
            (NEW, REFUSED, {}),
        )
        for name, value in ((SESSION, "45000"), (HEARTBEAT, "3000"), (STRATEGY, RANGE))
    ],
    (NEW, {PROTOCOL: "consumer", STRATEGY: " "}, {}),
    *[(NEW, {PROTOCOL: "consumer", REMOTE: name}, {}) for name in ("uniform", "range")],
    *[(NEW, {PROTOCOL: "consumer", REMOTE: n}, {REMOTE: ADVICE}) for n in ("Uniform", "own.One")],
    (NEW, {PROTOCOL: "consumer", "client.rack": "r1"}, {"client.rack": ADVICE}),
    (NEW, {PROTOCOL: "consumer", INTERNAL: "true"}, {INTERNAL: ADVICE}),
    (NEW, {PROTOCOL: "consumer", INSTANCE: "i"}, {INSTANCE: ADVICE}),
    (NEW, {"client.rack": "r1", INTERNAL: "true", INSTANCE: "i"}, {}),
    *[
        (NEW, {**protocol, ACK_MODE: "implicit"}, {ACK_MODE: REFUSED})
        for protocol in ({}, {PROTOCOL: "consumer"})
    ],
    *[(v, {REMOTE: "uniform"}, {REMOTE: REFUSED}) for v in ("3.7.0", NEW)],
    (NEW, {REMOTE: "uniform", PROTOCOL: "classic"}, {REMOTE: REFUSED}),
    ("3.6.2", {REMOTE: "uniform"}, {REMOTE: ADVICE}),
    # A broker's settings for the new protocol.
    (NEW, {BROKER_SESSION: "45000", BROKER_HEARTBEAT: "5000"}, {}),
    (NEW, {BROKER_SESSION: "60000", BROKER_HEARTBEAT: "15000"}, {}),
    (NEW, {BROKER_SESSION: "44999"}, {BROKER_SESSION: REFUSED}),
    (NEW, {BROKER_HEARTBEAT: "15001"}, {BROKER_HEARTBEAT: REFUSED}),
    (NEW, {"consumer.heartbeat.interval.ms": "4999"}, {"consumer.heartbeat.interval.ms": REFUSED}),
    (NEW, {"consumer.session.timeout.ms": "60000"}, {}),
    (NEW, {"consumer.session.timeout.ms": "60001"}, {"consumer.session.timeout.ms": REFUSED}),
    *[(NEW, {INTERVAL: value}, {}) for value in ("0", "15000")],
    *[(NEW, {INTERVAL: value}, {INTERVAL: REFUSED}) for value in ("-1", "15001", "1s")],
    ("4.2.0", {INTERVAL: "1000"}, {INTERVAL: ADVICE}),
    *[(NEW, {MAX_SIZE: value}, {}) for value in ("1", "2147483647")],
    *[(NEW, {MAX_SIZE: value}, {MAX_SIZE: REFUSED}) for value in ("0", "2147483648")],
    *[(NEW, {NAMES: value}, {}) for value in ("uniform", "range,uniform", OWN)],
    *[(NEW, {NAMES: value}, {NAMES: REFUSED}) for value in ("", "sticky", "range,")],
    (NEW, {NAMES: "range,range"}, {NAMES: ADVICE}),
    *[
        (NEW, {REFRESH: value}, findings)
        for value, findings in (("10000", {}), ("9999", {REFRESH: REFUSED}))
    ],
    *[
        (NEW, {THREADS: value}, findings)
        for value, findings in (("1", {}), ("0", {THREADS: REFUSED}))
    ],
    *[(NEW, {POLICY: value}, {}) for value in ("bidirectional", "DOWNGRADE", "disabled")],
    (NEW, {POLICY: "upgrade"}, {POLICY: ADVICE}),
    (NEW, {POLICY: "both"}, {POLICY: REFUSED}),
    (NEW, {PROTOCOLS: "classic,consumer"}, {}),
    (NEW, {PROTOCOLS: "classic,streams"}, {PROTOCOLS: ADVICE}),
    # Names of classes, addresses, and types; ``test_client_types`` has them all.
    *[
        (NEW, {STRATEGY: name}, {STRATEGY: REFUSED})
        for name in ("RangeAssignor", f"{PACKAGE}RangeAssigner", f"{RANGE},Sticky")
    ],
    *[
        (NEW, {SERVERS: text}, {SERVERS: REFUSED})
        for text in ("h", "h:", "h:1,i", "h:1:x", "", ",")
    ],
    *[(NEW, {SERVERS: text}, {}) for text in ("127.0.0.1:1", "127.0.0.1:1 , PLAINTEXT://[::1]:1")],
    ("3.9.1", {RESET: "by_duration:PT1H"}, {RESET: REFUSED}),
    *[(v, {RESET: "Earliest"}, {RESET: REFUSED}) for v in (OLD, "2.8.2", "3.9.1", NEW)],
    *[(v, {ISOLATION: "READ_COMMITTED"}, {ISOLATION: REFUSED}) for v in ("2.8.2", NEW)],
    *[(v, {DNS: "default"}, {DNS: REFUSED}) for v in ("3.0.0", NEW)],
    ("2.8.2", {DNS: "default"}, {}),
    ("2.0.1", {DNS: "x"}, {}),  # unknown to it
    (NEW, {REMOTE: " "}, {}),
    (NEW, {"security.protocol": "sasl_ssl", "sasl.mechanism": " "}, {"sasl.mechanism": REFUSED}),
    (NEW, {"enable.auto.commit": "true", GROUP: None}, {"enable.auto.commit": ADVICE}),
    (NEW, {"enable.auto.commit": "true", GROUP: "g"}, {}),
    # What has no rule, and what is not set.
    (NEW, {"client.id": "x", SESSION: None}, {}),
]


@pytest.mark.slow
def test_every_rule_by_version(spark: SparkSession) -> None:
    got = findings(spark, [(version, settings) for version, settings, _ in CASES])
    wrong = [
        (version, settings, expected, finding)
        for (version, settings, expected), finding in zip(CASES, got, strict=True)
        if finding != expected
    ]
    assert wrong == []


def is_refused(spark: SparkSession, settings: Mapping[str, str | None]) -> bool:
    """Whether the jar's own consumer refuses to start; it connects to nothing yet."""
    deserializer = "org.apache.kafka.common.serialization.StringDeserializer"
    properties = spark._jvm.java.util.Properties()
    base = {
        "bootstrap.servers": "127.0.0.1:1",
        "key.deserializer": deserializer,
        "value.deserializer": deserializer,
        GROUP: "g",
    }
    for name, value in {**base, **settings}.items():
        if value is not None:
            properties.setProperty(name, value)
    try:
        spark._jvm.org.apache.kafka.clients.consumer.KafkaConsumer(properties).close()
    except Py4JJavaError:
        return True
    return False


def test_the_pinned_consumer_refuses_what_we_say_it_refuses(spark: SparkSession) -> None:
    """The broker's refusals apart: a session timeout outside its limits, its own settings."""
    settings = [s for _, s, _ in CASES if not OF_BROKERS & set(s)]
    # A group.id that is not in the file may come from the program.
    settings = [s for s in settings if s.get(GROUP, "") is not None]
    settings = [s for i, s in enumerate(settings) if s not in settings[:i]]
    answers = findings(spark, [(KAFKA_VERSION, s) for s in settings])
    outcomes = set()
    for values, severities in zip(settings, answers, strict=True):
        number = (values.get(SESSION) or "").strip()
        by_broker = number in ("2000", "5999", "1800001")
        expected = {s for s, severity in severities.items() if severity == REFUSED}
        if by_broker:
            expected -= {SESSION}
        assert is_refused(spark, values) == bool(expected), (values, severities)
        outcomes.add(bool(expected))
    assert outcomes == {True, False}


def _drawn(names: Mapping[str, Sequence[str]], rng: random.Random) -> list[dict[str, str]]:
    """Each value alone, and many at random together."""
    alone = [{name: value} for name, values in names.items() for value in values]
    some = [rng.sample(sorted(names), rng.randint(2, 4)) for _ in range(300)]
    return alone + [{name: rng.choice(names[name]) for name in drawn} for drawn in some]


def test_the_pinned_broker_refuses_what_we_say_it_refuses(spark: SparkSession) -> None:
    """``GroupCoordinatorConfig`` and ``GroupConfig`` of the coordinator's own jar."""
    rng = random.Random(848)
    times = {
        "consumer.session.timeout.ms": ("44999", "45000", "60000", "60001", "abc", "", " 45000 "),
        "consumer.heartbeat.interval.ms": ("4999", "5000", "15000", "15001", "5e3"),
        "consumer.assignment.interval.ms": ("-1", "0", "15000", "15001"),
        "consumer.assignor.offload.enable": ("true", "False", "yes", ""),
    }
    limits = {
        "group.consumer.min.session.timeout.ms": ("0", "1", "4000", "45000", "45001", "x"),
        "group.consumer.max.session.timeout.ms": ("44999", "45000", "90000"),
        "group.consumer.min.heartbeat.interval.ms": ("0", "500", "5000", "5001"),
        "group.consumer.max.heartbeat.interval.ms": ("4999", "5000", "60000"),
        "group.consumer.min.assignment.interval.ms": ("-1", "0", "1000", "1001"),
        "group.consumer.max.assignment.interval.ms": ("999", "1000", "20000"),
    }
    of_broker = {
        **{f"group.{name}": values for name, values in times.items()},
        **limits,
        BROKER_SESSION: (*times["consumer.session.timeout.ms"], "5000", "5001", "90000"),
        MAX_SIZE: ("0", "1", "2147483647", "2147483648"),
        REFRESH: ("9999", "10000"),
        THREADS: ("0", "1"),
        POLICY: ("Upgrade", "DISABLED", " bidirectional ", "both", ""),
        NAMES: (
            "uniform",
            "range, uniform",
            "",
            "uniform,",
            "range,range",
            "sticky",
            "Uniform",
            OWN,
        ),
        PROTOCOLS: (
            "classic",
            "classic,consumer",
            "Classic,CONSUMER",
            "",
            "connect",
            "share,share",
        ),
    }
    java = new_java_object(spark, "Limits")
    for names, ask in ((of_broker, java.ofBroker), (times, java.ofGroup)):
        drawn = _drawn(names, rng)
        refusals = json.loads(ask(json.dumps(drawn)))
        result = findings(spark, [(KAFKA_VERSION, settings) for settings in drawn])
        wrong = [
            (settings, refusal, severities)
            for settings, refusal, severities in zip(drawn, refusals, result, strict=True)
            if (refusal is None) == (REFUSED in severities.values())
        ]
        assert wrong == []
        assert {True, False} == {refusal is None for refusal in refusals}


def test_clients_that_could_not_change_over(spark: SparkSession) -> None:
    """All of them are classic now; only what the new protocol refuses counts."""
    rows = [
        ("old", "3.6.2", GROUP, "a"),
        ("fine", NEW, GROUP, "a"),
        ("fine", NEW, "client.rack", "r"),
        ("set", NEW, GROUP, " b "),
        ("set", NEW, SESSION, "45000"),
        ("set", NEW, PROTOCOL, "classic"),
        ("remote", NEW, GROUP, "c"),
        ("remote", NEW, REMOTE, "range"),
    ]
    result = refused_as_consumer(spark.createDataFrame(rows, SCHEMA)).collect()
    assert sorted((row.group_id, row.detail) for row in result) == [
        ("a", 'client "old", group.protocol: unknown to clients before 3.7.0, which ignore it'),
        ("b", 'client "set", session.timeout.ms: cannot be set with group.protocol=consumer'),
    ]


def rows_of(spark: SparkSession, *rows: tuple[Any, ...]) -> list[tuple[Any, ...]]:
    got = check_settings(spark.createDataFrame(list(rows), SCHEMA))
    assert got.columns == ["client", "setting", "value", "severity", "detail"]
    return sorted((tuple(row) for row in got.collect()), key=str)


def test_what_a_finding_says(spark: SparkSession) -> None:
    """The value at fault is a default here: 3000 ms, which the client does not set."""
    assert rows_of(spark, ("orders", "3.9.1", SESSION, "6000")) == [
        (
            "orders",
            HEARTBEAT,
            "3000",
            ADVICE,
            "fewer than three heartbeats in a session.timeout.ms of 6000; one that is lost may "
            "cost the membership",
        )
    ]


def test_a_static_id_belongs_to_one_client_of_a_group(spark: SparkSession) -> None:
    clients = [
        ("a", "g", "i"),
        ("b", "g ", "i"),
        ("c", "g", "j"),
        ("d", "h", "i"),
        ("e", None, "i"),
    ]
    rows = [(c, NEW, GROUP, g) for c, g, _ in clients] + [
        (c, NEW, INSTANCE, i) for c, _, i in clients
    ]
    got = rows_of(spark, *rows)
    assert [row[:4] for row in got] == [
        ("a", INSTANCE, "i", REFUSED),
        ("b", INSTANCE, "i", REFUSED),
    ]
    assert 'group "g" has 2 clients of this id' in got[0][4]


def test_clients_of_several_libraries_in_one_group(spark: SparkSession) -> None:
    java, others = f"{PACKAGE}RangeAssignor", "range, roundrobin"
    clients = {
        "java": {"group.id": "mixed", STRATEGY: java},
        "python": {"group.id": " mixed", STRATEGY: others},
        "default": {"group.id": "mixed"},
        "alone": {"group.id": "other", STRATEGY: java},
        "no group": {STRATEGY: java},
        "nor this": {STRATEGY: others},
    }
    rows = [
        (name, NEW, *setting) for name, settings in clients.items() for setting in settings.items()
    ]
    advised = [row for row in rows_of(spark, *rows) if row[1] == STRATEGY and row[3] == ADVICE]
    assert {row[0] for row in advised} == {"java", "python", "default"}
    assert all('group "mixed" has clients of Java and' in row[4] for row in advised)


def test_clients_that_cannot_be_checked_are_reported(spark: SparkSession) -> None:
    got = rows_of(
        spark,
        ("a", "newest", SESSION, "1"),
        ("b", None, SESSION, "1"),
        ("c", "3.9.1", SESSION, "45000"),
        ("c", "4.0.0", HEARTBEAT, "1000"),
        ("d", NEW, SESSION, "45000"),
        ("d", NEW, SESSION, "50000"),
        ("d", NEW, SESSION, "45000"),
        (None, NEW, SESSION, "1"),
    )
    assert [row[:4] for row in got if row[0]] == [
        ("a", "client_version", "newest", REFUSED),
        ("b", "client_version", "", REFUSED),
        ("c", "client_version", "3.9.1, 4.0.0", REFUSED),
        ("d", SESSION, "45000, 50000", REFUSED),
    ]
    assert {row[1] for row in got if row[0] is None} == {SESSION, HEARTBEAT}


def test_missing_columns_are_named(spark: SparkSession) -> None:
    with pytest.raises(SchemaError, match="table clients: column client_version"):
        check_settings(
            spark.createDataFrame([("a", "b", "c")], "client STRING, setting STRING, value STRING")
        )
