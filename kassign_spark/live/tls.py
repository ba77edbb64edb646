"""Explain a broker's answer to a TLS handshake: kafka-python retries until time is up."""

import socket
import ssl
from collections.abc import Iterable

_TLS_MS = 10_000
"""Time for the whole handshake with one address."""
_TRUST = "check ssl.truststore.* in the client properties file"


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
