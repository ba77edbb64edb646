"""The session of a command on a Spark that runs already: through Spark Connect.

Nothing of ours is installed there. The package goes along with the session (Spark's artifacts), and
the server's Python workers need numpy and pyarrow alone.
"""

import os
import socket
import sys
import tempfile
import threading
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pyspark
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from kassign_spark.errors import KassignError, SessionError
from kassign_spark.interrupts import cancel_with
from kassign_spark.spark.local_server import is_served
from kassign_spark.spark.sessions import NO_CHECKPOINTS, rpc_message
from kassign_spark.spark.spark_versions import HAS_CONNECT_CHECKPOINTS

_PORT = 15002
"""Spark Connect's own."""
_SECONDS = 8.0
"""To reach the server, and again to agree with it on a protocol."""
_FOREIGN = (
    "what listens there is no Spark Connect, or TLS is wanted (;use_ssl=true) on one side and not "
    "on the other"
)
_ROOT = Path(__file__).parents[1]


@contextmanager
def open_remote(url: str, *, verbose: bool) -> Iterator[SparkSession]:
    """Open a session of the server at ``url``, and end it.

    A server of ``kassign-spark serve`` has this package; any other gets it.

    Args:
        url: ``sc://HOST:PORT``, with ``/;token=...`` or ``/;use_ssl=true`` behind.
        verbose: leave the reports of PySpark's client on the error stream.

    Raises:
        KassignError: PySpark cannot use Spark Connect here, or it is no such address.
        SessionError: no server of Spark Connect answers, it refuses the token, or it is of another
            major version.
    """
    check_client()
    if not verbose:
        _silence_client()
    address = _address(url)
    _wait_until_ready(url, address)
    with _explained(address):
        session = SparkSession.Builder().remote(url).getOrCreate()
        version = session.version
    try:
        if version.split(".")[0] != pyspark.__version__.split(".")[0]:
            raise SessionError(
                f"{address}: the server is Spark {version}, and this is PySpark "
                f"{pyspark.__version__}: both must be of one major version"
            )
        cancel_with(session.interruptAll)
        if sys.stderr.isatty():
            _show_progress(session)
        if not is_served(session):
            _send_package(session, address)
        yield session
    finally:
        _stop(session)


def _stop(session: SparkSession) -> None:
    """End the session; gRPC can wait for ever for a call that an interrupt broke off."""

    def stop() -> None:
        with suppress(Exception):  # the server may have gone
            session.stop()

    stopping = threading.Thread(target=stop, daemon=True)
    stopping.start()
    stopping.join(_SECONDS)


def check_client() -> None:
    """Refuse a PySpark whose Spark Connect lacks what commands need.

    Raises:
        KassignError: it says what to install.
    """
    if not HAS_CONNECT_CHECKPOINTS:
        raise KassignError(NO_CHECKPOINTS)
    if find_spec("grpc") is None:
        raise KassignError(
            "the packages of Spark Connect are missing: pip install 'kassign-spark[connect]'"
        )


def _silence_client() -> None:
    """Keep the client from warning of an error that we report in one line."""
    import logging
    import warnings

    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    warnings.filterwarnings("ignore", module="pyspark.sql.connect")
    logging.getLogger("pyspark.sql.connect.logging").setLevel(logging.CRITICAL + 1)


def _address(url: str) -> str:
    """Return HOST:PORT, which is all of an address that an error shows: the rest has a token."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port or _PORT
    except ValueError:
        parts, host, port = None, None, 0
    if parts is None or parts.scheme != "sc" or host is None:
        raise KassignError(
            "--remote (or SPARK_REMOTE): is no address of Spark Connect; it looks like "
            f"sc://HOST:{_PORT} or sc://HOST:{_PORT}/;token=TOKEN"
        )
    return f"{host}:{port}"


def _wait_until_ready(url: str, address: str) -> None:
    """Refuse a server that is silent or speaks another protocol; PySpark would try ten minutes."""
    import grpc  # type: ignore[import-untyped]
    from pyspark.sql.connect.client import DefaultChannelBuilder

    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host, int(port)), timeout=_SECONDS).close()
    except OSError as error:
        reason = error.strerror or str(error)
        raise SessionError(f"{address}: no server can be reached there: {reason}") from None
    try:
        channel = DefaultChannelBuilder(url).toChannel()
    except PySparkException as error:
        reason = str(error).partition("] ")[2].partition(" Please")[0]
        raise KassignError(f"--remote (or SPARK_REMOTE) of {address}: {reason}") from None
    try:
        # A method that no server has: one of gRPC says so, or that it wants a token.
        channel.unary_unary("/kassign_spark/Answer")(b"", timeout=_SECONDS)
    except grpc.RpcError as error:
        if error.code() in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED):
            raise SessionError(f"{address}: {_FOREIGN}") from None
    finally:
        channel.close()


@contextmanager
def _explained(address: str) -> Iterator[None]:
    """Explain in one line why a server that answers gives no session."""
    try:
        yield
    except PySparkException as error:
        text = str(error)
        if "UNAUTHENTICATED" in text or "PERMISSION_DENIED" in text:
            reason = "the server refuses the token, or wants one: sc://HOST:PORT/;token=TOKEN"
        elif "UNIMPLEMENTED" in text:
            reason = _FOREIGN
        else:
            reason = rpc_message(text) or text.splitlines()[0]
        raise SessionError(f"{address}: {reason}") from None


def _show_progress(session: SparkSession) -> None:
    """Show the running query's tasks in one line, which is erased when it ends."""

    def show(stages: Any, inflight_tasks: int, operation_id: str | None, done: bool) -> None:
        tasks = sum(stage.num_tasks for stage in stages)
        ended = sum(stage.num_completed_tasks for stage in stages)
        line = "" if done else f"{ended} of {tasks} tasks, {inflight_tasks} running"
        print(f"\r\x1b[K{line}", end="", file=sys.stderr, flush=True)

    session.registerProgressHandler(show)


def _send_package(session: SparkSession, address: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        archive = Path(folder) / "kassign_spark.zip"
        with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as packed:
            for path in sorted(_ROOT.rglob("*.py")):
                packed.write(path, path.relative_to(_ROOT.parent))
        try:
            session.addArtifacts(str(archive), pyfile=True)
        except PySparkException as error:
            reason = rpc_message(str(error)) or str(error).splitlines()[0]
            raise SessionError(f"{address}: the server does not take our code: {reason}") from None
