"""A server of Spark Connect on loopback, in a process of its own, of this environment's Spark."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pyspark

from tests.docs.reader import ROOT
from tests.java import SHORT_LIVED
from tests.spark_session import UNCOMPILED

_SECONDS = 180
_CLASS = "org.apache.spark.sql.connect.service.SparkConnectServer"


@contextmanager
def connect_server(
    scratch: Path, python: str = sys.executable, *, has_package: bool = True
) -> Iterator[str]:
    """Start one, give its address once it listens, and end it.

    Args:
        scratch: a folder for all it writes.
        python: what its Python workers run with.
        has_package: whether they find this checkout.
    """
    with closing(socket.socket()) as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    settings = UNCOMPILED | {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
        "spark.driver.extraJavaOptions": SHORT_LIVED,
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.local.dir": str(scratch),
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
        "spark.ui.enabled": "false",
    }
    options = [part for item in settings.items() for part in ("--conf", "=".join(item))]
    submit = Path(pyspark.__file__).parent / "bin" / "spark-submit"
    environment = os.environ | {
        "PYSPARK_PYTHON": python,
        "PYTHONPATH": str(ROOT) if has_package else "",
    }
    log = scratch / "server.log"
    with (
        log.open("wb") as output,
        subprocess.Popen(
            [submit, "--master", "local[2]", *options, "--class", _CLASS, "spark-internal"],
            env=environment,
            cwd=ROOT,
            stdout=output,
            stderr=output,
        ) as server,
    ):
        try:
            _wait(server, port, log)
            yield f"sc://127.0.0.1:{port}"
        finally:
            server.terminate()


def _wait(server: "subprocess.Popen[bytes]", port: int, log: Path) -> None:
    deadline = time.monotonic() + _SECONDS
    while time.monotonic() < deadline and server.poll() is None:
        with closing(socket.socket()) as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.2)
    raise RuntimeError(f"the server did not start:\n{log.read_text()[-2000:]}")
