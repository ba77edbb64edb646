"""Range, RoundRobin and Sticky on groups that subscribe alike, beside Java and Spark's floor.

    python -m tests.benchmarks.equal [SHAPE ...] [--cases CASE ...] [--runs N] [--no-java] [--plain]

Ours goes from Parquet to Parquet, checks included. The floor is what Spark needs to read the same
inputs and to write as many rows of the same columns, with no assignor in between. Java's assignors
(the kafka-clients jar) work on the same groups in memory, on one thread, in the same JVM and run.
Every figure is a median, and the ratios are those of medians; in brackets is the best of the runs.
"""

import argparse
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from kassign_spark import assign
from tests.kafka import oracle
from tests.kafka.oracle import Group, Member
from tests.spark_session import start_session


@dataclass(frozen=True)
class Shape:
    name: str
    groups: int
    topics: int
    partitions: int
    members: int

    @property
    def total(self) -> int:
        return self.groups * self.topics * self.partitions


SHAPES = [
    Shape("fleet", 10_000, 10, 10, 10),
    Shape("giant", 1, 500, 2_000, 2_000),
]
TENFOLD = [
    Shape("fleet-10M", 100_000, 10, 10, 10),
    Shape("giant-10M", 1, 5_000, 2_000, 2_000),
]


CASES: dict[str, tuple[str, str | None, str]] = {
    "range": ("all", None, "range"),
    "roundrobin": ("all", None, "roundrobin"),
    "sticky": ("all", None, "sticky"),
    "sticky-leave": ("fewer", "owned_by_all", "sticky"),
    "sticky-join": ("all", "owned_by_fewer", "sticky"),
    "cooperative-join": ("all", "owned_by_fewer", "cooperative-sticky"),
}
"""Who is in the group, what they own, and the assignor; one member in ten joins or leaves."""


