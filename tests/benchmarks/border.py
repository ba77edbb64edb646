"""One group of one component: inside one task, beside rounds over DataFrames; and its certificate.

    python -m tests.benchmarks.border [EDGES ...] [--ways WAY ...] [--limit SECONDS] [--cluster]

Edges are pairs of a topic class and a subscriber. Half of all members read each topic, by chance,
so every topic is a class of its own and all is one component: the worst there is. A tenth of the
members joins; ten partitions a member. `task` answers the group whole inside a task; `rounds`
settles its counts in rounds over a DataFrame of blocks, with components by rounds or GraphFrames,
and names partitions by DataFrame steps. From Parquet to Parquet on the
session's two cores, or with ``--cluster`` on a standalone master and two workers of one core.
Memory is the most that one Python worker had. A way that takes longer than ``--limit`` is cut off.
The certificate is ``balance`` of the result; the graph of the group and its bottlenecks are
measured as well.
"""

import argparse
import logging
import math
import os
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from kassign_spark import assign, balance, bottlenecks, eligibility
from kassign_spark.settings import Settings
from tests.cluster.standalone import running_cluster
from tests.spark_session import start_session

WAYS = {
    "task": Settings(engine="task"),
    "rounds": Settings(engine="rounds", use_graphframes=False),
    "graphframes": Settings(engine="rounds", use_graphframes=True),
}
_MEMBERS_OF_A_TOPIC = 20
_PARTITIONS_OF_A_MEMBER = 10


