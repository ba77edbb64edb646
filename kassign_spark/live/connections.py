"""Connections to brokers: receive piece by piece, and explain a TLS handshake that fails.

kafka-python reads on for as long as there is something, and looks at the length that an answer says
only then: who sends fast enough takes all the memory there is. When a handshake fails, it retries
until time is up.
"""

import socket
import ssl
from collections.abc import Iterable
from functools import partial
from typing import Any

_TLS_MS = 10_000
"""Time for the whole handshake with one address."""
_TRUST = "check ssl.truststore.* in the client properties file"
_PIECE_BYTES = 1 << 20
_WAIT = (BlockingIOError, InterruptedError, ssl.SSLWantReadError, ssl.SSLWantWriteError)


def net_client(**settings: Any) -> Any:
    """Return what ``KafkaAdminClient`` takes as ``kafka_client``."""
    from kafka.net.compat import KafkaNetClient
    from kafka.net.manager import KafkaConnectionManager
    from kafka.net.selector import NetworkSelector

    class Manager(KafkaConnectionManager):  # type: ignore[misc]
        async def _build_transport(self, *arguments: Any, **named: Any) -> Any:
            transport = await super()._build_transport(*arguments, **named)
            transport._sock_recv = partial(_receive, transport._sock)
            return transport

    net = NetworkSelector(**settings)
    return KafkaNetClient(net=net, manager=Manager(net, **settings), **settings)


def _receive(connection: Any) -> tuple[bytes, Exception | None]:
    """Return the bytes received so far, and the error if there was one."""
    from kafka.errors import KafkaConnectionError

    piece = bytearray()
    # No selector reports what TLS has decrypted already, so it has to be read.
    while len(piece) < _PIECE_BYTES or (
        isinstance(connection, ssl.SSLSocket) and connection.pending()
    ):
        try:
            data = connection.recv(1 << 16)
        except _WAIT:
            break
        except OSError:
            return bytes(piece), KafkaConnectionError("the connection broke")
        if not data:
            return bytes(piece), KafkaConnectionError("the other side closed")
        piece += data
    return bytes(piece), None


def tls_problem(
    addresses: Iterable[str], context: ssl.SSLContext, timeout_ms: int = _TLS_MS
) -> str | None:
    """Try a TLS handshake with each address; None: one succeeded, else why the last failed."""
    problem = None
    for address in addresses:
        problem = _problem(address, context, timeout_ms / 1000)
        if problem is None:
            return None
    return problem


def speaks_tls(address: str, timeout_ms: int = 2_000) -> bool:
    """Return whether a server answers a TLS handshake, whatever its certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return _problem(address, context, timeout_ms / 1000) is None


def _problem(address: str, context: ssl.SSLContext, seconds: float) -> str | None:
    host, _, port = address.rpartition(":")
    host = host.strip("[]")
    try:
        with (
            socket.create_connection((host, int(port)), seconds) as plain,
            context.wrap_socket(plain, server_hostname=host.rstrip(".")),
        ):
            return None
    except ssl.SSLCertVerificationError as error:
        return f"its certificate is refused ({error.verify_message.rstrip('.')}); {_TRUST}"
    except TimeoutError:
        return "it did not finish the TLS handshake in time; check that the listener speaks TLS"
    except (ssl.SSLError, ConnectionResetError) as error:
        reason = getattr(error, "reason", None) or type(error).__name__
        return (
            f"its answer to the TLS handshake is none ({reason}); check that the listener speaks "
            "TLS (security.protocol), and whether it asks for a certificate (ssl.keystore.*)"
        )
    except (OSError, ValueError, OverflowError):  # nobody there, or no such host or port
        return "no answer; check the address, and that a broker listens there"