def main() -> None:
    """Run the shapes that are named, or those of a million partitions."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("shapes", nargs="*", help=" ".join(s.name for s in SHAPES + TENFOLD))
    parser.add_argument("--cases", nargs="+", choices=CASES, default=list(CASES), metavar="CASE")
    parser.add_argument("--runs", type=int, default=5, help="counted runs, after two to warm up")
    parser.add_argument("--no-java", action="store_true", help="leave Kafka's assignors out")
    parser.add_argument("--plain", action="store_true", help="with Spark's own numbers of tasks")
    args = parser.parse_args()
    chosen = [s for s in SHAPES + TENFOLD if s.name in args.shapes] if args.shapes else SHAPES
    with tempfile.TemporaryDirectory() as scratch:
        spark = start_session(Path(scratch), memory="6g", plain=args.plain)
        try:
            for shape in chosen:
                folder = Path(scratch) / shape.name
                _run(spark, shape, folder, args.cases, args.runs, java=not args.no_java)
        finally:
            spark.stop()


def _run(
    spark: SparkSession, shape: Shape, folder: Path, cases: list[str], runs: int, *, java: bool
) -> None:
    print(
        f"{shape.name}: {shape.groups} groups of {shape.topics} topics x {shape.partitions} "
        f"partitions x {shape.members} members, {shape.total} partitions",
        flush=True,
    )
    _write_inputs(spark, shape, folder)

    def read(name: str) -> DataFrame:
        return spark.read.parquet(str(folder / name))

    def timed(members: str, owned: str | None, assignor: str | None) -> float:
        """The floor where no assignor is named."""
        out = folder / "out"
        shutil.rmtree(out, ignore_errors=True)
        started = time.perf_counter()
        if assignor is None:
            _read(read("topics"))
            if owned is not None:
                _read(read(owned))
            _as_many_rows(shape, read(members)).write.parquet(str(out))
        else:
            before = None if owned is None else read(owned)
            plan = assign(read(members), read("topics"), before, assignor=assignor)
            plan.write.parquet(str(out))
        return time.perf_counter() - started

    for label in cases:
        members, owned, assignor = CASES[label]
        floors, seconds = [], []
        for run in range(runs + 2):
            floor, mine = timed(members, owned, None), timed(members, owned, assignor)
            if run >= 2:
                floors.append(floor)
                seconds.append(mine)
        floor, mine = statistics.median(floors), statistics.median(seconds)
        line = (
            f"  {label}: {mine:.2f} s, {shape.total / mine:,.0f} partitions/s, "
            f"{mine / floor:.2f} x the floor of {floor:.2f} s "
            f"({min(seconds):.2f} s, {min(seconds) / min(floors):.2f} x {min(floors):.2f} s)"
        )
        if java:
            theirs = statistics.median(
                oracle.seconds_taken(spark, _as_groups(shape, read, members, owned, assignor))[2:]
            )
            line += f", {mine / theirs:.1f} x Java's {theirs:.2f} s in memory"
        print(line, flush=True)
    print(f"  peak memory of the JVM: {_peak_memory(spark) / 2**20:,.0f} MiB", flush=True)


def _write_inputs(
    spark: SparkSession,
    shape: Shape,
    folder: Path,
    owners: tuple[str, ...] = ("all", "fewer"),
) -> None:
    """Members before and after, and what each of the two sets of members owns."""
    group = F.format_string("group-%06d", F.col("id"))
    groups = spark.range(shape.groups, numPartitions=2).select(group.alias("group_id"))
    topics = F.transform(_numbers(shape.topics), lambda t: _topic_name(shape, t))
    subscribed = groups.select("group_id", topics.alias("topics"))
    if shape.groups == 1:
        subscribed = subscribed.repartition(2)
    number = F.explode(_numbers(shape.members)).alias("number")
    digits = F.substring(F.sha2(F.concat_ws("/", "group_id", "number"), 256), 1, 32)
    members = subscribed.select("group_id", "topics", number).select(
        "group_id",
        F.concat_ws("-", F.lit("consumer"), "number", digits).alias("member_id"),
        "topics",
        "number",
    )
    fewer = members.where(F.col("number") % 10 != 9)
    members.drop("number").write.parquet(str(folder / "all"))
    fewer.drop("number").write.parquet(str(folder / "fewer"))
    subscribed.select(
        F.explode("topics").alias("topic"), F.lit(shape.partitions).alias("num_partitions")
    ).write.parquet(str(folder / "topics"))
    for name in owners:
        owning = spark.read.parquet(str(folder / name))
        sizes = spark.read.parquet(str(folder / "topics"))
        plan = assign(owning, sizes, assignor="sticky")
        plan.sortWithinPartitions("group_id", "member_id").write.parquet(
            str(folder / f"owned_by_{name}")
        )
    # Of those who left, the others' partitions are given.
    left = spark.read.parquet(str(folder / "owned_by_all")).join(
        spark.read.parquet(str(folder / "fewer")).select("group_id", "member_id"),
        on=["group_id", "member_id"],
        how="left_semi",
    )
    left.write.parquet(str(folder / "owned_by_those_who_stay"))
    shutil.rmtree(folder / "owned_by_all")
    (folder / "owned_by_those_who_stay").rename(folder / "owned_by_all")


def _numbers(count: int) -> Column:
    return F.sequence(F.lit(0), F.lit(count - 1))


def _topic_name(shape: Shape, number: Column) -> Column:
    padded = F.lpad(number.cast("string"), 4, "0")
    if shape.groups == 1:
        return F.concat(F.lit("topic-"), padded)
    return F.concat(F.lit("topic-"), F.substring("group_id", 7, 6), F.lit("-"), padded)


def _read(frame: DataFrame) -> None:
    frame.write.format("noop").mode("overwrite").save()


def _as_many_rows(shape: Shape, members: DataFrame) -> DataFrame:
    """As many rows as there are partitions, from what is read, by exploding alone."""
    rows = members.select("group_id", "member_id", F.explode("topics").alias("topic"))
    per_row = -(-shape.total // (shape.groups * shape.members * shape.topics))
    return rows.withColumn("partition", F.explode(_numbers(per_row)))


def _as_groups(
    shape: Shape,
    read: Callable[[str], DataFrame],
    members: str,
    owned: str | None,
    assignor: str,
) -> list[Group]:
    owns: dict[tuple[str, str], list[tuple[str, int]]] = {}
    for row in read(owned).toLocalIterator() if owned else ():
        owns.setdefault((row.group_id, row.member_id), []).append((row.topic, row.partition))
    of_group: dict[str, list[Member]] = {}
    for row in read(members).collect():
        claims = owns.get((row.group_id, row.member_id), [])
        member = Member(row.member_id, row.topics, claims, 1 if claims else None)
        of_group.setdefault(row.group_id, []).append(member)
    return [
        Group(dict.fromkeys(group[0].topics, shape.partitions), group, assignor)
        for group in of_group.values()
    ]


def _peak_memory(spark: SparkSession) -> int:
    """Heap in use at its highest since the JVM started, all pools together."""
    jvm = spark._jvm
    assert jvm is not None
    pools = jvm.java.lang.management.ManagementFactory.getMemoryPoolMXBeans()
    return sum(int(pool.getPeakUsage().getUsed()) for pool in pools)


if __name__ == "__main__":
    main()
