"""One real Kafka node (KRaft, broker and controller in one) on loopback, in its own process.

Formatting its data folder takes a JVM of its own, and seconds: it is done once for each version of
Kafka, below ``build``, and every node starts from a copy.
"""

import contextlib
import os
import shutil
import socket
import subprocess
import time
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from tests.java import log4j2_file
from tests.kafka.jars import KAFKA_VERSION, broker_class_path

_FORMATTED = Path(__file__).parents[2] / "build" / "broker" / KAFKA_VERSION
_HOST = "127.0.0.1"
_START_SECONDS = 90

# It starts in seconds and lives for minutes: the second compiler would cost more than it gives.
_JAVA = ("java", "-Xmx512m", "-XX:TieredStopAtLevel=1")


@dataclass(frozen=True)
class Listener:
    """A further address for clients: its security protocol and the settings it needs."""

    protocol: str
    settings: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Broker:
    """A running node."""

    bootstrap_server: str
    addresses: Mapping[str, str]
    """Of the further listeners, by name."""
    pid: int


class Brokers(Protocol):
    """``running_broker``, as the fixture own_brokers hands it out."""

    def __call__(
        self,
        folder: Path,
        *,
        listeners: Mapping[str, Listener] | None = None,
        settings: Mapping[str, str] | None = None,
    ) -> AbstractContextManager[Broker]: ...


@contextlib.contextmanager
def running_broker(
    folder: Path,
    *,
    listeners: Mapping[str, Listener] | None = None,
    settings: Mapping[str, str] | None = None,
) -> Iterator[Broker]:
    """Serve from ``folder`` until the block ends, however it ends.

    Args:
        folder: Fresh; takes the configuration, the log and the data.
        listeners: Further listeners by name (upper case) beside the plain one.
        settings: Broker settings that take the place of the ones here.

    Raises:
        RuntimeError: the node did not come up; the text has the end of its log.
    """
    listeners = listeners or {}
    names = ["PLAIN_TEXT", "CONTROLLER", *listeners]
    ports = dict(zip(names, _free_ports(len(names)), strict=True))
    addresses = {name: f"{_HOST}:{port}" for name, port in ports.items()}
    config = folder / "server.properties"
    config.write_text(_properties(folder, addresses, listeners, settings or {}))
    log4j2_file(folder, "server.log")

    shutil.copytree(_formatted_data(), folder / "data")
    with (folder / "console.log").open("w") as console:
        process = subprocess.Popen(
            [*_java(folder), "kafka.Kafka", str(config)],
            env=_environment(),
            stdout=console,
            stderr=subprocess.STDOUT,
        )
    try:
        _wait_until_it_answers(process, ports["PLAIN_TEXT"], folder)
        yield Broker(
            addresses["PLAIN_TEXT"], {name: addresses[name] for name in listeners}, process.pid
        )
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _formatted_data() -> Path:
    """A data folder as ``kafka-storage format`` leaves it, the same for all nodes.

    Listeners and ports are not in it, and a node takes the id of its cluster from it.

    Raises:
        RuntimeError: it could not be formatted; the text has the end of what was said.
    """
    if _FORMATTED.is_dir():
        return _FORMATTED
    folder = _FORMATTED.with_name(f"{KAFKA_VERSION}.{os.getpid()}")
    folder.mkdir(parents=True)
    addresses = {name: f"{_HOST}:{port}" for name, port in (("PLAIN_TEXT", 1), ("CONTROLLER", 2))}
    config = folder / "server.properties"
    config.write_text(_properties(folder, addresses, {}, {}))
    log4j2_file(folder, "server.log")
    cluster_id = urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
    # In one word: an id may begin with a hyphen.
    format_folder = ["format", f"--cluster-id={cluster_id}", "--config", str(config)]
    with (folder / "console.log").open("w") as console:
        formatted = subprocess.run(
            [*_java(folder), "kafka.tools.StorageTool", *format_folder],
            env=_environment(),
            stdout=console,
            stderr=subprocess.STDOUT,
            timeout=_START_SECONDS,
            check=False,
        )
    if formatted.returncode:
        raise _failed("the broker's folder could not be formatted", folder)
    with contextlib.suppress(OSError):  # another run was faster
        (folder / "data").rename(_FORMATTED)
    shutil.rmtree(folder)
    return _FORMATTED


def _java(folder: Path) -> list[str]:
    return [*_JAVA, f"-Dlog4j2.configurationFile={(folder / 'log4j2.properties').as_uri()}"]


def _environment() -> dict[str, str]:
    return {**os.environ, "CLASSPATH": ":".join(map(str, broker_class_path()))}


def _properties(
    folder: Path,
    addresses: Mapping[str, str],
    listeners: Mapping[str, Listener],
    settings: Mapping[str, str],
) -> str:
    protocols = {name: listener.protocol for name, listener in listeners.items()}
    protocols |= {"PLAIN_TEXT": "PLAINTEXT", "CONTROLLER": "PLAINTEXT"}
    public = {name: address for name, address in addresses.items() if name != "CONTROLLER"}
    properties = {
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.quorum.voters": f"1@{addresses['CONTROLLER']}",
        "controller.listener.names": "CONTROLLER",
        "inter.broker.listener.name": "PLAIN_TEXT",
        "listeners": _joined(addresses, "://"),
        "advertised.listeners": _joined(public, "://"),
        "listener.security.protocol.map": _joined(protocols, ":"),
        "log.dirs": str(folder / "data"),
        "broker.rack": "rack-a",
        # One node cannot hold three replicas; few partitions make it start fast.
        "offsets.topic.num.partitions": "4",
        "offsets.topic.replication.factor": "1",
        "share.coordinator.state.topic.replication.factor": "1",
        "share.coordinator.state.topic.min.isr": "1",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        "auto.create.topics.enable": "false",
        # The first rebalance waits for members of a whole group to arrive, but not for long.
        "group.initial.rebalance.delay.ms": "500",
        "group.min.session.timeout.ms": "1000",
        # Members of the new protocol move by heartbeats, which come every five seconds else.
        "group.consumer.min.heartbeat.interval.ms": "500",
        "group.consumer.heartbeat.interval.ms": "500",
        "num.network.threads": "2",
        "num.io.threads": "4",
        "log.cleaner.dedupe.buffer.size": "4194304",
    }
    for name, listener in listeners.items():
        prefix = f"listener.name.{name.lower()}."
        properties |= {prefix + key: value for key, value in listener.settings.items()}
    properties |= settings
    return "".join(f"{key}={value}\n" for key, value in properties.items())


def _joined(pairs: Mapping[str, str], between: str) -> str:
    return ",".join(f"{name}{between}{value}" for name, value in pairs.items())


def _free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind((_HOST, 0))
        return [each.getsockname()[1] for each in sockets]


def _wait_until_it_answers(process: "subprocess.Popen[bytes]", port: int, folder: Path) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        with contextlib.suppress(OSError), socket.create_connection((_HOST, port), 1):
            return
        time.sleep(0.1)
    raise _failed("the Kafka broker did not start", folder)


def _failed(reason: str, folder: Path) -> RuntimeError:
    lines = [
        line
        for name in ("console.log", "server.log")
        if (folder / name).is_file()
        for line in (folder / name).read_text().splitlines()[-15:]
    ]
    return RuntimeError(f"{reason}:\n" + "\n".join(lines))
