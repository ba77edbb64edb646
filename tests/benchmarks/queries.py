"""What an answer costs Spark: queries, jobs, tasks and seconds of every call on the example fleet.

    python -m tests.benchmarks.queries [CALL ...] [--runs N] [--report]

The session is one that nobody tuned: Spark's own defaults, so 200 shuffle partitions, on all cores
of this machine; only the driver is on loopback, and the UI off. Every call is made once to warm up,
then ``--runs`` times; counts are of the last run, seconds of the best; ``java``
counts calls of Python to Java. Results go to a noop sink.
What a call is given, such as the assignment that ``balance`` judges, is computed before.
"""

import argparse
import contextlib
import io
import os
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import kassign_spark as ks
from kassign_spark.cli import main as run_command
from kassign_spark.simulation.event_file import read_events
from kassign_spark.simulation.events import EVENTS
from tests.query_counter import Counted, counting, run_to_nothing

EXAMPLES = Path(__file__).parents[2] / "examples"


class Bar(NamedTuple):
    """The most that a call may cost on the example, warm."""

    queries: int
    jobs: int


BARS = {
    "assign range": Bar(4, 10),
    "assign sticky": Bar(5, 12),
    "assign own": Bar(6, 20),
    "predict sticky": Bar(5, 12),
    "rebalance cooperative": Bar(6, 16),
    "balance": Bar(4, 6),
    "violations": Bar(3, 6),
    "validate": Bar(2, 4),
    "diff": Bar(2, 3),
    "compare": Bar(8, 24),
    "explain": Bar(8, 16),
    "simulate": Bar(5, 11),
    "choose_assignors": Bar(2, 9),
    "eligibility": Bar(5, 12),
    "bottlenecks": Bar(5, 12),
    "advise": Bar(5, 12),
    "migrate": Bar(4, 14),
    "report": Bar(20, 60),
}
"""By call; what is not here has no bar of its own."""


class ExampleTables(NamedTuple):
    """The tables of the example and what other calls have made of them, read from files."""

    members: DataFrame
    topics: DataFrame
    owned: DataFrame
    events: DataFrame
    candidates: DataFrame
    leaders: DataFrame
    assignment: DataFrame
    steps: DataFrame
    simulated: DataFrame


Call = Callable[[ExampleTables], Sequence[DataFrame]]

CALLS: dict[str, Call] = {
    "assign range": lambda g: [ks.assign(g.members, g.topics, g.owned, assignor="range")],
    "assign sticky": lambda g: [ks.assign(g.members, g.topics, g.owned, assignor="sticky")],
    "assign own": lambda g: [ks.assign(g.members, g.topics, g.owned)],
    "predict sticky": lambda g: ks.predict(g.members, g.topics, g.owned, assignor="sticky"),
    "rebalance cooperative": lambda g: [
        ks.rebalance(g.members, g.topics, g.owned, assignor="cooperative-sticky")
    ],
    "balance": lambda g: [ks.balance(g.assignment, g.members, g.owned, g.topics)],
    "violations": lambda g: [ks.violations(g.assignment, g.members, g.topics, g.owned)],
    "validate": lambda g: [ks.validate(g.members, g.topics, g.owned, assignors=ks.ASSIGNORS)],
    "diff": lambda g: [ks.diff(g.owned, g.assignment)],
    "summarize": lambda g: [ks.summarize(g.steps, g.owned)],
    "listener_calls": lambda g: [
        ks.listener_calls(g.steps, g.members, assignor="cooperative-sticky")
    ],
    "resolve_patterns": lambda g: [ks.resolve_patterns(g.members, g.topics)],
    "deliver": lambda g: [ks.deliver(g.assignment, g.members)],
    "choose_assignors": lambda g: ks.choose_assignors(g.candidates),
    "coordinators": lambda g: [ks.coordinators(g.members, g.leaders)],
    "coordinator_load": lambda g: [ks.coordinator_load(g.members, g.leaders, g.owned)],
    "touched_groups": lambda g: [ks.touched_groups(g.members, g.topics)],
    "explain": lambda g: [ks.explain(g.assignment, g.members, g.topics, g.owned)],
    "compare": lambda g: [ks.compare(g.members, g.topics, g.owned)],
    "eligibility": lambda g: list(ks.eligibility(g.members, g.topics)),
    "bottlenecks": lambda g: [ks.bottlenecks(g.members, g.topics)],
    "advise": lambda g: [ks.advise(g.members, g.topics, g.owned)],
    "migrate": lambda g: list(ks.migrate(g.members, g.topics, g.owned)),
    "simulate": lambda g: [ks.simulate(g.members, g.topics, g.owned, g.events)],
    "summarize_events": lambda g: [ks.summarize_events(g.simulated)],
    "sweep": lambda g: [
        ks.sweep(g.members, g.topics, g.owned, read_events(EXAMPLES / "events.yaml").sweeps)
    ],
}


