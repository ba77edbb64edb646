"""A connection of kafka-python's admin client whose every failure is one clear line."""

import contextlib
import logging
import queue
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from importlib.util import find_spec
from typing import Any

from kassign_spark.display import mask_address
from kassign_spark.errors import ClusterError, KassignError, SettingsError
from kassign_spark.live.client_properties import admin_settings
from kassign_spark.live.connections import net_client, speaks_tls, tls_problem

_BOOTSTRAP_MS = 10_000
_REQUEST_MS = 30_000
_OF_CONNECTION = ("security.", "sasl.", "ssl.")
_GRACE_MS = 1_000
"""Time for the clean-up of kafka-python after its own time is up."""
_LOADING_SECONDS, _LOADING_PAUSE_SECONDS = 60.0, 0.5
ATTEMPTS, PAUSE_SECONDS = 4, 1.0
"""How often to ask for what changes while it is read, and how long to wait in between."""
_MOST_ANSWER_BYTES = 100_000_000
"""An answer that says it has more is refused before a byte of it is held."""
_ADDRESS = re.compile(r"(?:\[[0-9A-Fa-f:.%]+\]|[^\s:,\[\]]+):[0-9]{1,5}")


@contextlib.contextmanager
def admin_client(bootstrap_server: str, properties: Mapping[str, str]) -> Iterator[Any]:
    """Open a connected client; any failure is one ClusterError without the cause's text.

    Each call of it ends in time, whatever the other side does: kafka-python waits without a limit
    for the end of a TLS handshake, and for brokers that it connects to later.

    Raises:
        ClusterError: also where kafka-python is not installed.
        SettingsError: a property is not understood; only its key is named.
    """
    check_address(bootstrap_server)
    settings = admin_settings(properties)
    try:
        import kafka
        from kafka import errors
    except ImportError:
        raise ClusterError(
            "reading a live cluster needs kafka-python: pip install 'kassign-spark[live]'"
        ) from None
    admin = None
    servers = bootstrap_server.split(",")
    if context := settings.get("ssl_context"):
        problem = tls_problem(servers, context, settings.get("request_timeout_ms", _BOOTSTRAP_MS))
        if problem is not None:
            raise ClusterError(f"Kafka at {bootstrap_server}: {problem}")
    request_ms = settings.setdefault("request_timeout_ms", _REQUEST_MS)
    with _silenced("kafka"):
        try:
            defaults = {
                "client_id": "kassign-spark",
                "bootstrap_timeout_ms": _BOOTSTRAP_MS,
                "receive_message_max_bytes": _MOST_ANSWER_BYTES,
                "kafka_client": net_client,
            }
            create = partial(kafka.KafkaAdminClient, bootstrap_servers=servers)
            admin = call_in_time(create, _BOOTSTRAP_MS + _GRACE_MS, **{**defaults, **settings})
            yield _InTime(admin, _BOOTSTRAP_MS + request_ms + _GRACE_MS)
        except KassignError:
            raise
        except Exception as error:  # whatever the library throws: its text may hold settings
            message = _explain_error(
                error, connected=admin is not None, login="sasl_mechanism" in settings
            )
            plain = admin is None and "ssl_context" not in settings
            if plain and any(map(speaks_tls, servers)):
                message = (
                    "Kafka at {address} speaks TLS; set security.protocol to SSL or SASL_SSL, and "
                    "ssl.truststore.*, in the client properties file (--command-config)"
                )
            raise ClusterError(message.format(address=bootstrap_server)) from None
        finally:
            if admin is not None:
                with contextlib.suppress(errors.KafkaTimeoutError):
                    call_in_time(admin.close, _GRACE_MS)


def check_address(bootstrap_server: str) -> None:
    """Refuse what is not an address.

    Raises:
        ClusterError: it is not host:port, or several with commas, or has a login.
    """
    refuse_login(bootstrap_server)
    if not all(_ADDRESS.fullmatch(address) for address in bootstrap_server.split(",")):
        raise ClusterError(
            f"bootstrap server {bootstrap_server!r} is not host:port (several with commas)"
        )


