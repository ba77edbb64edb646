"""A connection of kafka-python's admin client whose every failure is one clear line."""

import contextlib
import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kassign_spark.display import masked
from kassign_spark.errors import ClusterError, KassignError
from kassign_spark.live.client_properties import admin_settings

_BOOTSTRAP_MS = 10_000
_REQUEST_MS = 30_000
_ADDRESS = re.compile(r"(?:\[[0-9A-Fa-f:.%]+\]|[^\s:,\[\]]+):[0-9]{1,5}")


@contextlib.contextmanager
def admin_client(bootstrap_server: str, properties: Mapping[str, str]) -> Iterator[Any]:
    """A connected client; what goes wrong with it is one ClusterError without the cause's text.

    Raises:
        ClusterError: also where kafka-python is not installed.
        SettingsError: a property is not understood; only its key is named.
    """
    check_address(bootstrap_server)
    settings = admin_settings(properties)
    try:
        import kafka
    except ImportError:
        raise ClusterError(
            "reading a live cluster needs kafka-python: pip install 'kassign-spark[live]'"
        ) from None
    admin = None
    with _silenced("kafka"):
        try:
            defaults = {
                "client_id": "kassign-spark",
                "bootstrap_timeout_ms": _BOOTSTRAP_MS,
                "request_timeout_ms": _REQUEST_MS,
            }
            servers = bootstrap_server.split(",")
            admin = kafka.KafkaAdminClient(bootstrap_servers=servers, **{**defaults, **settings})
            yield admin
        except KassignError:
            raise
        except Exception as error:  # whatever the library throws: its text may hold settings
            message = _explained(
                error, connected=admin is not None, login="sasl_mechanism" in settings
            )
            raise ClusterError(message.format(address=bootstrap_server)) from None
        finally:
            if admin is not None:
                admin.close()


def check_address(bootstrap_server: str) -> None:
    """Refuse what is no address.

    Raises:
        ClusterError: it is not host:port, or several with commas, or has a login.
    """
    refuse_login(bootstrap_server)
    if not all(_ADDRESS.fullmatch(address) for address in bootstrap_server.split(",")):
        raise ClusterError(
            f"bootstrap server {bootstrap_server!r} is not host:port (several with commas)"
        )


def refuse_login(bootstrap_server: str) -> None:
    """Refuse an address with a login, which no message shows.

    Raises:
        ClusterError: it has something before an ``@``.
    """
    if (address := masked(bootstrap_server)) != bootstrap_server:
        raise ClusterError(
            f"bootstrap server {address!r}: has a login before its @; write host:port (several "
            "with commas), and the login into the client properties file (--command-config)"
        )


def send(admin: Any, request: Any, **to: int) -> Any:
    """Send a request that the client has no call for, to the broker ``node_id`` or to any."""

    async def ask() -> Any:
        return await admin._manager.send(request, **to)

    return admin._manager.run(ask)


def batches(items: Sequence[Any], size: int = 100) -> Iterator[Sequence[Any]]:
    """Cut into pieces that one request asks for."""
    for start in range(0, len(items), size):
        yield items[start : start + size]


def _explained(error: Exception, *, connected: bool, login: bool) -> str:
    """What went wrong and what to check, by the error's class: its text may hold settings."""
    from kafka import errors

    name = type(error).__name__
    if "Authentication" in name or "Sasl" in name:
        return (
            f"Kafka at {{address}} refused the login ({name}); check security.protocol, "
            "sasl.mechanism and sasl.jaas.config in the client properties file"
        )
    if "Authorization" in name:
        return (
            f"Kafka at {{address}} does not let this user read it ({name}); "
            "it needs DESCRIBE on the cluster, its topics and its groups"
        )
    if not isinstance(error, errors.KafkaTimeoutError | errors.KafkaConnectionError | OSError):
        return f"reading Kafka at {{address}} failed ({name})"
    if connected:
        return (
            f"Kafka at {{address}} answers, but a broker of its cluster does not ({name}); check "
            "that the addresses that the brokers advertise can be reached from here"
        )
    # A refused login ends here too: kafka-python tries again until its time is over.
    sasl = ", sasl.mechanism and sasl.jaas.config" if login else ""
    return (
        f"no answer from Kafka at {{address}} ({name}); check the address, that a "
        "broker listens there, and that the client properties file fits that listener: "
        f"security.protocol (PLAINTEXT where no file is given){sasl}"
    )


@contextlib.contextmanager
def _silenced(name: str) -> Iterator[None]:
    """No record of a library's loggers: ours is the one message, and theirs show settings."""
    existing = [name, *(n for n in logging.root.manager.loggerDict if n.startswith(f"{name}."))]
    levels = {logger: logging.getLogger(logger).level for logger in existing}
    for logger in levels:
        logging.getLogger(logger).setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        for logger, level in levels.items():
            logging.getLogger(logger).setLevel(level)