def read_example_tables(
    spark: SparkSession, scratch: Path, *, only: Sequence[str] = ()
) -> ExampleTables:
    """Read the example, and make by the library itself what its calls are given besides.

    Args:
        spark: the session that the frames are of; what is made for them is made in another one.
        scratch: an empty folder.
        only: the calls that are asked; none: all, which takes longer.
    """
    quick = spark.newSession()
    quick.conf.set("spark.sql.shuffle.partitions", "2")
    fleet = ks.read_snapshot(EXAMPLES / "fleet", quick)
    asked = read_events(EXAMPLES / "events.yaml")
    events = quick.createDataFrame(
        [tuple(row.get(name) for name in EVENTS.columns.names) for row in asked.rows],
        EVENTS.columns,
    )
    members, topics, owned = fleet
    assert owned is not None
    if "cluster_id" not in members.columns:
        events = events.drop("cluster_id")
    candidates = members.select(
        *(["cluster_id"] if "cluster_id" in members.columns else []),
        "group_id",
        "member_id",
        F.array("assignor").alias("assignors"),
    )
    leaders = quick.range(50, numPartitions=1).select(
        *([F.lit("").alias("cluster_id")] if "cluster_id" in members.columns else []),
        F.lit("__consumer_offsets").alias("topic"),
        F.col("id").cast("int").alias("partition"),
        (F.col("id") % 3).cast("int").alias("leader"),
    )
    frames = {
        "members": members,
        "topics": topics,
        "owned": owned,
        "events": events,
        "candidates": candidates,
        "leaders": leaders,
        "assignment": ks.assign(members, topics, owned, assignor="sticky"),
    }
    if not only or {"summarize", "listener_calls"} & set(only):
        frames["steps"] = ks.rebalance(members, topics, owned, assignor="cooperative-sticky")
    if not only or "summarize_events" in only:
        frames["simulated"] = ks.simulate(members, topics, owned, events)
    for name, frame in frames.items():
        frame.coalesce(1).write.parquet(str(scratch / name))
    read = {name: spark.read.parquet(str(scratch / name)) for name in frames}
    none = spark.range(0)
    return ExampleTables(**{"steps": none, "simulated": none, **read})


def count_call(spark: SparkSession, example: ExampleTables, name: str) -> Counted:
    """Make one call, compute its results, and count."""
    with counting(spark) as counted:
        run_to_nothing(CALLS[name](example))
    return counted


def count_report(spark: SparkSession, plan: Path, page: Path) -> Counted:
    """Count the command `report` on a plan that ``write_plan`` made."""
    with counting(spark) as counted:
        _command("report", str(plan), "--output", str(page), "--overwrite")
    return counted


def write_plan(plan: Path) -> None:
    """Make a plan of the example with the command `assign`, in the active session."""
    _command("assign", str(EXAMPLES / "fleet"), "--output", str(plan), "--overwrite")


def _command(*arguments: str) -> None:
    output = io.StringIO()
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
        code = run_command(list(arguments))
    assert code in (0, 1), output.getvalue()


def main() -> None:
    """Measure the calls that are named, or all of them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("calls", nargs="*", help=", ".join(CALLS))
    parser.add_argument("--runs", type=int, default=3, help="runs after the first")
    parser.add_argument("--report", action="store_true", help="the command report as well")
    args = parser.parse_args()
    unknown = set(args.calls) - set(CALLS)
    if unknown:
        parser.error(f"unknown: {', '.join(sorted(unknown))}; known are {', '.join(CALLS)}")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    spark = (
        SparkSession.builder.config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    cores = spark.sparkContext.defaultParallelism
    print(
        f"PySpark {spark.version}, {cores} cores, "
        f"{spark.conf.get('spark.sql.shuffle.partitions')} shuffle partitions; the examples/fleet"
    )
    print(f"{'call':<24}{'queries':>9}{'jobs':>6}{'tasks':>7}{'java':>7}{'seconds':>9}   bar")
    try:
        with tempfile.TemporaryDirectory() as folder:
            example = read_example_tables(spark, Path(folder), only=args.calls)
            for name in args.calls or CALLS:
                _print(name, cores, args.runs, partial(count_call, spark, example, name))
            if args.report:
                plan, page = Path(folder) / "plan", Path(folder) / "report.html"
                write_plan(plan)
                _print("report", cores, args.runs, partial(count_report, spark, plan, page))
    finally:
        spark.stop()


def _print(name: str, cores: int, runs: int, count: Callable[[], Counted]) -> None:
    seconds = []
    for _ in range(runs + 1):
        started = time.perf_counter()
        counted = count()
        seconds.append(time.perf_counter() - started)
    bar = BARS.get(name)
    remark = "" if bar is None else f"{bar.queries} / {bar.jobs}"
    missed = bar is not None and (counted.queries > bar.queries or counted.jobs > bar.jobs)
    if counted.most_tasks > 2 * cores:
        missed, remark = True, f"{remark} and {2 * cores} tasks".removeprefix(" and ")
    print(
        f"{name:<24}{counted.queries:>9}{counted.jobs:>6}{counted.most_tasks:>7}"
        f"{counted.java_calls:>7}{min(seconds[1:]):>9.2f}   {remark}{' MISSED' if missed else ''}",
        flush=True,
    )


if __name__ == "__main__":
    main()