def check_answers(bootstrap_server: str, properties: Mapping[str, str]) -> None:
    """Check that a broker answers, for clients that wait without a limit, such as Spark's.

    Raises:
        ClusterError: none does, or it does not let us in.
    """
    of_connection = {
        key: value for key, value in properties.items() if key.startswith(_OF_CONNECTION)
    }
    try:
        admin_settings(of_connection)
    except SettingsError:  # what a Java client may well understand
        return
    if find_spec("kafka") is not None:
        with admin_client(bootstrap_server, of_connection):
            pass


def refuse_login(bootstrap_server: str) -> None:
    """Refuse an address with a login, which no message shows.

    Raises:
        ClusterError: it has something before an ``@``.
    """
    if (address := mask_address(bootstrap_server)) != bootstrap_server:
        raise ClusterError(
            f"bootstrap server {address!r}: has a login before its @; write host:port (several "
            "with commas), and the login into the client properties file (--command-config)"
        )


def list_groups(admin: Any, broker: int) -> list[dict[str, Any]]:
    """List the groups that a broker coordinates; wait while it loads them, as Java's client does.

    Raises:
        CoordinatorLoadInProgressError: it still does after a minute.
    """
    from kafka.errors import CoordinatorLoadInProgressError

    deadline = time.monotonic() + _LOADING_SECONDS
    while True:
        try:
            groups: list[dict[str, Any]] = admin.list_groups(broker_ids=[broker])
        except CoordinatorLoadInProgressError:
            if time.monotonic() >= deadline:
                raise
            time.sleep(_LOADING_PAUSE_SECONDS)
        else:
            return groups


def send(admin: Any, request: Any, **to: int) -> Any:
    """Send a request that the client has no call for, to the broker ``node_id`` or to any."""

    async def ask() -> Any:
        return await admin._manager.send(request, **to)

    call = partial(admin._manager.run, ask)
    return admin.in_time(call) if isinstance(admin, _InTime) else call()


def call_in_time(
    call: Callable[..., Any], milliseconds: float, *arguments: Any, **named: Any
) -> Any:
    """Make a call, and wait for its response at most this long.

    Raises:
        KafkaTimeoutError: there was none. The call goes on in a thread that does not keep Python.
    """
    from kafka.errors import KafkaTimeoutError

    outcome: queue.Queue[tuple[Any, BaseException | None]] = queue.Queue()

    def run() -> None:
        try:
            outcome.put((call(*arguments, **named), None))
        except BaseException as error:  # for who waits
            outcome.put((None, error))

    threading.Thread(target=run, daemon=True).start()
    try:
        answer, error = outcome.get(timeout=milliseconds / 1000)
    except queue.Empty:
        raise KafkaTimeoutError from None
    if error is not None:
        raise error
    return answer


class _InTime:
    """An admin client whose calls time out."""

    def __init__(self, admin: Any, milliseconds: float) -> None:
        self._admin, self._milliseconds = admin, milliseconds

    def in_time(self, call: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        """Call a function that is not a method of the client, with the same timeout."""
        return call_in_time(call, self._milliseconds, *arguments, **named)

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self._admin, name)
        return (
            partial(self.in_time, attribute)
            if callable(attribute) and name[0] != "_"
            else attribute
        )


def batches(items: Sequence[Any], size: int = 100) -> Iterator[Sequence[Any]]:
    """Cut into pieces that one request asks for."""
    for start in range(0, len(items), size):
        yield items[start : start + size]


def _explain_error(error: Exception, *, connected: bool, login: bool) -> str:
    """Explain an error by its class and say what to check: its text may contain settings."""
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
    """Drop the records of a library's loggers: we print one message, and theirs show settings."""
    existing = [name, *(n for n in logging.root.manager.loggerDict if n.startswith(f"{name}."))]
    levels = {logger: logging.getLogger(logger).level for logger in existing}
    for logger in levels:
        logging.getLogger(logger).setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        for logger, level in levels.items():
            logging.getLogger(logger).setLevel(level)
