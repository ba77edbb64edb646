"""The general pass beside Kafka's StickyAssignor on groups whose subscriptions differ.

    python -m tests.benchmarks.general [SHAPE ...] [--java SECONDS] [--rounds] [--plain]

Ours goes from Parquet to Parquet, checks included; Kafka's is one call over objects in memory (its
input arrives as JSON, whose parsing is a small part of it). Ours is also certified: best balance,
and no assignment of that balance keeps more.
"""

import argparse
import hashlib
import logging
import random
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from kassign_spark import assign, balance
from kassign_spark.inputs.input_tables import conform_inputs
from kassign_spark.settings import Settings
from tests.kafka import oracle
from tests.spark_session import start_session

SEED = 5


@dataclass(frozen=True)
class Shape:
    """Groups of the same make; ``subscribe`` draws one member's topics."""

    name: str
    change: str
    topics: int
    partitions: int
    members: int
    subscribe: Callable[[random.Random, list[str]], list[str]]
    groups: int = 1


def _half(rng: random.Random, topics: list[str]) -> list[str]:
    return rng.sample(topics, len(topics) // 2)


def _nearly_all(rng: random.Random, topics: list[str]) -> list[str]:
    missing = rng.choice(topics) if rng.random() < 0.003 else None
    return [topic for topic in topics if topic != missing]


def _fifty(rng: random.Random, topics: list[str]) -> list[str]:
    return rng.sample(topics, 50)


SHAPES = [
    Shape("halves", "join", 100, 100, 100, _half),
    Shape("nearly-equal", "join", 500, 2_000, 2_000, _nearly_all),
    Shape("fifty-topics", "leave", 1_000, 100, 1_000, _fifty),
    Shape("fleet", "join", 20, 20, 20, _half, groups=1_000),
]
CURVE = [
    Shape(f"halves-{size * 10_000}", "join", 100, 100 * size, 100, _half)
    for size in (1, 10, 100, 1_000)
]


def main() -> None:
    """Run the shapes that are named, or all but the curve."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("shapes", nargs="*", help=" ".join(s.name for s in SHAPES + CURVE))
    parser.add_argument("--java", type=float, metavar="SECONDS", help="run Kafka's, no longer")
    parser.add_argument("--rounds", action="store_true", help="rounds instead of tasks")
    parser.add_argument("--plain", action="store_true", help="with Spark's own numbers of tasks")
    args = parser.parse_args()
    chosen = [s for s in SHAPES + CURVE if s.name in args.shapes] if args.shapes else SHAPES
    settings = Settings(engine="rounds") if args.rounds else Settings()
    with tempfile.TemporaryDirectory() as folder:
        spark = start_session(Path(folder), memory="6g", plain=args.plain)
        try:
            warm_up = Shape("warm-up", "join", 10, 10, 10, _half)
            for shape in [warm_up, *chosen]:
                _run(spark, shape, Path(folder) / shape.name, settings, args.java)
        finally:
            spark.stop()


def _run(
    spark: SparkSession, shape: Shape, folder: Path, settings: Settings, java: float | None
) -> None:
    print(
        f"{shape.name}: {shape.groups} groups of {shape.topics} topics x {shape.partitions} "
        f"partitions x {shape.members} members",
        flush=True,
    )
    before, after = _subscriptions(shape)
    topics = spark.createDataFrame(
        [(f"t{i:04d}", shape.partitions) for i in range(shape.topics)],
        "topic string, num_partitions int",
    )
    topics.write.parquet(str(folder / "topics"))
    for name, members in (("before", before), ("after", after)):
        schema = "group_id string, member_id string, topics array<string>"
        spark.createDataFrame(members, schema).write.parquet(str(folder / name))
    _time_spark(spark, folder, "fresh", "before", None, settings)
    owned = "fresh"
    if shape.change == "leave":
        owned = "owned"
        spark.read.parquet(str(folder / "fresh")).join(
            spark.read.parquet(str(folder / "after")), on=["group_id", "member_id"], how="left_semi"
        ).write.parquet(str(folder / owned))
    _time_spark(spark, folder, shape.change, "after", owned, settings)
    with _timed("  floor: owned read and written back"):
        spark.read.parquet(str(folder / owned)).write.parquet(str(folder / "floor"))
    if java:
        for name, members, of in (("fresh", before, None), (shape.change, after, owned)):
            _time_kafka(spark, shape, members, name, folder / of if of else None, java)


def _subscriptions(shape: Shape) -> tuple[list[tuple], list[tuple]]:
    """Members before and after: one in ten joins or leaves."""
    rng = random.Random(SEED)
    topics = [f"t{i:04d}" for i in range(shape.topics)]
    fewer, all_of_them = [], []
    count = shape.members + (shape.members // 10 if shape.change == "join" else 0)
    fewer_count = count - shape.members // 10
    for group in range(shape.groups):
        rows = [
            (f"g{group:04d}", _member_id(group, i), sorted(shape.subscribe(rng, topics)))
            for i in range(count)
        ]
        all_of_them += rows
        fewer += rows[:fewer_count]
    return (fewer, all_of_them) if shape.change == "join" else (all_of_them, fewer)


def _member_id(group: int, number: int) -> str:
    """As a broker makes them: where Java's search begins hangs on their hashes, and so its time."""
    return f"consumer-{number}-{hashlib.sha256(f'{group}/{number}'.encode()).hexdigest()[:32]}"


def _time_spark(
    spark: SparkSession,
    folder: Path,
    name: str,
    members_name: str,
    owned_name: str | None,
    settings: Settings,
) -> None:
    rounds: list[float] = []
    shuffled = _shuffled_bytes(spark)
    with _timed(f"  {name}: kassign_spark, Parquet to Parquet"), _rounds_logged(rounds):
        members = spark.read.parquet(str(folder / members_name))
        topics = spark.read.parquet(str(folder / "topics"))
        owned = spark.read.parquet(str(folder / owned_name)) if owned_name else None
        plan = assign(members, topics, owned, assignor="sticky", settings=settings)
        plan.write.parquet(str(folder / name))
    print(f"    {(_shuffled_bytes(spark) - shuffled) / 2**20:,.1f} MiB shuffled", flush=True)
    if rounds:
        each = (rounds[-1] - rounds[0]) / max(len(rounds) - 1, 1)
        print(f"    {len(rounds)} rounds, {each:.2f} s a round", flush=True)
    inputs = conform_inputs(members, topics, owned)
    assignment = spark.read.parquet(str(folder / name)).withColumn("cluster_id", F.lit(""))
    with _timed("    certified"):
        _print_certificate(assignment, inputs.members, inputs.owned)


@contextmanager
def _rounds_logged(ends: list[float]) -> Iterator[None]:
    """Note when each round ends, which the general pass logs."""
    log = logging.getLogger("kassign_spark.assignors.sticky")
    handler = logging.Handler()
    handler.emit = lambda record: ends.append(time.perf_counter())  # type: ignore[method-assign]
    level = log.level
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    try:
        yield
    finally:
        log.removeHandler(handler)
        log.setLevel(level)


def _shuffled_bytes(spark: SparkSession) -> int:
    """What has been written to shuffles since the session began."""
    executors = spark._jsc.sc().statusStore().executorList(False)
    return sum(executors.apply(i).totalShuffleWrite() for i in range(executors.size()))


def _print_certificate(assignment: DataFrame, members: DataFrame, owned: DataFrame | None) -> None:
    verdict = (
        balance(assignment, members, owned)
        .agg(
            F.count_if("is_optimal").alias("optimal"),
            F.count("*").alias("groups"),
            F.sum("least_moves").alias("moves"),
        )
        .first()
    )
    assert verdict is not None
    print(f"    {verdict.optimal} of {verdict.groups} groups optimal, {verdict.moves} moves")


def _time_kafka(
    spark: SparkSession,
    shape: Shape,
    members: list[tuple],
    name: str,
    owned: Path | None,
    seconds: float,
) -> None:
    owns: dict[tuple[str, str], list[tuple[str, int]]] = {}
    for row in spark.read.parquet(str(owned)).collect() if owned else []:
        owns.setdefault((row.group_id, row.member_id), []).append((row.topic, row.partition))
    partitions = {f"t{i:04d}": shape.partitions for i in range(shape.topics)}
    groups: dict[str, list[oracle.Member]] = {}
    for group, member, topics in members:
        claims = owns.get((group, member), [])
        groups.setdefault(group, []).append(
            oracle.Member(member, topics, claims, 1 if claims else None)
        )
    asked = [oracle.Group(partitions, of_group, "sticky") for of_group in groups.values()]
    with _timed(f"  {name}: Kafka's StickyAssignor"):
        answers = oracle.assign(spark, asked, seconds=seconds)
    moved = 0
    for group, answer in zip(groups, answers, strict=True):
        if isinstance(answer, str):
            print(f"    {answer} after {seconds} s")
            return
        owner = {tp: m for (g, m), tps in owns.items() if g == group for tp in tps}
        moved += sum(owner.get(tp, m) != m for m, tps in answer.items() for tp in tps)
    print(f"    {moved} moves")


@contextmanager
def _timed(step: str) -> Iterator[None]:
    started = time.perf_counter()
    yield
    print(f"{step}: {time.perf_counter() - started:.1f} s", flush=True)


if __name__ == "__main__":
    main()
