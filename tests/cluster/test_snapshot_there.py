"""``snapshot`` on a cluster, from a real broker that asks for a login: secrets, and its faults."""

import json
import logging
import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer
from pyspark.sql import SparkSession

from kassign_spark import cli
from tests.cluster.standalone import Standalone, end_driver
from tests.kafka.broker import Brokers
from tests.kafka.secured import SETTINGS, SecuredBroker, secured_listeners
from tests.kafka.topics import create_topics

pytestmark = pytest.mark.slow

_HEAD = "kassign-spark: error: "


@pytest.fixture(scope="module")
def mortal(
    own_brokers: Brokers, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SecuredBroker]:
    """A broker that the last test of this module kills."""
    folder = tmp_path_factory.mktemp("mortal")
    credentials, listeners = secured_listeners(folder)
    with own_brokers(folder, listeners=listeners, settings=SETTINGS) as running:
        create_topics(running.bootstrap_server, {"secured": 3})
        yield SecuredBroker(running.bootstrap_server, running.addresses, running.pid, credentials)


@pytest.fixture
def properties(mortal: SecuredBroker, tmp_path: Path) -> Path:
    path = tmp_path / "client.properties"
    return _write(path, mortal.credentials.sasl_properties() | {"request.timeout.ms": "4000"})


def _write(path: Path, properties: dict[str, str]) -> Path:
    path.write_text("".join(f"{key}={value}\n" for key, value in properties.items()))
    return path


def _arguments(broker: SecuredBroker, properties: Path, output: Path) -> list[str]:
    address = ["--bootstrap-server", broker.addresses["SASL"]]
    options = ["--command-config", str(properties), "--format", "json"]
    return ["snapshot", *address, *options, "--output", str(output)]


class _CommandLines(threading.Thread):
    """What ``ps`` shows of all processes, again and again while one runs."""

    def __init__(self, running: "subprocess.Popen[str]") -> None:
        super().__init__(daemon=True)
        self.seen: set[bytes] = set()
        self._running = running
        self.start()

    def run(self) -> None:
        while self._running.poll() is None:
            for shown in Path("/proc").glob("[0-9]*/cmdline"):
                try:
                    self.seen.add(shown.read_bytes())
                except OSError:  # it has ended
                    continue
            time.sleep(0.2)


def test_no_secret_is_anywhere(
    cluster: Standalone, mortal: SecuredBroker, properties: Path, tmp_path: Path
) -> None:
    """The right password, everything logged: output, logs, event log, all files, ``ps``."""
    events = cluster.folder / "events"
    events.mkdir()
    logged: dict[str, str | None] = {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.compress": "false",
        "spark.eventLog.dir": events.as_uri(),
        "spark.log.level": "DEBUG",
    }
    output = tmp_path / "snapshot"
    arguments = [*_arguments(mortal, properties, output), "--verbose", "--json"]
    running = cluster.submit(*arguments, settings=logged)
    shown = _CommandLines(running)
    printed, _ = running.communicate(timeout=600)
    shown.join()
    assert running.returncode == 0, printed
    assert json.loads(printed)["topic_count"] == 1
    secret = mortal.credentials.password
    assert secret not in printed
    assert any(str(properties).encode() in line for line in shown.seen)
    assert not any(secret.encode() in line for line in shown.seen)
    files = [path for path in (*cluster.folder.rglob("*"), *output.rglob("*")) if path.is_file()]
    texts = {path: path.read_bytes() for path in files}
    assert any(b"SparkListenerJobEnd" in text for text in texts.values()), "no event log"
    assert any(b" DEBUG " in text for text in texts.values()), "no log of details"
    assert [path for path, text in texts.items() if secret.encode() in text] == []


