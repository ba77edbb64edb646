"""``kassign-spark serve``: a Spark that stays, for commands that need not start one."""

import argparse
import os
import secrets
import shlex
import socket
import sys
import time
from contextlib import closing
from typing import Any

from pyspark.sql import SparkSession

from kassign_spark.commands.common import Outcome, has_other_spark
from kassign_spark.commands.documents import record
from kassign_spark.commands.parser import About, Parser, coordinates
from kassign_spark.errors import KassignError
from kassign_spark.interrupts import accept
from kassign_spark.launch.command_session import QUICK_JAVA, open_session
from kassign_spark.launch.remote_session import check_client
from kassign_spark.processes import new_owner
from kassign_spark.spark.local_server import (
    SERVER,
    Server,
    forget_server,
    note_server,
    running_server,
    stop_server,
)
from kassign_spark.spark.spark_versions import KAFKA_PACKAGE

DOCUMENT = record("url string?, was_running boolean")

_IDLE_SECONDS = 3600
_LOOK_SECONDS = 2.0
_TOKEN = "SPARK_CONNECT_AUTHENTICATE_TOKEN"
"""Spark reads the token from the environment, which no other user sees; all see a command line."""

ABOUT = About(
    description="Start Spark Connect on this machine and print the line that makes later commands\n"
    "use it: they need not start a Spark of their own. Only who has the token of that\n"
    "line can use the server, and it listens on the loopback address alone. It ends with\n"
    "Ctrl-C, with --stop, or after an hour without work.",
    example="kassign-spark serve",
)


def add_options(parser: Parser) -> None:
    """Add what it takes."""
    parser.add_argument("--stop", action="store_true", help="end the server that runs")
    parser.add_argument(
        "--package",
        metavar="COORDINATE",
        type=coordinates,
        help="load a Spark package as well; to read the group log of a cluster, commands need "
        f"{KAFKA_PACKAGE}",
    )


def run(args: argparse.Namespace) -> Outcome:
    """Run the command."""
    if args.stop:
        stopped = stop_server()
        line = "no server runs" if stopped is None else "the server has ended"
        return Outcome(0, _facts(stopped, was_running=stopped is not None), [line])
    server = running_server()
    if server is not None:
        if args.package:
            raise KassignError(
                "a server runs already, and loads no package any more: end it with "
                "kassign-spark serve --stop, and start it with --package"
            )
        return Outcome(0, _facts(server, was_running=True), [_export(server)])
    if has_other_spark():
        raise KassignError("serve starts a Spark of its own; run it without spark-submit")
    check_client()
    server, reason = _serve(args)
    return Outcome(0, _facts(server, was_running=False), [f"the server has ended: {reason}"])


def _facts(server: Server | None, *, was_running: bool) -> dict[str, object]:
    return {"url": None if server is None else server.url, "was_running": was_running}


def _export(server: Server) -> str:
    return f"export SPARK_REMOTE={shlex.quote(server.url)}"


def _serve(args: argparse.Namespace) -> tuple[Server, str]:
    """Serve until somebody ends it, or there has been no work for an hour; return the reason."""
    port = _free_port()
    os.environ[_TOKEN] = secrets.token_urlsafe(32)
    server = Server(f"sc://localhost:{port}/;token={os.environ[_TOKEN]}", new_owner(), os.getpid())
    settings = {
        "spark.plugins": "org.apache.spark.sql.connect.SparkConnectPlugin",
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
        SERVER: server.owner,
        # Java's second compiler costs examples/daily.sh, which starts a server, a tenth of its
        # time, and saves nothing later: 40,000 members with 1,000,000 partitions are assigned in
        # 8.7 s with it and without, the fourth time too.
        "spark.driver.extraJavaOptions": QUICK_JAVA,
    }
    with open_session(verbose=args.verbose, package=args.package or "", core=settings) as spark:
        note_server(server)
        try:
            if args.json:
                print(f"the server runs: {_export(server)}", file=sys.stderr, flush=True)
            else:
                print(_export(server), flush=True)
            _wait_for_idle_hour(spark)
            reason = "there was no work for an hour"
        except KeyboardInterrupt:
            accept()
            reason = "it was told to"
        finally:
            forget_server()
    return server, reason


def _wait_for_idle_hour(spark: SparkSession) -> None:
    """Return when the server has had no work for an hour."""
    jvm: Any = spark._jvm
    service = jvm.org.apache.spark.sql.connect.service.SparkConnectService
    last_work, since = "", time.monotonic()
    while time.monotonic() - since < _IDLE_SECONDS:
        time.sleep(_LOOK_SECONDS)
        # What runs now, or the time at which the last work ended, on a clock of Java's.
        executions = service.listActiveExecutions()
        if executions.isRight() or str(executions) != last_work:
            last_work, since = str(executions), time.monotonic()


def _free_port() -> int:
    with closing(socket.socket()) as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])
