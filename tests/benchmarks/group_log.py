"""Records of a group log decoded and reduced in one job: records a second, and memory.

    python -m tests.benchmarks.group_log [--records COUNT] [--groups COUNT] [--members COUNT]

One record in ten is a generation of a classic group, the others are commits. The records are made
by Spark's own expressions from one generation's bytes, and kept in Parquet; then they are decoded
and counted by group, in one job of a task a core; and then reduced to ``rebalances``, in one job as
users have it. The floor is the same job that only counts bytes. Seconds of the processor are of the
JVM and the Python workers together: on a busy machine they say more than those of the clock.
Records a second of two cores are by them.
"""

import argparse
import resource
import struct
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from kassign_spark.history.rebalances import rebalances
from kassign_spark.log.decode import decode_table
from kassign_spark.log.log_schemas import RECORDS
from tests.benchmarks.border import largest_worker
from tests.oracles import protocol, wire
from tests.spark_session import start_session

_ONE_IN = 10
_TASKS = 2
_LOG_PARTITIONS = 50
_COUNTED = (
    "generations LONG, members LONG, assigned LONG, commits LONG, unread LONG, cpu LONG, rss LONG"
)

Batches = Iterable[pa.RecordBatch]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--records", type=int, default=10_000_000, help="default: %(default)s")
    parser.add_argument("--groups", type=int, default=10_000, help="default: %(default)s")
    parser.add_argument("--members", type=int, default=20, help="default: %(default)s")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        spark = start_session(Path(scratch), memory="3g")
        path = f"{scratch}/records"
        _records(spark, args.records, args.groups, args.members).write.parquet(path)
        spark.conf.set("spark.sql.files.maxPartitionBytes", "64m")
        records = spark.read.parquet(path)
        size = records.agg(F.sum(F.length("value") + F.length("key"))).collect()[0][0]
        print(f"{args.records:,} records of {size / args.records:.0f} bytes, {_TASKS} cores")
        for name, work in (("floor", _bytes), ("decoded and counted", _decoded)):
            _measure(name, records, work, args)
        _reduce(records, args)
        spark.stop()


def _records(spark: SparkSession, count: int, groups: int, members: int) -> DataFrame:
    number = F.col("id")
    group = F.format_string("group-%05d", number % groups)
    is_generation = number % _ONE_IN == 0
    topic = F.format_string("topic-%02d", number % 20)
    commit_key = F.concat(
        _bytes_of(struct.pack(">h", 1)), _text(group), _text(topic), _int32(number % members)
    )
    before, after = _generation_value(members)
    timestamp = (F.lit(1_700_000_000) + number / 1000).cast("timestamp")
    return spark.range(count, numPartitions=8 * _TASKS).select(
        F.when(is_generation, F.concat(_bytes_of(struct.pack(">h", 2)), _text(group)))
        .otherwise(commit_key)
        .alias("key"),
        F.when(
            is_generation,
            F.concat(_bytes_of(before), _int32((number / groups).cast("int")), _bytes_of(after)),
        )
        .otherwise(F.concat(_bytes_of(_COMMIT), _int32(number.cast("int")), _bytes_of(_COMMIT_END)))
        .alias("value"),
        F.lit("__consumer_offsets").alias("topic"),
        (number % groups % _LOG_PARTITIONS).cast("int").alias("partition"),
        number.alias("offset"),
        timestamp.alias("timestamp"),
    )


_COMMIT = struct.pack(">hi", 3, 0)
"""A version, and half of an offset."""
_COMMIT_END = struct.pack(">ih", -1, 0) + struct.pack(">q", 1_700_000_000_000)


def _generation_value(members: int) -> tuple[bytes, bytes]:
    """The bytes around the generation's number: two topics, a partition of each a member."""
    listed = []
    for place in range(members):
        owned = (("topic-00", place), ("topic-01", place))
        subscription = protocol.Subscription(("topic-00", "topic-01"), owned, 1)
        listed += [
            wire.string(f"consumer-orders-{place}-3f2a54b0-77c1-4c0f-9d52-{place:012d}"),
            struct.pack(">h", -1),
            wire.string(f"consumer-orders-{place}"),
            wire.string("/10.20.30.40"),
            struct.pack(">ii", 300_000, 45_000),
            wire.nullable_bytes(protocol.encode_subscription(subscription)),
            wire.nullable_bytes(protocol.encode_assignment(protocol.Assignment(owned))),
        ]
    leader = wire.string("consumer-orders-0-3f2a54b0-77c1-4c0f-9d52-000000000000")
    return (
        struct.pack(">h", 3) + wire.string("consumer"),
        wire.string("cooperative-sticky")
        + leader
        + struct.pack(">qi", 1_700_000_000_000, members)
        + b"".join(listed),
    )


