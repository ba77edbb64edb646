"""One giant group, or a giant fleet, within a machine's memory: time, memory, spill, and growth.

    python -m tests.benchmarks.load [giant|fleet ...] [--sizes 100 10 1] [--memory 8g]
        [--partitions N --members M] [--groups G --partitions-each P] [--cases CASE ...]

Each case goes from Parquet to Parquet, checks included, at a hundredth, a tenth and the whole of
the size; at those below the whole the second of two runs counts, as the first warms up. The last
lines say how each figure grows from size to size. Memory is what the JVM's heap and the Python
workers held at most during the case, spill what its tasks wrote out for want of memory. Close
other programs first.
"""

import argparse
import os
import shutil
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from pyspark.sql import SparkSession

from kassign_spark import Settings, assign
from kassign_spark.settings.computing import ENGINES
from tests.benchmarks.equal import CASES, Shape, _peak_memory, _write_inputs
from tests.spark_session import start_session

_CASES = ("range", "roundrobin", "sticky", "sticky-leave")
_MOST_TOPICS = 1_000
_SAMPLE_SECONDS = 0.2
_PAGE = os.sysconf("SC_PAGE_SIZE")


class Figures(NamedTuple):
    """What one run has taken; bytes but for the seconds."""

    seconds: float
    heap: int
    python: int
    spilled_in_memory: int
    spilled_to_disk: int


