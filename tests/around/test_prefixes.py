"""Settings are found behind the prefixes of frameworks, and names that nobody knows are named."""

from pathlib import Path

import pytest

from kassign_spark.commands.check_settings_command import read_clients
from kassign_spark.errors import SettingsError
from kassign_spark.settings.known_names import CONSUMER_NAMES, nearest_name
from kassign_spark.settings.prefixes import read_through

SESSION = "session.timeout.ms"

MISSPELLED = {
    "session.timeout": "session.timeout.ms",
    "group.instance_id": "group.instance.id",
    "partition.assignement.strategy": "partition.assignment.strategy",
    "heartbeat.intervall.ms": "heartbeat.interval.ms",
    "group-id": "group.id",
    "groupId": "group.id",
    "auto.commit.enable": "enable.auto.commit",
    "offset.reset": "auto.offset.reset",
    "autoOffsetReset": "auto.offset.reset",
    "bootstrap.server": "bootstrap.servers",
    "max.poll.interval": "max.poll.interval.ms",
    "fetch.wait.max.ms": "fetch.max.wait.ms",
    "max.pol.records": "max.poll.records",
    "isolation.levle": "isolation.level",
    "ssl.keystore.pasword": "ssl.keystore.password",
    "Group.Id": "group.id",
    "group.consumer.session.timeout": "group.consumer.session.timeout.ms",
}
SOMEBODY_ELSES = (
    "linger.ms",
    "acks",
    "retention.ms",
    "min.insync.replicas",
    "schema.registry.url",
    "schema.registry.ssl.keystore.password",
    "sasl.own.setting",
    "sasl.oauthbearer.own",
    "interceptor.own.setting",
    "producer.linger.ms",
    "producer.session.timeout",
    "admin.retries",
    "log.retention.hours",
    "listeners.own",
    "spring.application.name",
    "spring.kafka.listener.concurrency",
    "spring.kafka.producer.properties.linger.ms",
    "spring.kafka.ssl.bundle",
    "mp.messaging.outgoing.orders.acks",
    "value.converter.schemas.enable",
)
NOBODYS = ("my.own.setting", "consumer.color")


@pytest.mark.parametrize(("key", "nearest"), MISSPELLED.items())
def test_a_misspelled_key(key: str, nearest: str) -> None:
    file = read_through({key: "x", "client.id": "x"})
    assert file.unknown == [(key, nearest)]


def test_keys_that_are_not_the_consumers() -> None:
    assert read_through(dict.fromkeys(SOMEBODY_ELSES, "1")).unknown == []
    assert read_through(dict.fromkeys(NOBODYS, "1")).unknown == [(key, None) for key in NOBODYS]
    assert [name for name in CONSUMER_NAMES if read_through({name: "1"}).unknown] == []
    assert nearest_name("color") is None


@pytest.mark.parametrize(
    ("key", "value", "name", "read"),
    [
        ("spring.kafka.consumer.auto-offset-reset", "Earliest", "auto.offset.reset", "Earliest"),
        ("spring.kafka.consumer.autoOffsetReset", "latest", "auto.offset.reset", "latest"),
        ("spring.kafka.consumer.group-id", "g", "group.id", "g"),
        ("spring.kafka.consumer.heartbeat-interval", "3s", "heartbeat.interval.ms", "3000"),
        ("spring.kafka.consumer.heartbeat-interval", "PT3S", "heartbeat.interval.ms", "3000"),
        ("spring.kafka.consumer.heartbeat-interval", "soon", "heartbeat.interval.ms", "soon"),
        ("spring.kafka.consumer.fetch-min-size", "1KB", "fetch.min.bytes", "1024"),
        ("spring.kafka.consumer.isolation-level", "READ_COMMITTED", "isolation.level", None),
        ("spring.kafka.bootstrap-servers", "h:1", "bootstrap.servers", "h:1"),
        (f"spring.kafka.consumer.properties.{SESSION}", "10s", SESSION, "10s"),
        (f"spring.kafka.consumer.properties[{SESSION}]", "1", SESSION, "1"),
        (f"spring.kafka.properties.{SESSION}", "1", SESSION, "1"),
        (f"spring.cloud.stream.kafka.binder.consumerProperties.{SESSION}", "1", SESSION, "1"),
        (f"spring.cloud.stream.kafka.binder.consumer-properties.{SESSION}", "1", SESSION, "1"),
        (f"spring.cloud.stream.kafka.binder.configuration.{SESSION}", "1", SESSION, "1"),
        (
            f"spring.cloud.stream.kafka.bindings.in-0.consumer.configuration.{SESSION}",
            "1",
            SESSION,
            "1",
        ),
        ("spring.cloud.stream.bindings.in-0.group", "g", "group.id", "g"),
        ("consumer.max.poll.records", "1", "max.poll.records", "1"),
        (f"consumer.override.{SESSION}", "1", SESSION, "1"),
        (f"main.consumer.{SESSION}", "1", SESSION, "1"),
        (f"global.consumer.{SESSION}", "1", SESSION, "1"),
        (f"restore.consumer.{SESSION}", "1", SESSION, "1"),
        (f"kafka.{SESSION}", "1", SESSION, "1"),
        (f"kafka.consumer.{SESSION}", "1", SESSION, "1"),
        (f"mp.messaging.incoming.orders.{SESSION}", "1", SESSION, "1"),
        (f"%dev.mp.messaging.incoming.orders.{SESSION}", "1", SESSION, "1"),
        (f"mp.messaging.connector.smallrye-kafka.{SESSION}", "1", SESSION, "1"),
        (f"properties.{SESSION}", "1", SESSION, "1"),
        (f"'properties.{SESSION}'", "'1',", SESSION, "1"),
        (f"us-west.consumer.{SESSION}", "1", SESSION, "1"),
        (f"us->eu.consumer.{SESSION}", "1", SESSION, "1"),
        ("camel.component.kafka.session-timeout-ms", "1", SESSION, "1"),
        ("camel.component.kafka.configuration.autoOffsetReset", "x", "auto.offset.reset", "x"),
        (f"kafka.consumers.default.{SESSION}", "1", SESSION, "1"),
        (f"app.kafka.consumer.{SESSION}", "1", SESSION, "1"),
        # Of a group itself, in a file that has nothing of a client's.
        (f"consumer.{SESSION}", "45000", f"consumer.{SESSION}", "45000"),
    ],
)
def test_prefixes_are_read_through(key: str, value: str, name: str, read: str | None) -> None:
    file = read_through({key: value})
    assert file.clients == {"": {name: read or "read_committed"}}
    assert file.unknown == []


