"""Commands that read Kafka by Spark, in a process of their own.

Spark's source brings a Kafka client of its own, another one than the tests' session has. Several
commands share one session, which costs more than they do::

    python -m tests.kafka.commands '["log", "--bootstrap-server", ...]' '["history", ...]'
"""

import json
import subprocess
import sys

from kassign_spark import cli
from kassign_spark.log.kafka_source import SEES_INTERNAL_TOPICS
from kassign_spark.session import open_session
from tests.kafka.jars import KAFKA_SOURCE

(PACKAGE,) = KAFKA_SOURCE


def command(*arguments: object) -> list[str]:
    """The line of one such command."""
    return [sys.executable, "-m", "kassign_spark", *map(str, arguments), "--package", PACKAGE]


def run(*commands: list[object]) -> list[int]:
    """Run commands one after the other in one session of a new process.

    Returns:
        Their exit codes.
    """
    lines = [json.dumps([str(word) for word in words]) for words in commands]
    process = subprocess.run(
        [sys.executable, "-m", __name__, *lines],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert process.returncode == 0, process.stderr
    codes: list[int] = json.loads(process.stdout.splitlines()[-1])
    assert 2 not in codes, process.stderr
    return codes


if __name__ == "__main__":
    with open_session(package=PACKAGE, settings=SEES_INTERNAL_TOPICS):
        print([cli.main(json.loads(line)) for line in sys.argv[1:]])