def main() -> None:
    """Run the shapes that are named, or both."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("shapes", nargs="*", choices=["giant", "fleet", []], metavar="giant|fleet")
    parser.add_argument("--partitions", type=int, default=10_000_000, help="of the giant group")
    parser.add_argument("--members", type=int, default=10_000, help="of the giant group")
    parser.add_argument("--groups", type=int, default=100_000, help="of the fleet, 10 members each")
    parser.add_argument("--partitions-each", type=int, default=100, help="of a group of the fleet")
    parser.add_argument(
        "--sizes", type=int, nargs="+", default=[100, 10, 1], help="parts of the whole, in order"
    )
    parser.add_argument("--cases", nargs="+", choices=_CASES, default=list(_CASES), metavar="CASE")
    parser.add_argument("--engine", choices=ENGINES, default="auto", help="as of Settings")
    parser.add_argument("--memory", default="8g", help="spark.driver.memory")
    parser.add_argument("--scratch", help="folder for inputs, outputs and spill")
    parser.add_argument("--event-log", help="folder for Spark's event log, to be read by cost")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=args.scratch) as scratch:
        folder = Path(scratch)
        logged = {
            "spark.eventLog.enabled": "true",
            "spark.eventLog.dir": args.event_log,
            # One plain file, as tests.benchmarks.cost reads it.
            "spark.eventLog.compress": "false",
            "spark.eventLog.rolling.enabled": "false",
        }
        spark = start_session(folder, memory=args.memory, settings=logged if args.event_log else {})
        try:
            for name in args.shapes or ["giant", "fleet"]:
                _run(spark, name, folder / name, args)
        finally:
            spark.stop()


def _shape(name: str, part: int, args: argparse.Namespace) -> Shape:
    if name == "giant":
        partitions = max(1, args.partitions // part)
        topics = min(_MOST_TOPICS, partitions)
        return Shape(name, 1, topics, partitions // topics, max(2, args.members // part))
    topics = next(n for n in (10, 5, 2, 1) if args.partitions_each % n == 0)
    return Shape(name, max(2, args.groups // part), topics, args.partitions_each // topics, 10)


def _run(spark: SparkSession, name: str, folder: Path, args: argparse.Namespace) -> None:
    result: dict[str, list[tuple[Shape, Figures]]] = {case: [] for case in args.cases}
    for part in args.sizes:
        shape = _shape(name, part, args)
        print(
            f"{name}: {shape.groups:,} groups of {shape.topics:,} topics x {shape.partitions:,} "
            f"partitions x {shape.members:,} members, {shape.total:,} partitions",
            flush=True,
        )
        inputs = folder / str(part)
        _write_inputs(spark, shape, inputs, owners=("all",))
        settings = Settings(engine=args.engine)
        for case in args.cases:
            if part > min(args.sizes):
                _measured(spark, shape, inputs, case, settings)
            figures = _measured(spark, shape, inputs, case, settings)
            result[case].append((shape, figures))
            print(f"  {case}: {_describe(shape, figures)}", flush=True)
        shutil.rmtree(inputs)
    for case, runs in result.items():
        for (smaller, before), (larger, after) in pairwise(runs):
            ratios = ", ".join(
                f"{field.replace('_', ' ')} {_ratio(getattr(before, field), getattr(after, field))}"
                for field in Figures._fields
            )
            print(f"  {case}, {larger.total / smaller.total:g} x the partitions: {ratios}")


def _describe(shape: Shape, figures: Figures) -> str:
    mebibytes = {name: getattr(figures, name) / 2**20 for name in Figures._fields[1:]}
    memory = ", ".join(f"{name.replace('_', ' ')} {m:,.0f} MiB" for name, m in mebibytes.items())
    return f"{figures.seconds:.1f} s, {shape.total / figures.seconds:,.0f} partitions/s, {memory}"


def _ratio(before: float, after: float) -> str:
    if not before:
        return "from none" if after else "none"
    return f"x {after / before:.1f}"


def _measured(
    spark: SparkSession, shape: Shape, folder: Path, case: str, settings: Settings
) -> Figures:
    members, owned, assignor = CASES[case]
    out = folder / "out"
    shutil.rmtree(out, ignore_errors=True)
    stages = _stages(spark)
    _reset_peaks(spark)
    context = spark.sparkContext
    with _sampling() as peaks:
        # By this name tests.benchmarks.cost finds the run in the event log.
        name = f"{shape.name}/{case}/{shape.total}/{time.time_ns() // 1_000_000}"
        context.setJobGroup(name, f"{case} of {shape.total:,} partitions")
        started = time.perf_counter()
        plan = assign(
            spark.read.parquet(str(folder / members)),
            spark.read.parquet(str(folder / "topics")),
            None if owned is None else spark.read.parquet(str(folder / owned)),
            assignor=assignor,
            settings=settings,
        )
        plan.write.parquet(str(out))
        seconds = time.perf_counter() - started
        context.setLocalProperty("spark.jobGroup.id", None)  # type: ignore[arg-type]
    heap = _peak_memory(spark)
    rows = spark.read.parquet(str(out)).count()
    assert rows == shape.total, f"{case}: {rows} of {shape.total} partitions are assigned"
    new = [spilled for stage, spilled in _stages(spark).items() if stage not in stages]
    in_memory, to_disk = (sum(amounts) for amounts in zip((0, 0), *new, strict=True))
    return Figures(seconds, heap, peaks[0], in_memory, to_disk)


def _stages(spark: SparkSession) -> dict[tuple[int, int], tuple[int, int]]:
    """Bytes spilled from memory and to disk by each attempt of each stage so far."""
    jvm: Any = spark._jvm
    context = spark.sparkContext
    # What events are still under way to the store would be missed.
    context._jsc.sc().listenerBus().waitUntilEmpty()
    none = jvm.java.util.ArrayList()
    quantiles = context._gateway.new_array(jvm.double, 0)  # type: ignore[union-attr]
    listed = context._jsc.sc().statusStore().stageList(none, False, False, quantiles, none)
    spilled, stages = {}, listed.iterator()
    while stages.hasNext():
        stage = stages.next()
        spilled[stage.stageId(), stage.attemptId()] = (
            stage.memoryBytesSpilled(),
            stage.diskBytesSpilled(),
        )
    return spilled


def _reset_peaks(spark: SparkSession) -> None:
    jvm: Any = spark._jvm
    jvm.System.gc()
    for pool in jvm.java.lang.management.ManagementFactory.getMemoryPoolMXBeans():
        pool.resetPeakUsage()


@contextmanager
def _sampling() -> Iterator[list[int]]:
    """Watch the Python workers: the one element becomes the most they held together, in bytes."""
    most, done = [0], threading.Event()

    def watch() -> None:
        while not done.wait(_SAMPLE_SECONDS):
            most[0] = max(most[0], _resident_workers())

    watching = threading.Thread(target=watch, daemon=True)
    watching.start()
    try:
        yield most
    finally:
        done.set()
        watching.join()


def _resident_workers() -> int:
    """Bytes that Python processes hold that the JVM of this process has started."""
    parents, resident, workers = {}, {}, set()
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            process = int(status.parent.name)
            fields = status.read_text().rpartition(")")[2].split()
            if b"pyspark.daemon" in (status.parent / "cmdline").read_bytes():
                workers.add(process)
        except OSError:  # it has ended meanwhile
            continue
        parents[process], resident[process] = int(fields[1]), int(fields[21]) * _PAGE
    total = 0
    for process in workers:
        ancestor, is_java = parents[process], False
        while ancestor in parents and ancestor != os.getpid():
            is_java |= ancestor not in workers
            ancestor = parents[ancestor]
        total += resident[process] if ancestor == os.getpid() and is_java else 0
    return total


if __name__ == "__main__":
    main()
