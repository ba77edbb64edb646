"""A fleet planned by weight on Spark: processor time, and how the tasks share the cores.

    python -m tests.benchmarks.weighted_fleet [--groups N] [--size PARTITIONS] [--effort NAME ...]

Groups as the tests draw them: heavy tails, hot partitions, capacities, subscriptions. Tables are
Parquet files, written before. Processor time is that of Spark's Python workers and of the JVM
during the call, so other work on the machine does not count; the tasks are those of Spark's event
log that planned, with their seconds on the clock. The bars are of 10,000 groups of 60 partitions.
"""

import argparse
import contextlib
import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from kassign_spark import plan_by_weight
from tests.assignors.weighted.drawn_groups import draw

BARS = {"fast": 100.0, "default": 200.0}
_TICKS = os.sysconf("SC_CLK_TCK")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--groups", type=int, default=10_000, metavar="N")
    parser.add_argument("--size", type=int, default=60, metavar="PARTITIONS", help="of each group")
    parser.add_argument("--effort", nargs="*", default=list(BARS))
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        write_tables(Path(folder), args.groups, args.size)
        log = Path(folder, "events")
        log.mkdir()
        spark = (
            SparkSession.builder.master("local[*]")
            .config("spark.driver.host", "127.0.0.1")
            .config("spark.driver.bindAddress", "127.0.0.1")
            .config("spark.ui.enabled", "false")
            .config("spark.eventLog.enabled", "true")
            .config("spark.eventLog.rolling.enabled", "false")
            .config("spark.eventLog.compress", "false")
            .config("spark.eventLog.dir", log.as_uri())
            .getOrCreate()
        )
        spark.sparkContext.setLogLevel("ERROR")
        tables = [
            spark.read.parquet(f"{folder}/{name}.parquet")
            for name in ("members", "topics", "weights", "owned")
        ]
        members, topics, weights, owned = tables
        some = members.where("group_id < 'g00010'")
        plan_by_weight(some, topics, weights, owned)  # workers and compilers are warm
        for effort in args.effort:
            spark.sparkContext.setJobGroup(effort, effort)
            before = processors()
            plan = plan_by_weight(members, topics, weights, owned, effort=effort)
            jvm, workers = (now - then for now, then in zip(processors(), before, strict=True))
            spark.sparkContext.setJobGroup("read", "read")
            rows = plan.verdicts.groupBy("verdict").count().collect()
            bar = BARS.get(effort)
            print(
                f"{sum(row['count'] for row in rows):,} groups of {args.size} partitions, "
                f"{effort}: {workers:.1f} s of processor in the workers, {jvm:.1f} in the JVM"
                + (f" (bar {bar:g} together)" if bar else "")
                + "; "
                + ", ".join(f"{row['count']:,} {row.verdict}" for row in sorted(rows)),
                flush=True,
            )
        spark.stop()
        for effort in args.effort:
            print(f"{effort}: {spread(log, effort)}")


def write_tables(folder: Path, groups: int, size: int) -> None:
    """Write the tables of ``plan_by_weight``; a topic for each class of a group."""
    rows: dict[str, list[dict[str, Any]]] = {
        name: [] for name in ("members", "topics", "weights", "owned")
    }
    for seed in range(groups):
        for name, row in rows_of(seed, size):
            rows[name].append(row)
    for name, of_table in rows.items():
        pq.write_table(pa.Table.from_pylist(of_table), folder / f"{name}.parquet")


def rows_of(seed: int, size: int) -> Iterator[tuple[str, dict[str, Any]]]:
    """The rows of one drawn group."""
    drawn, group = draw(seed, size), f"g{seed:05d}"
    topics = [f"{group}-{k}" for k in range(len(drawn["eligible"]))]
    for m, capacity in enumerate(drawn["capacity"]):
        mine = [topic for topic, row in zip(topics, drawn["eligible"], strict=True) if row[m]]
        member = {"group_id": group, "member_id": f"m{m:02d}", "topics": mine}
        yield "members", {**member, "capacity": float(capacity)}
    count = [0] * len(topics)
    for weight, k, home in zip(drawn["weight"], drawn["class"], drawn["home"], strict=True):
        at = {"topic": topics[k], "partition": count[k]}
        yield "weights", {**at, "weight": float(weight)}
        if home >= 0:
            yield "owned", {"group_id": group, "member_id": f"m{home:02d}", **at}
        count[k] += 1
    for topic, partitions in zip(topics, count, strict=True):
        yield "topics", {"topic": topic, "num_partitions": partitions}


def processors() -> tuple[float, float]:
    """Seconds of the processor so far: of the JVM of this process, and of what it has started."""
    jvm, workers = _processes()

    def spent(process: int, fields: slice) -> float:
        try:
            stat = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        except OSError:  # it has ended
            return 0.0
        return sum(map(int, stat[fields])) / _TICKS

    # Of ended workers too: their parent, the daemon, has waited for them.
    return spent(jvm, slice(11, 13)), sum(spent(p, slice(11, 15)) for p in workers)


def peak_megabytes() -> float:
    """The most memory that a Python worker of this process's JVM has held."""
    peaks = [0.0]
    for process in _processes()[1]:
        with contextlib.suppress(OSError):
            status = Path(f"/proc/{process}/status").read_text()
            peaks += [
                int(line.split()[1]) / 1024 for line in status.splitlines() if "VmHWM" in line
            ]
    return max(peaks)


def _processes() -> tuple[int, list[int]]:
    """The JVM of this process, and what it has started."""
    parents: dict[int, int] = {}
    java = set()
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            name, _, rest = status.read_text().partition("(")[2].rpartition(")")
        except OSError:
            continue
        process = int(status.parent.name)
        parents[process] = int(rest.split()[1])
        if name == "java":
            java.add(process)

    def ancestors(process: int) -> Iterator[int]:
        while process in parents:
            process = parents[process]
            yield process

    descendants = [process for process in parents if os.getpid() in ancestors(process)]
    jvm = next(p for p in descendants if p in java and not java & set(ancestors(p)))
    return jvm, [p for p in descendants if jvm in ancestors(p)]


def spread(log: Path, effort: str) -> str:
    """Say which tasks of the longest stage of a call ran where, and for how long."""
    events = [
        json.loads(line)
        for file in log.iterdir()
        for line in file.read_text().splitlines()
        if '"SparkListenerTaskEnd"' in line or '"SparkListenerJobStart"' in line
    ]
    stages = {
        stage
        for event in events
        if event["Event"] == "SparkListenerJobStart"
        and event["Properties"].get("spark.jobGroup.id") == effort
        for stage in event["Stage IDs"]
    }
    tasks: dict[int, list[tuple[int, int]]] = {}
    for event in events:
        if event["Event"] == "SparkListenerTaskEnd" and event["Stage ID"] in stages:
            info = event["Task Info"]
            tasks.setdefault(event["Stage ID"], []).append(
                (info["Launch Time"], info["Finish Time"])
            )
    longest = max(tasks.values(), key=lambda of: sum(end - start for start, end in of))
    seconds = sorted(((end - start) / 1000 for start, end in longest), reverse=True)
    clock = (max(end for _, end in longest) - min(start for start, _ in longest)) / 1000
    share = sum(seconds) / clock
    listed = ", ".join(f"{second:.1f}" for second in seconds[:20])
    return (
        f"{len(seconds)} tasks planned, of {listed} s on the clock, "
        f"{clock:.1f} s from first to last: {share:.2f} ran side by side"
    )


if __name__ == "__main__":
    main()
