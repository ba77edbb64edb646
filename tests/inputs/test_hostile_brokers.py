"""Servers that hang, send too much or speak another protocol: one clear line, in time."""

import contextlib
import datetime as dt
import resource
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kassign_spark.errors import ClusterError
from kassign_spark.live import admin, connections
from kassign_spark.live.live_snapshot import read_cluster

Answer = Callable[[socket.socket, threading.Event], None]
_LONGEST = b"\x7f\xff\xff\xff"
"""A length of 2^31-1 bytes."""


@contextlib.contextmanager
def _server(answer: Answer) -> Iterator[str]:
    """A server on loopback that treats every connection so, and its address."""
    ended = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            while not ended.is_set():
                try:
                    connection, _ = listening.accept()
                except OSError:
                    return
                threading.Thread(target=treat, args=(connection,), daemon=True).start()

        def treat(connection: socket.socket) -> None:
            with contextlib.suppress(OSError, ssl.SSLError), connection:
                answer(connection, ended)

        threading.Thread(target=serve, daemon=True).start()
        yield f"127.0.0.1:{listening.getsockname()[1]}"
        ended.set()


def _silent(_: socket.socket, ended: threading.Event) -> None:
    ended.wait(60)


def _dribbling(connection: socket.socket, ended: threading.Event) -> None:
    # The head of a TLS record of 16,384 bytes, and then a byte now and again.
    connection.sendall(b"\x16\x03\x03\x40\x00")
    while not ended.wait(0.1):
        connection.sendall(b"\x02")


def _garbage(connection: socket.socket, ended: threading.Event) -> None:
    connection.recv(10_000)
    connection.sendall(bytes(range(256)) * 10)
    ended.wait(60)


def _without_end(head: bytes) -> Answer:
    def answer(connection: socket.socket, ended: threading.Event) -> None:
        connection.recv(10_000)
        connection.sendall(head)
        while not ended.is_set():
            connection.sendall(bytes(1 << 20))

    return answer


def _dribbling_answer(connection: socket.socket, ended: threading.Event) -> None:
    connection.recv(10_000)
    connection.sendall(b"\0\0\1\0\0\0\0\1")
    while not ended.wait(0.05):
        connection.sendall(b"\0")


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admin, "_BOOTSTRAP_MS", 800)
    monkeypatch.setattr(admin, "_REQUEST_MS", 800)
    monkeypatch.setattr(admin, "_GRACE_MS", 500)


def _refused(address: str, protocol: str = "PLAINTEXT", **properties: str) -> tuple[str, float]:
    started = time.monotonic()
    with pytest.raises(ClusterError) as error:
        read_cluster(address, {"security.protocol": protocol, **properties})
    return str(error.value), time.monotonic() - started


@pytest.mark.parametrize("protocol", ["PLAINTEXT", "SSL", "SASL_SSL"])
@pytest.mark.parametrize(
    "answer",
    [_silent, _dribbling, _garbage, _dribbling_answer, _without_end(_LONGEST)],
    ids=["silent", "dribbling", "garbage", "dribbling answer", "without end"],
)
def test_a_server_that_is_no_broker(answer: Answer, protocol: str) -> None:
    login = {
        "sasl.mechanism": "PLAIN",
        "sasl.jaas.config": "org.apache.kafka.common.security.plain.PlainLoginModule required "
        'username="hunter1" password="hunter2";',
    }
    with _server(answer) as address:
        message, seconds = _refused(address, protocol, **(login if "SASL" in protocol else {}))
    assert seconds < 6
    assert address in message
    assert "hunter" not in message
    assert "security.protocol" in message or "TLS handshake" in message


@pytest.mark.parametrize(
    "head",
    [
        _LONGEST,
        # An answer of 20 MB whose array says that it has 2^31-1 elements.
        (20_000_000).to_bytes(4, "big") + b"\0\0\0\1\0\0\xff\xff\xff\xff\x07",
    ],
    ids=["2^31-1 bytes", "2^31-1 elements"],
)
def test_an_answer_that_says_it_is_huge_takes_no_memory(head: bytes) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with _server(_without_end(head)) as address:
        message, seconds = _refused(address)
    assert "no answer from Kafka" in message
    assert seconds < 6
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 250_000, "kilobytes"


class _Fast:
    """A connection on which there is always more."""

    def recv(self, size: int) -> bytes:
        return bytes(size)


def test_a_fast_sender_is_read_piece_by_piece() -> None:
    data, error = connections._receive(_Fast())
    assert error is None
    assert len(data) == connections._PIECE_BYTES


def test_spark_is_asked_only_where_somebody_answers() -> None:
    with _server(_silent) as address:
        with pytest.raises(ClusterError, match="no answer from Kafka"):
            admin.check_answers(address, {"bootstrap.servers": address, "group.id": "x"})
        with pytest.raises(ClusterError, match="TLS handshake"):
            admin.check_answers(address, {"security.protocol": "SSL"})
        # Java reads other stores than PEM, so it is asked.
        admin.check_answers(address, {"security.protocol": "SSL", "ssl.truststore.type": "JKS"})


@pytest.fixture(scope="module")
def certificate(own_processes: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """PEM, of another host than 127.0.0.1, with its key."""
    path = tmp_path_factory.mktemp("tls") / "server.pem"
    key = path.with_name("key.pem")
    request = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=elsewhere"]
    made = ["-days", "2", "-keyout", str(key), "-out", str(path)]
    subprocess.run([*request, *made], check=True, capture_output=True, timeout=60)
    path.write_text(key.read_text() + path.read_text())
    return path


def _tls(certificate: Path) -> Answer:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)

    def answer(connection: socket.socket, ended: threading.Event) -> None:
        with context.wrap_socket(connection, server_side=True):
            ended.wait(60)

    return answer


def test_a_certificate_of_nobody_that_is_trusted(certificate: Path) -> None:
    with _server(_tls(certificate)) as address:
        message, seconds = _refused(address, "SSL")
    assert "its certificate is refused (self-signed certificate)" in message
    assert "ssl.truststore" in message
    assert seconds < 3


def test_a_certificate_of_another_host(certificate: Path) -> None:
    trusted = {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(certificate)}
    with _server(_tls(certificate)) as address:
        message, seconds = _refused(address, "SSL", **trusted)
        assert "its certificate is refused (IP address mismatch" in message
        assert seconds < 3
        # It hangs after a handshake that is fine.
        unchecked = {**trusted, "ssl.endpoint.identification.algorithm": ""}
        message, seconds = _refused(address, "SSL", **unchecked)
    assert "no answer from Kafka" in message
    assert seconds < 6


def test_a_plain_client_at_a_tls_server(certificate: Path) -> None:
    with _server(_tls(certificate)) as address:
        message, seconds = _refused(address)
    assert message.startswith(f"Kafka at {address} speaks TLS; set security.protocol to SSL")
    assert seconds < 6


def test_a_call_that_never_ends() -> None:
    from kafka.errors import KafkaTimeoutError

    with pytest.raises(KafkaTimeoutError):
        admin.call_in_time(threading.Event().wait, 100)
    with pytest.raises(ZeroDivisionError):
        admin.call_in_time(lambda: 1 // 0, 1_000)
    assert admin.call_in_time(dt.timedelta, 1_000, 2) == dt.timedelta(2)
