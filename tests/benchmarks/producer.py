"""Partitions of keys on one core, beside Kafka's Java loop and kafka-python's pure Python.

    python -m tests.benchmarks.producer [--keys COUNT]

Spark's one task reads the keys from Parquet, places them and drops the result; its floor is the
same with the keys' lengths. Java and Python have their keys in memory already. All times are of the
processor, the whole JVM's for Spark (compilers and garbage collection included), so that other work
on the machine counts less.
"""

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from kafka.partitioner.default import murmur2 as python_murmur2
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F

from kassign_spark.producer.partitioner import partition_for_key
from tests.kafka.oracle import new_java_object
from tests.spark_session import start_session

PARTITIONS = 12
SHAPES = {
    "short": ("key-", 0),
    "36 bytes": ("user-", 36),
    "43 bytes": ("", 43),
    "100 bytes": ("", 100),
    "1 kB": ("", 1000),
}
PYTHON_KEYS = 20_000
CHARACTERS = 100_000_000
"""Java is sent all keys in one text, which has to fit the driver."""


def key_of(number: Column, shape: str) -> Column:
    prefix, length = SHAPES[shape]
    text = F.concat(F.lit(prefix), number.cast("string"))
    return F.lpad(text, length, "x") if length else text


def seconds_of(work: Callable[[], object], clock: Callable[[], float], runs: int = 6) -> float:
    """The least processor time of some runs."""
    times = []
    for _ in range(runs):
        start = clock()
        work()
        times.append(clock() - start)
    return min(times)


def compare(spark: SparkSession, shape: str, count: int, scratch: Path) -> None:
    count = min(count, CHARACTERS // max(SHAPES[shape][1], 1))
    path = str(scratch / shape.replace(" ", "-"))
    keys = spark.range(count, numPartitions=1).select(key_of(F.col("id"), shape).alias("key"))
    keys.write.parquet(path)
    keys = spark.read.parquet(path).coalesce(1)

    def clock() -> float:
        process = spark._jvm.java.lang.ProcessHandle.current()
        return process.info().totalCpuDuration().get().toMillis() / 1000

    def spark_seconds(of: Column) -> float:
        placed = keys.select(of.alias("n"))
        return seconds_of(lambda: placed.write.format("noop").mode("overwrite").save(), clock)

    floor = spark_seconds(F.length("key"))
    placed = partition_for_key(F.col("key"), PARTITIONS)
    spark_time = spark_seconds(placed)
    texts = [row.key for row in keys.collect()]
    java = new_java_object(spark, "Keys")
    java_sums = {java.partitions("\n".join(texts), PARTITIONS) for _ in range(3)}
    assert java_sums == {keys.agg(F.sum(placed)).collect()[0][0]}, "Spark and Java disagree"
    sample = [text.encode() for text in texts[:PYTHON_KEYS]]
    python = seconds_of(
        lambda: [(python_murmur2(key) & 0x7FFFFFFF) % PARTITIONS for key in sample],
        time.process_time,
        2,
    )
    print(
        f"{shape:>10}: Spark {count / spark_time / 1e6:6.2f} M keys/s"
        f" (floor {count / floor / 1e6:6.2f}),"
        f" Java {count / java.nanos() * 1e3:6.2f} M keys/s,"
        f" kafka-python {len(sample) / python / 1e6:6.3f} M keys/s"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--keys", type=int, default=1_000_000, help="default: %(default)s")
    count = parser.parse_args().keys
    with tempfile.TemporaryDirectory() as scratch:
        spark = start_session(Path(scratch))
        for shape in SHAPES:
            compare(spark, shape, count, Path(scratch))
        spark.stop()


if __name__ == "__main__":
    main()