@pytest.mark.parametrize(
    ("key", "nearest"),
    [
        ("spring.kafka.consumer.auto-ofset-reset", "spring.kafka.consumer.auto-offset-reset"),
        (
            "spring.kafka.consumer.properties.session.timeout",
            f"spring.kafka.consumer.properties.{SESSION}",
        ),
        ("consumer.session.timeout", f"consumer.{SESSION}"),
        ("mp.messaging.incoming.orders.group-id", "mp.messaging.incoming.orders.group.id"),
        ("'properties.group-id'", "properties.group.id"),
    ],
)
def test_misspelled_behind_a_prefix(key: str, nearest: str) -> None:
    assert read_through({key: "x"}).unknown == [(key, nearest)]


def test_several_consumers_of_one_file() -> None:
    streams = {
        "application.id": "a",
        "client.id": "c",
        f"consumer.{SESSION}": "1",
        f"main.consumer.{SESSION}": "2",
        "global.consumer.max.poll.records": "3",
    }
    assert read_through(streams).clients == {
        "main": {"client.id": "c", SESSION: "2"},
        "global": {"client.id": "c", SESSION: "1", "max.poll.records": "3"},
    }
    connect = {"group.id": "w", "key.converter": "x", f"consumer.{SESSION}": "1"}
    assert read_through(connect).clients == {"worker": {"group.id": "w"}, "": {SESSION: "1"}}
    channels = {"kafka.client.id": "c", f"mp.messaging.incoming.a.{SESSION}": "1"}
    assert read_through(channels | {f"mp.messaging.incoming.b.{SESSION}": "2"}).clients == {
        "a": {"client.id": "c", SESSION: "1"},
        "b": {"client.id": "c", SESSION: "2"},
    }


def test_values_that_are_put_in_later() -> None:
    """Kafka itself puts nothing in unless it has a provider; a framework does."""
    assert read_through({SESSION: "${X}"}).clients == {"": {SESSION: "${X}"}}
    for settings in (
        {SESSION: "${env:X}", "config.providers": "env"},
        {f"spring.kafka.properties.{SESSION}": "${X:1}", "config.providers": "env"},
    ):
        assert read_through(settings).clients == {"": {"config.providers": "env"}}


def test_files_that_are_none_of_a_consumers(tmp_path: Path) -> None:
    contents = {
        "empty": b"",
        "comments": b"# nothing\n\n",
        "passwd": b"root:x:0:0:root:/root:/bin/bash\n",
        "application.yml": b"spring:\n  kafka:\n    consumer:\n      auto-offset-reset: earliest\n",
        "picture.png": b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR \\u00 \\uzz",
        "settings.json": b'{"group.id": "g"}',
        "secret": b"hunter2hunter2\n",
        "producer": b"linger.ms=1\n",
    }
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
    paths = [str(tmp_path / name) for name in contents]
    result = read_clients(paths, "4.4.0")
    assert (result.rows, result.without_settings) == ([], paths)
    # What is meant is said all the same.
    assert [(setting, detail.split()[-1]) for _, setting, _, _, detail in result.unknown] == [
        ("auto-offset-reset", "auto.offset.reset"),
        ('{"group.id"', "group.id"),
    ]
    assert result.misspelled_count == 2


def test_what_may_be_a_secret_is_named_by_its_line(tmp_path: Path) -> None:
    path = tmp_path / "c.properties"
    path.write_text(
        "group.id=g\nssl.keystore.key=-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0==\n"
        "abc/def+ghi=\n-----END PRIVATE KEY-----\nsasl.jass.config=hidden password=hunter2\n"
        "password=hunter2\neyJhbGciOi.eyJzdWIiOi=x\nmy.setting=hunter2\n"
    )
    result = read_clients([str(path)], "4.4.0")
    assert [row[2:] for row in result.rows] == [(None, None), ("group.id", "g")]
    assert [(setting, value) for _, setting, value, *_ in result.unknown] == [
        ("sasl.jass.config", None),
        ("my.setting", None),
        ("line 3", None),
    ]
    assert result.unknown[-1][-1] == "is not a setting of a Kafka client, nor 4 lines more"
    for text in ("MIIE", "abc", "hunter2", "eyJ", "END"):
        assert text not in repr(result)
    with pytest.raises(SettingsError, match="No such file"):
        read_clients([str(tmp_path / "none")], "4.4.0")
