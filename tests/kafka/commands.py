"""Commands that read Kafka by Spark, in a process of their own.

Spark's source brings a Kafka client of its own, another one than the tests' session has. Several
commands share one session, which costs more than they do, and have their documents checked::

    python -m tests.kafka.commands '["log", "--bootstrap-server", ...]' '["history", ...]'
"""

import json
import subprocess
import sys
import time
from collections.abc import Sequence
from typing import NamedTuple

from kassign_spark import cli
from kassign_spark.launch.command_session import open_session
from kassign_spark.log.kafka_source import SEES_INTERNAL_TOPICS
from tests.json_schemas import documents_checked
from tests.kafka.jars import KAFKA_SOURCE

(PACKAGE,) = KAFKA_SOURCE


def command(*arguments: object) -> list[str]:
    """The line of one such command."""
    return [sys.executable, "-m", "kassign_spark", *map(str, arguments), "--package", PACKAGE]


def outcome(*arguments: object) -> "subprocess.CompletedProcess[str]":
    """One such command, run to its end."""
    return subprocess.run(
        command(*arguments), capture_output=True, text=True, timeout=300, check=False
    )


class Done(NamedTuple):
    """How a command ended, and after how many seconds."""

    code: int
    seconds: float


def run(*commands: Sequence[object]) -> list[Done]:
    """Run commands one after the other in one session of a new process; none may fail."""
    lines = [json.dumps([str(word) for word in words]) for words in commands]
    process = subprocess.run(
        [sys.executable, "-m", __name__, *lines],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert process.returncode == 0, process.stderr
    done = [Done(*each) for each in json.loads(process.stdout.splitlines()[-1])]
    assert all(each.code in (0, 1) for each in done), process.stderr
    return done


def _timed(line: str) -> Done:
    began = time.perf_counter()
    return Done(cli.main(json.loads(line)), time.perf_counter() - began)


if __name__ == "__main__":
    with open_session(package=PACKAGE, settings=SEES_INTERNAL_TOPICS), documents_checked():
        print(json.dumps([_timed(line) for line in sys.argv[1:]]))
