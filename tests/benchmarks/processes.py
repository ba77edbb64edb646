"""What the commands cost as whole processes, beside a PySpark script that hardly does anything.

    python -m tests.benchmarks.processes [COMMAND ...] [--pairs N]

The script reads one table, counts by group and writes Parquet, in a session with the settings of
the command's own. A command and the script run in turn; what counts is the processor time of a
process and its children, as the operating system tells it, pair by pair: other work on the machine
moves it less than the time on the clock. Medians; ``report`` is of a plan that is made before.
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from kassign_spark.session import LOCAL_DEFAULTS

FLEET = Path(__file__).parents[2] / "examples" / "fleet"
BARS = {"assign": 1.6, "validate": 1.3, "rebalance": 1.7, "compare": 2.0, "report": 2.5}
"""The most that a command may cost, as a multiple of the script."""

_SCRIPT = """
import json, sys
from pyspark.sql import SparkSession
builder = SparkSession.builder.appName("script")
for name, value in json.loads(sys.argv[3]).items():
    builder = builder.config(name, value)
spark = builder.getOrCreate()
spark.read.parquet(sys.argv[1]).groupBy("group_id").count().write.parquet(sys.argv[2])
spark.stop()
"""


class Spent(NamedTuple):
    """Seconds of the processor, and on the clock."""

    processor: float
    clock: float


def spent(arguments: Sequence[str]) -> Spent:
    """Run a process to its end.

    Raises:
        AssertionError: it failed.
    """
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(arguments, capture_output=True, text=True, check=False)
    clock = time.perf_counter() - started
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    # 1: violations or problems were found, or a group never settles.
    assert done.returncode in (0, 1), done.stderr
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
    with tempfile.TemporaryDirectory() as folder:
        _measure(args.commands or list(BARS), args.pairs, Path(folder))


def _measure(commands: Sequence[str], pairs: int, scratch: Path) -> None:
    program = [sys.executable, "-m", "kassign_spark"]
    plan = str(scratch / "plan")
    if "report" in commands:
        spent([*program, "assign", str(FLEET), "--output", plan])
    print(
        f"{'command':<12}{'processor':>10}{'script':>8}{'ratio':>7}{'clock':>7}{'ratio':>7}   bar"
    )
    for command in commands:
        runs = []
        for number in range(pairs):
            output = str(scratch / f"{command}-{number}")
            given = [plan if command == "report" else str(FLEET)]
            if command not in ("validate", "compare"):
                given += ["--output", output]
            settings = json.dumps(LOCAL_DEFAULTS)
            script = [sys.executable, "-c", _SCRIPT, str(FLEET / "members"), f"{output}-s"]
            runs.append((spent([*program, command, *given]), spent([*script, settings])))
        _print(command, runs)


def _print(command: str, runs: list[tuple[Spent, Spent]]) -> None:
    processor = statistics.median(of.processor for of, _ in runs)
    script = statistics.median(by.processor for _, by in runs)
    ratio = statistics.median(of.processor / by.processor for of, by in runs)
    clock = statistics.median(of.clock for of, _ in runs)
    by_clock = statistics.median(of.clock / by.clock for of, by in runs)
    bar = BARS[command]
    print(
        f"{command:<12}{processor:>10.1f}{script:>8.1f}{ratio:>7.2f}{clock:>7.1f}{by_clock:>7.2f}"
        f"   {bar}{' MISSED' if ratio > bar else ''}",
        flush=True,
    )


if __name__ == "__main__":
    main()
