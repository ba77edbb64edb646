"""Every public function over the example fleet, its rows written down, in a session of Spark Connect.

    python -m tests.connect.answers GIVEN ANSWERS

In a process of its own: all columns that a process makes are for one kind of session. GIVEN is a
folder that ``tests.benchmarks.queries.read_given`` has filled.
"""

import json
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from tests.benchmarks.queries import CALLS, Given

Answers = dict[str, list[str]]


def answers(spark: SparkSession, folder: Path) -> Answers:
    """The rows of each frame of each call, as sorted text."""
    given = Given(*(spark.read.parquet(f"{folder}/{name}") for name in Given._fields))
    return {
        f"{name} {number}": sorted(_rows(frame))
        for name, call in CALLS.items()
        for number, frame in enumerate(call(given))
    }


def _rows(frame: DataFrame) -> Iterator[str]:
    for row in frame.collect():
        yield json.dumps(row.asDict(recursive=True), default=str, sort_keys=True)


def main(folder: str, out: str) -> None:
    """Start a server of Spark Connect in this process, and ask it."""
    with tempfile.TemporaryDirectory() as scratch:
        spark = (
            SparkSession.builder.remote("local[2]")
            .config("spark.sql.shuffle.partitions", "2")
            .config("spark.ui.enabled", "false")
            .config("spark.driver.host", "127.0.0.1")
            .config("spark.driver.bindAddress", "127.0.0.1")
            .config("spark.connect.grpc.binding.address", "127.0.0.1")
            .config("spark.sql.warehouse.dir", f"{scratch}/warehouse")
            .config("spark.local.dir", scratch)
            .getOrCreate()
        )
        try:
            Path(out).write_text(json.dumps(answers(spark, Path(folder))))
        finally:
            spark.stop()


if __name__ == "__main__":
    os.environ["PYSPARK_PYTHON"] = sys.executable
    main(*sys.argv[1:])