def _bytes_of(data: bytes) -> Column:
    return F.lit(bytearray(data))


def _int32(number: Column) -> Column:
    return F.unhex(F.lpad(F.hex(number.cast("long")), 8, "0"))


def _text(text: Column) -> Column:
    length = F.unhex(F.lpad(F.hex(F.octet_length(text)), 4, "0"))
    return F.concat(length, F.encode(text, "UTF-8"))


def _bytes(batches: Batches) -> Iterator[pa.RecordBatch]:
    began = time.process_time()
    total = sum(pc.sum(pc.binary_length(batch.column("value"))).as_py() or 0 for batch in batches)
    yield _row(began, 0, 0, 0, 0, total)


def _decoded(batches: Batches) -> Iterator[pa.RecordBatch]:
    """Counts by group in each batch, then over the groups: what a reduction looks at at least."""
    began = time.process_time()
    sums = [0, 0, 0, 0, 0]
    for decoded in map(decode_table, batches):
        tables = (decoded.generations, decoded.log_members, decoded.log_assignment, decoded.commits)
        for place, table in enumerate(tables):
            by_group = table.group_by("group_id", use_threads=False).aggregate([([], "count_all")])
            sums[place] += pc.sum(by_group.column("count_all")).as_py() or 0
        sums[4] += decoded.unread.num_rows
    yield _row(began, *sums)


def _row(began: float, *counts: int) -> pa.RecordBatch:
    cpu = int((time.process_time() - began) * 1000)
    rss = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    names = [column.split()[0] for column in _COUNTED.split(", ")]
    return pa.RecordBatch.from_arrays(
        [pa.array([n], pa.int64()) for n in (*counts, cpu, rss)], names
    )


def _measure(
    name: str,
    records: DataFrame,
    work: Callable[[Batches], Iterator[pa.RecordBatch]],
    args: argparse.Namespace,
) -> None:
    began, jvm_began = time.monotonic(), _jvm_seconds(records.sparkSession)
    counted = records.select(*RECORDS.columns.names).mapInArrow(work, _COUNTED)
    sums = counted.agg(
        *map(F.sum, ("generations", "members", "assigned", "commits", "unread", "cpu")),
        F.max("rss"),
    ).collect()[0]
    seconds = time.monotonic() - began
    cpu = sums[5] / 1000 + _jvm_seconds(records.sparkSession) - jvm_began
    print(
        f"{name:>20}: {seconds:6.1f} s, of processors {cpu:6.1f} s (Python {sums[5] / 1000:.1f}):"
        f" {args.records / cpu * _TASKS:10,.0f} records/s of {_TASKS} cores,"
        f" a Python worker {sums[6] / 2**20:,.0f} MiB at most"
    )
    if work is _decoded:
        generations = args.records // _ONE_IN
        expected = (generations, generations * args.members, 2 * generations * args.members)
        assert tuple(sums[:5]) == (*expected, args.records - generations, 0), sums


def _reduce(records: DataFrame, args: argparse.Namespace) -> None:
    most, ended = [0.0], threading.Event()

    def watch() -> None:
        while not ended.wait(0.2):
            most[0] = max(most[0], largest_worker())

    watching = threading.Thread(target=watch, daemon=True)
    watching.start()
    began = time.monotonic()
    totals = rebalances(records).agg(F.count(F.lit(1)), F.sum("kept")).collect()[0]
    seconds = time.monotonic() - began
    ended.set()
    watching.join()
    print(
        f"{'rebalances':>20}: {seconds:6.1f} s, {args.records / seconds:10,.0f} records/s,"
        f" a Python worker {most[0]:,.0f} MiB at most"
    )
    assert totals[0] == args.records // _ONE_IN, totals


def _jvm_seconds(spark: SparkSession) -> float:
    process = spark._jvm.java.lang.ProcessHandle.current()
    return float(process.info().totalCpuDuration().get().toMillis()) / 1000


if __name__ == "__main__":
    main()
