"""What a run would take on another cluster, from the event log of runs on this machine.

    python -m tests.benchmarks.load fleet giant --event-log LOGS ...
    python -m tests.benchmarks.cost LOGS [--executors 100] [--cores 4] [--network 100]

A run is parted into time in which no task is at work (the driver plans, checks, commits), work in
stages of one task (nothing makes them faster) and work in stages of many, which is for all cores:

    seconds(cores) = driver + serial + parallel / (cores * busy)

``busy`` is the part of two cores that stages of many tasks kept at work. Each of the four is a line
through its figures at the two smaller sizes (``busy`` is that of the second); what the lines say of
the largest size stands beside what it took, and that is the error of the model. The cluster's
figures are those of the largest size as measured, plus its shuffle over the network, which one
machine does not have: each executor sends and receives its share at ``--network`` MB/s.
"""

import argparse
import json
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_CORES_HERE = 2


_Run = tuple[str, str, int]


@dataclass
class _Stage:
    """From when to when each task was at work, in milliseconds since 1970."""

    tasks: list[tuple[int, int]] = field(default_factory=list)
    shuffled: int = 0

    @property
    def seconds(self) -> float:
        return sum(end - start for start, end in self.tasks) / 1000


@dataclass(frozen=True)
class Parts:
    """One run; seconds, but for ``busy`` (of one) and ``shuffled`` (bytes)."""

    wall: float
    driver: float
    serial: float
    parallel: float
    busy: float
    shuffled: float

    def seconds(self, cores: int) -> float:
        return self.driver + self.serial + self.parallel / (cores * self.busy)


def main() -> None:
    """Print the parts of each run, the model's error, and what the cluster would need."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("logs", type=Path, help="folder of event logs")
    parser.add_argument("--executors", type=int, default=100)
    parser.add_argument("--cores", type=int, default=4, help="of an executor")
    parser.add_argument("--network", type=float, default=100.0, help="MB/s of an executor")
    args = parser.parse_args()
    runs: dict[tuple[str, str], dict[int, Parts]] = defaultdict(dict)
    for (shape, case, size), parts in _runs(args.logs).items():
        runs[shape, case][size] = parts
    for (shape, case), sizes in sorted(runs.items()):
        print(f"{shape} {case}")
        for size, parts in sorted(sizes.items()):
            print(f"  {size:>11,} partitions: {_describe(parts)}")
        *smaller, largest = sorted(sizes)
        whole = sizes[largest]
        if len(smaller) >= 2:
            guess = _extended(sizes[smaller[-2]], sizes[smaller[-1]], *smaller[-2:], largest)
            seconds = guess.seconds(_CORES_HERE)
            print(
                f"  the model at {largest:,}, from the two before: {seconds:.1f} s, "
                f"{seconds / whole.wall - 1:+.0%}"
            )
        cores = args.executors * args.cores
        sent = whole.shuffled / args.executors / (args.network * 1e6)
        print(
            f"  {args.executors} executors of {args.cores} cores: {whole.seconds(cores):.1f} s "
            f"and {sent:.1f} s of network; the driver {whole.driver:.1f} s of it, stages of one "
            f"task {whole.serial:.1f} s"
        )


def _describe(parts: Parts) -> str:
    return (
        f"{parts.wall:.1f} s; driver {parts.driver:.1f}, serial {parts.serial:.1f}, "
        f"parallel {parts.parallel:.1f} s of tasks, busy {parts.busy:.0%}, "
        f"shuffled {parts.shuffled / 2**20:,.0f} MiB"
    )


def _extended(one: Parts, two: Parts, size_one: int, size_two: int, size: int) -> Parts:
    """The line through both runs at ``size``; no part gets less than at the second."""

    def at(name: str) -> float:
        low, high = getattr(one, name), getattr(two, name)
        slope: float = (high - low) / (size_two - size_one)
        return max(high, high + slope * (size - size_two))

    return Parts(
        wall=at("wall"),
        driver=at("driver"),
        serial=at("serial"),
        parallel=at("parallel"),
        busy=two.busy,
        shuffled=at("shuffled"),
    )


def _runs(folder: Path) -> dict[_Run, Parts]:
    """By shape, case and partitions; of two runs alike the later, as the first warms up.

    :mod:`tests.benchmarks.load` calls the group of a run's jobs SHAPE/CASE/PARTITIONS/MILLISECONDS,
    by the clock at its start.
    """
    of_stage: dict[int, str] = {}
    of_query: dict[str, str] = {}
    ended: dict[str, int] = {}
    stages: dict[str, dict[int, _Stage]] = defaultdict(lambda: defaultdict(_Stage))
    for event in _events(folder):
        kind = event["Event"].rpartition(".")[2]
        if kind == "SparkListenerJobStart":
            properties = event.get("Properties") or {}
            group = properties.get("spark.jobGroup.id", "")
            if group.count("/") == 3:
                of_stage.update(dict.fromkeys(event["Stage IDs"], group))
                of_query[properties.get("spark.sql.execution.id")] = group
        elif kind == "SparkListenerTaskEnd" and event["Stage ID"] in of_stage:
            info, metrics = event["Task Info"], event["Task Metrics"]
            stage = stages[of_stage[event["Stage ID"]]][event["Stage ID"]]
            stage.tasks.append((info["Launch Time"], info["Finish Time"]))
            stage.shuffled += metrics["Shuffle Write Metrics"]["Shuffle Bytes Written"]
        elif kind == "SparkListenerSQLExecutionEnd" and str(event["executionId"]) in of_query:
            ended[of_query[str(event["executionId"])]] = event["time"]
    runs = {}
    for group in sorted(stages, key=ended.__getitem__):
        shape, case, size, started = group.split("/")
        seconds = (ended[group] - int(started)) / 1000
        runs[shape, case, int(size)] = _parts(seconds, list(stages[group].values()))
    return runs


def _parts(wall: float, stages: list[_Stage]) -> Parts:
    parallel = [stage for stage in stages if len(stage.tasks) > 1]
    at_work = _covered([task for stage in stages for task in stage.tasks])
    in_parallel = sum(stage.seconds for stage in parallel)
    return Parts(
        wall=wall,
        driver=wall - at_work,
        serial=sum(stage.seconds for stage in stages if len(stage.tasks) == 1),
        parallel=in_parallel,
        busy=in_parallel / (_CORES_HERE * _covered([t for s in parallel for t in s.tasks])),
        shuffled=sum(stage.shuffled for stage in stages),
    )


def _covered(tasks: list[tuple[int, int]]) -> float:
    """Seconds in which at least one task was at work."""
    total, until = 0, 0
    for start, end in sorted(tasks):
        total += max(0, end - max(start, until))
        until = max(until, end)
    return total / 1000


def _events(folder: Path) -> Iterator[dict[str, Any]]:
    for path in sorted(p for p in folder.rglob("*") if p.is_file()):
        with path.open(encoding="utf-8") as lines:
            for line in lines:
                yield json.loads(line)


if __name__ == "__main__":
    main()
