"""A client of kafka-python that reads what a broker sends piece by piece.

Its own reads on for as long as there is something, and looks at the length that an answer says only
then: who sends fast enough takes all the memory there is.
"""

import ssl
from functools import partial
from typing import Any

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