def main() -> None:
    """Print a line a size and way."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("edges", nargs="*", type=int, default=[10**5, 10**6, 10**7])
    parser.add_argument("--ways", nargs="*", choices=WAYS, default=list(WAYS))
    parser.add_argument("--limit", type=float, default=900, help="seconds of one way")
    parser.add_argument("--memory", default="6g", help="of the driver, and of each executor")
    parser.add_argument("--cluster", action="store_true", help="on a master and two workers")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, ExitStack() as started:
        master = "local[2]"
        if args.cluster:
            Path(folder, "cluster").mkdir()
            cluster = running_cluster(Path(folder, "cluster"), memory=args.memory)
            master = started.enter_context(cluster).url
        spark = start_session(Path(folder), memory=args.memory, master=master)
        try:
            _run(spark, 10**4, Path(folder) / "warm", ["task"], args.limit, silent=True)
            print(f"{'edges':>10}  {'what':<12}{'seconds':>8}{'MB':>7}{'rounds':>7}", flush=True)
            for edges in args.edges:
                _run(spark, edges, Path(folder) / str(edges), args.ways, args.limit)
        finally:
            spark.stop()


def _run(
    spark: SparkSession,
    edges: int,
    folder: Path,
    ways: list[str],
    limit: float,
    *,
    silent: bool = False,
) -> None:
    topic_count = max(2, round(math.sqrt(2 * edges / _MEMBERS_OF_A_TOPIC)))
    member_count = _MEMBERS_OF_A_TOPIC * topic_count
    _write_inputs(spark, folder, topic_count, member_count)
    members, topics = (spark.read.parquet(f"{folder}/{name}") for name in ("members", "topics"))
    before = members.where(F.substring("member_id", 2, 9).cast("int") % 10 > 0)

    def plan(name: str, who: DataFrame, owned: DataFrame | None, way: str) -> None:
        with _measured(spark, limit) as spent:
            result = assign(who, topics, owned, assignor="sticky", settings=WAYS[way])
            result.write.parquet(f"{folder}/{name}")
        if not silent:
            spent.print(edges, name)

    plan("fresh", before, None, "task")
    owned = spark.read.parquet(f"{folder}/fresh")
    for way in ways:
        plan(way, members, owned, way)
    done = [way for way in ways if Path(f"{folder}/{way}/_SUCCESS").exists()]
    rows = {
        way: spark.read.parquet(f"{folder}/{way}").orderBy("topic", "partition") for way in done
    }
    assert len({tuple(_digest(frame)) for frame in rows.values()}) <= 1, "the ways differ"
    if done:
        with _measured(spark, limit) as spent:
            judged = balance(rows[done[0]], members, owned).collect()[0]
            assert judged.is_optimal
        if not silent:
            spent.print(edges, "certificate")
    if not silent:
        with _measured(spark, limit) as spent:
            assert eligibility(members, topics).edges.count() > edges * 0.9
        spent.print(edges, "eligibility")
        with _measured(spark, limit) as spent:
            assert bottlenecks(members, topics).count() >= 1
        spent.print(edges, "bottlenecks")


def _digest(frame: DataFrame) -> list[int]:
    return list(frame.agg(F.count("*"), F.sum(F.xxhash64(*frame.columns) % 2**31)).collect()[0])


def _write_inputs(spark: SparkSession, folder: Path, topics: int, members: int) -> None:
    name = F.format_string("t%05d", F.col("x"))
    all_topics = F.sequence(F.lit(0), F.lit(topics - 1))
    reads = F.filter(all_topics, lambda x: F.xxhash64("id", x) % 2 == 0)
    spark.range(members, numPartitions=8).select(
        F.lit("giant").alias("group_id"),
        F.format_string("m%09d", "id").alias("member_id"),
        F.transform(reads, lambda x: F.format_string("t%05d", x)).alias("topics"),
    ).write.parquet(f"{folder}/members")
    each = members * _PARTITIONS_OF_A_MEMBER // topics
    spark.range(topics).withColumn("x", F.col("id")).select(
        name.alias("topic"), F.lit(each).alias("num_partitions")
    ).write.parquet(f"{folder}/topics")


@dataclass
class Spent:
    """What something took."""

    seconds: float = 0.0
    megabytes: float = 0.0
    rounds: int = 0
    failed: str = ""
    ended: threading.Event = field(default_factory=threading.Event)

    def print(self, edges: int, measure: str) -> None:
        """Print a line."""
        rounds = f"{self.rounds}" if self.rounds else "-"
        print(
            f"{edges:>10,}  {measure:<12}{self.seconds:>8.1f}{self.megabytes:>7.0f}{rounds:>7}"
            f"  {self.failed}",
            flush=True,
        )


@contextmanager
def _measured(spark: SparkSession, limit: float) -> Iterator[Spent]:
    """Time what runs meanwhile, count its rounds, watch its workers' memory, end it in time."""
    spent = Spent()
    watch = threading.Thread(target=_watch, args=(spark, spent, limit), daemon=True)
    log = logging.getLogger("kassign_spark.assignors.sticky")
    handler, level = logging.Handler(), log.level

    def emit(record: logging.LogRecord) -> None:
        spent.rounds += 1

    handler.emit = emit  # type: ignore[method-assign]
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    started = time.perf_counter()
    watch.start()
    try:
        yield spent
    except (PySparkException, Py4JError) as error:
        if time.perf_counter() - started < limit:
            raise
        spent.failed = f"cut off ({type(error).__name__})"
    finally:
        spent.seconds = time.perf_counter() - started
        spent.ended.set()
        watch.join()
        log.removeHandler(handler)
        log.setLevel(level)


def _watch(spark: SparkSession, spent: Spent, limit: float) -> None:
    ends = time.perf_counter() + limit
    while not spent.ended.wait(0.2):
        spent.megabytes = max(spent.megabytes, largest_worker())
        if time.perf_counter() > ends:
            spark.sparkContext.cancelAllJobs()


def largest_worker() -> float:
    """Megabytes of the largest of Spark's Python workers below this process."""
    parents, workers = {}, []
    for entry in os.scandir("/proc"):
        if not entry.name.isdigit():
            continue
        try:
            stat = Path(entry.path, "stat").read_text().rpartition(")")[2].split()
            if "pyspark.daemon" in Path(entry.path, "cmdline").read_text():
                workers.append((int(entry.name), int(stat[21]) * os.sysconf("SC_PAGE_SIZE")))
        except OSError:  # it has just ended
            continue
        parents[int(entry.name)] = int(stat[1])

    def is_ours(process: int) -> bool:
        while process > 1:
            process = parents.get(process, 0)
            if process == os.getpid():
                return True
        return False

    return max((size for process, size in workers if is_ours(process)), default=0) / 2**20


if __name__ == "__main__":
    main()