def test_no_secret_is_in_an_error(
    spark: SparkSession,
    mortal: SecuredBroker,
    properties: Path,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A wrong password, and secrets where none is wanted; all of Python's logs are kept."""
    monkeypatch.setattr("kassign_spark.live.admin._BOOTSTRAP_MS", 3_000)
    caplog.set_level(logging.DEBUG)
    wrong, key, store = ("wrong-password-of-login", "password-of-the-key", "password-of-the-store")
    login = mortal.credentials.sasl_properties(wrong)
    tls = {
        **mortal.credentials.tls_properties(),
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(mortal.credentials.certificate),
    }
    for options, named in (
        (login, "sasl.jaas.config"),
        (login | {"sasl.mechanism": "SCRAM-SHA-256"}, "sasl.jaas.config must read"),
        (login | {"sasl.jaas.config": f"x password={wrong}"}, "sasl.jaas.config must read"),
        (login | {"ssl.key.password": key}, "ssl.key.password: security.protocol is not one"),
        (tls | {"ssl.key.password": key}, "ssl.keystore.location or ssl.key.password: no PEM"),
        (tls | {"ssl.truststore.password": store}, "ssl.truststore.password is not supported"),
    ):
        _write(properties, options)
        arguments = [*_arguments(mortal, properties, tmp_path / "snapshot"), "--verbose"]
        assert cli.main([*arguments, "--json"]) == 2
        printed, errors = capfd.readouterr()
        assert printed == ""
        assert named in errors.splitlines()[-1]
        for secret in (wrong, key, store):
            assert secret not in errors
            assert secret not in caplog.text
        assert list(tmp_path.iterdir()) == [properties]


def test_check_settings_shows_no_secret(
    spark: SparkSession, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    secrets = {
        "sasl.jaas.config": 'x required username="planner" password="secret-1";',
        "ssl.key.password": "secret-2",
        "ssl.truststore.password": "secret-3",
    }
    file = _write(tmp_path / "consumer.properties", secrets | {"session.timeout.ms": "none"})
    result = tmp_path / "found"
    arguments = ["check-settings", str(file), "--client-version", "4.1.0", "--output", str(result)]
    assert cli.main([*arguments, "--format", "json", "--json", "--verbose"]) == 1
    printed = "".join(capfd.readouterr())
    written = "".join(part.read_text() for part in result.rglob("part-*"))
    for text in (printed, written):
        assert "session.timeout.ms" in text
        assert "secret-" not in text


def test_a_snapshot_cut_short(
    spark: SparkSession,
    cluster: Standalone,
    mortal: SecuredBroker,
    properties: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    snapshot = tmp_path / "snapshot"
    running = cluster.submit(*_arguments(mortal, properties, snapshot))
    deadline = time.monotonic() + 300
    while not list(tmp_path.glob(".snapshot.*.writing/members")):
        assert running.poll() is None, running.communicate()[0]
        assert time.monotonic() < deadline
        time.sleep(0.02)
    end_driver(running, signal.SIGKILL)
    assert cli.main(["validate", str(snapshot)]) == 2
    assert capsys.readouterr().err == f"{_HEAD}folder {snapshot}: not found\n"
    assert list(tmp_path.glob(".snapshot.*")) == [], "Python tidies up where Java is gone"
    assert cli.main(_arguments(mortal, properties, snapshot)) == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["client.properties", "snapshot"]


def test_a_broker_that_dies(
    cluster: Standalone, mortal: SecuredBroker, properties: Path, tmp_path: Path
) -> None:
    """The last test here. A group that does not settle keeps ``snapshot`` asking meanwhile."""
    consumers = [
        Consumer(
            {
                "bootstrap.servers": mortal.bootstrap_server,
                "group.id": "unsettled",
                "session.timeout.ms": 300_000,
                "max.poll.interval.ms": 300_000,
            }
        )
        for _ in range(2)
    ]
    stuck, joining = consumers
    stuck.subscribe(["secured"])
    deadline = time.monotonic() + 60
    while not stuck.assignment():
        assert time.monotonic() < deadline
        stuck.poll(0.1)
    joining.subscribe(["secured"])
    joining.poll(2)
    output = tmp_path / "new" / "snapshot"
    running = cluster.submit(*_arguments(mortal, properties, output))
    assert running.stdout is not None
    printed = []
    for line in running.stdout:
        printed.append(line)
        if "are not stable, asking again" in line and len(printed) < 10:
            os.kill(mortal.pid, signal.SIGKILL)
    assert running.wait(300) == 2, printed
    errors = [line for line in printed if line.startswith(_HEAD)]
    assert len(errors) == 1
    assert printed[-1] == errors[0]
    assert mortal.addresses["SASL"] in errors[0]
    assert not any("Traceback" in line for line in printed)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["client.properties"]
