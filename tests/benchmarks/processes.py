"""What the commands cost as whole processes, beside a PySpark script that hardly does anything.

    python -m tests.benchmarks.processes [COMMAND ...] [--pairs N]

The script is as people write it: it reads one table, counts by group and writes Parquet, in a
session of ``SparkSession.builder.getOrCreate()`` that listens on this machine only. A command and
the script run in turn, and the ratio is of each pair: of the time on the clock, and of the
processor time of all their processes, which other work on the machine moves less. Medians.
Commands use the archive of ``kassign-spark java-archive``, if it is there.
``report`` is of a plan that is made before; ``simulate`` is of 200 events beside 4.
"""

import argparse
import ctypes
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

FLEET = Path(__file__).parents[2] / "examples" / "fleet"
BARS = {
    "assign": 1.6,
    "validate": 1.3,
    "rebalance": 1.7,
    "compare": 2.0,
    "report": 2.5,
    "simulate": 2.0,
}
"""The most that a command may cost, as a multiple of the script."""

_SCRIPT = """
import sys
from pyspark.sql import SparkSession
local = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
spark = SparkSession.builder.config(map=local).config("spark.ui.enabled", "false").getOrCreate()
spark.read.json(sys.argv[1]).groupBy("group_id").count().write.parquet(sys.argv[2])
spark.stop()
"""
_BECOME_SUBREAPER = 36
"""Of Linux's prctl: Java outlives the Python that started it, and its time shall count as well."""


class Spent(NamedTuple):
    """Seconds of the processor, and on the clock."""

    processor: float
    clock: float


def spent(arguments: Sequence[str], *, codes: tuple[int, ...] = (0,)) -> Spent:
    """Run a process to its end, and what it has started to theirs.

    Raises:
        AssertionError: it failed: its exit code is none of ``codes``.
    """
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(arguments, capture_output=True, text=True, check=False)
    clock = time.perf_counter() - started
    with suppress(ChildProcessError):
        while os.wait():
            pass
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert done.returncode in codes, done.stderr
    used = (after.ru_utime - before.ru_utime) + (after.ru_stime - before.ru_stime)
    return Spent(used, clock)


def main() -> None:
    """Measure the commands that are named, or all of them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("commands", nargs="*", help=", ".join(BARS))
    parser.add_argument("--pairs", type=int, default=5, help="runs of each (default: 5)")
    args = parser.parse_args()
    unknown = set(args.commands) - set(BARS)
    if unknown:
        parser.error(f"unknown: {', '.join(sorted(unknown))}; known are {', '.join(BARS)}")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    ctypes.CDLL(None).prctl(_BECOME_SUBREAPER, 1, 0, 0, 0)
    with tempfile.TemporaryDirectory() as folder:
        _measure(args.commands or list(BARS), args.pairs, Path(folder))


def _measure(commands: Sequence[str], pairs: int, scratch: Path) -> None:
    program = [sys.executable, "-m", "kassign_spark"]
    plan = str(scratch / "plan")
    if "report" in commands:
        spent([*program, "assign", str(FLEET), "--output", plan])
    print(
        f"{'':<10}{'processor':>10}{'beside':>8}{'ratio':>7}{'clock':>7}{'beside':>8}{'ratio':>7}"
    )
    for command in commands:
        runs = []
        for number in range(pairs):
            command_line, beside = _pair(
                command, plan, str(scratch / f"{command}-{number}"), scratch
            )
            # 1: violations or problems were found, or a group never settles.
            runs.append(
                (spent([*program, *command_line], codes=(0, 1)), spent(beside, codes=(0, 1)))
            )
        _print(command, runs)


def _pair(command: str, plan: str, output: str, scratch: Path) -> tuple[list[str], list[str]]:
    """The arguments of a command, and the process that it is measured beside."""
    if command == "simulate":
        program = [sys.executable, "-m", "kassign_spark"]
        many, few = (
            ["simulate", str(FLEET), "--events", str(_events(scratch, count))] for count in (200, 4)
        )
        return many, [*program, *few]
    arguments = [command, plan if command == "report" else str(FLEET)]
    if command not in ("validate", "compare"):
        arguments += ["--output", output]
    return arguments, [sys.executable, "-c", _SCRIPT, str(FLEET / "members"), f"{output}-beside"]


def _events(scratch: Path, count: int) -> Path:
    """Write a file of ``count`` events: topics grow by a partition, one after the other."""
    lines = (FLEET / "topics" / "topics.json").read_text().splitlines()
    topics = [json.loads(line) for line in lines]
    path = scratch / f"events-{count}.jsonl"
    with path.open("w") as file:
        for number in range(count):
            more, of = divmod(number, len(topics))
            grown = topics[of]["num_partitions"] + 1 + more
            event = {"kind": "topic_grows", "topic": topics[of]["topic"], "num_partitions": grown}
            file.write(json.dumps(event) + "\n")
    return path


def _print(command: str, runs: list[tuple[Spent, Spent]]) -> None:
    def median(of: Callable[[Spent, Spent], float]) -> float:
        return statistics.median(of(*run) for run in runs)

    processor = median(lambda of, by: of.processor / by.processor)
    clock = median(lambda of, by: of.clock / by.clock)
    bar = BARS[command]
    print(
        f"{command:<10}{median(lambda of, _: of.processor):>10.1f}"
        f"{median(lambda _, by: by.processor):>8.1f}{processor:>7.2f}"
        f"{median(lambda of, _: of.clock):>7.1f}{median(lambda _, by: by.clock):>8.1f}"
        f"{clock:>7.2f}   bar {bar}{' MISSED' if clock > bar else ''}",
        flush=True,
    )


if __name__ == "__main__":
    main()
