"""Listeners of every kind, and what is said when there is no connection."""

import logging
import socket
import sys
import time
from pathlib import Path

import pytest

from kassign_spark.errors import ClusterError, SettingsError
from kassign_spark.live.live_snapshot import read_cluster
from tests.kafka.broker import Brokers
from tests.kafka.secured import SecuredBroker
from tests.kafka.topics import create_topics


@pytest.fixture(autouse=True)
def _short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kassign_spark.live.admin._BOOTSTRAP_MS", 2_000)


@pytest.mark.parametrize("listener", ["SASL", "TLS"])
def test_secured_listeners(broker: SecuredBroker, listener: str) -> None:
    create_topics(broker.bootstrap_server, {f"connection-{listener}": 2})
    known = broker.credentials
    properties = known.tls_properties() if listener == "TLS" else known.sasl_properties()
    result = read_cluster(broker.addresses[listener], properties)
    known = [row[:4] for row in result.topics]  # and an id, which no one can know before
    assert (None, f"connection-{listener}", 2, [["rack-a"]] * 2) in known


def test_secrets_are_in_no_error_and_no_log(
    broker: SecuredBroker, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    wrong = "correct-horse-battery"
    properties = broker.credentials.sasl_properties(wrong)
    with caplog.at_level(logging.DEBUG), pytest.raises(ClusterError) as refused:
        read_cluster(broker.addresses["SASL"], properties)
    with pytest.raises(SettingsError) as unknown:
        read_cluster(broker.addresses["SASL"], {**properties, "sasl.login.class": wrong})
    assert "sasl.jaas.config" in str(refused.value)
    assert str(unknown.value) == "client properties: sasl.login.class is not supported"
    printed = "".join(capfd.readouterr())
    for text in (repr(refused.value), repr(unknown.value), caplog.text, printed):
        assert wrong not in text
    assert refused.value.__cause__ is None


@pytest.mark.parametrize("address", ["localhost", "", "host:9092,", "a b:1", "host:port"])
def test_an_address_that_is_none(address: str) -> None:
    with pytest.raises(ClusterError, match=r"is not host:port"):
        read_cluster(address)


def test_nobody_listens() -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{bound.getsockname()[1]}"
        started = time.monotonic()
        with pytest.raises(ClusterError, match=f"no answer from Kafka at {address}") as error:
            read_cluster(address)
    assert time.monotonic() - started < 6
    assert "\n" not in str(error.value)


def test_a_plain_client_at_a_tls_listener(broker: SecuredBroker) -> None:
    with pytest.raises(ClusterError, match=r"security\.protocol"):
        read_cluster(broker.addresses["TLS"])


def test_a_broker_that_advertises_an_address_out_of_reach(
    own_brokers: Brokers, tmp_path: Path
) -> None:
    advertised = {"advertised.listeners": "PLAIN_TEXT://127.0.0.1:1"}
    with (
        own_brokers(tmp_path, settings=advertised) as broker,
        pytest.raises(ClusterError, match="addresses that the brokers advertise"),
    ):
        read_cluster(broker.bootstrap_server)


def test_without_kafka_python(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "kafka", None)
    with pytest.raises(ClusterError, match=r"pip install 'kassign-spark\[live\]'"):
        read_cluster("127.0.0.1:9092")
