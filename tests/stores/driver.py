"""A driver of its own: runs commands in one session, and may be stopped or killed meanwhile.

As a program it takes the session's settings as JSON, then a line of JSON a command: its arguments.
"""

import contextlib
import io
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from tests.java import SHORT_LIVED
from tests.spark_session import UNCOMPILED

ROOT = Path(__file__).parents[2]
_SETTINGS = UNCOMPILED | {
    "spark.master": "local[2]",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "1g",
    "spark.driver.extraJavaOptions": SHORT_LIVED,
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.adaptive.enabled": "false",
    "spark.log.level": "ERROR",
}


class CommandEnd(NamedTuple):
    """What a command ended with."""

    code: int
    out: str
    err: str

    def errors(self) -> list[str]:
        """The lines that say what is wrong, not those that say what takes long."""
        return [line for line in self.err.splitlines() if not line.endswith(" ...")]


@dataclass
class Driver:
    """The running program."""

    process: "subprocess.Popen[str]"

    def start(self, *arguments: str) -> None:
        """Begin a command; ``said`` waits for its end."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(arguments) + "\n")
        self.process.stdin.flush()

    def wait(self) -> CommandEnd:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, "the driver has ended"
        return CommandEnd(*json.loads(line))

    def run(self, *arguments: str) -> CommandEnd:
        self.start(*arguments)
        return self.wait()

    def stop_when(self, seen: Callable[[], bool]) -> None:
        """Stop all of its processes as soon as something is to be seen of its work."""
        deadline = time.monotonic() + 120
        while not seen():
            assert self.process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.02)
        self.signal(signal.SIGSTOP)

    def signal(self, number: signal.Signals) -> None:
        os.killpg(self.process.pid, number)


@contextlib.contextmanager
def running_driver(
    folder: Path, settings: Mapping[str, str], environment: Mapping[str, str] | None = None
) -> Iterator[Driver]:
    """Start a driver that lives until the block ends; its log goes to ``folder``."""
    with (folder / "driver.log").open("w") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.stores.driver", json.dumps(_SETTINGS | dict(settings))],
            cwd=ROOT,
            env={
                **os.environ,
                "PYTHONPATH": str(ROOT),
                "PYSPARK_PYTHON": sys.executable,
                "SPARK_LOCAL_IP": "127.0.0.1",
                "SPARK_LOCAL_DIRS": str(folder / "local"),
                **(environment or {}),
            },
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            start_new_session=True,  # its Java process is of its group
        )
    driver = Driver(process)
    try:
        yield driver
    finally:
        with contextlib.suppress(ProcessLookupError):
            driver.signal(signal.SIGKILL)
        process.communicate()


def _serve() -> None:
    from pyspark.sql import SparkSession

    from kassign_spark import cli

    builder = SparkSession.builder
    for name, value in json.loads(sys.argv[1]).items():
        builder = builder.config(name, value)
    builder.getOrCreate()
    for line in sys.stdin:
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = cli.main(json.loads(line))
        print(json.dumps([code, out.getvalue(), err.getvalue()]), flush=True)
        if code > 128:  # a signal came, which is meant for the whole program
            sys.exit(code)


if __name__ == "__main__":
    _serve()
