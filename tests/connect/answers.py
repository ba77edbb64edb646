"""Public functions over the example fleet, their rows written down, in a session of Spark Connect.

    python -m tests.connect.answers GIVEN ANSWERS

In a process of its own: all columns that a process makes are for one kind of session. GIVEN is a
folder that ``tests.benchmarks.queries.read_example_tables`` has filled.
"""

import json
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import kassign_spark as ks
from tests.benchmarks.queries import CALLS, EXAMPLES, Call, ExampleTables
from tests.java import SHORT_LIVED
from tests.spark_session import QUICK_WORKERS, UNCOMPILED

IN_ROUNDS = ks.Settings(engine="rounds")

_LOG = EXAMPLES / "group-log"

FURTHER: dict[str, Call] = {
    "assign in rounds": lambda g: [
        ks.assign(g.members, g.topics, g.owned, assignor="sticky", settings=IN_ROUNDS)
    ],
    "check_migration": lambda g: [ks.check_migration(g.candidates)],
    "check_settings": lambda g: [ks.check_settings(_clients(g))],
    "explain_history": lambda g: [
        ks.explain_history(ks.read_group_log(_LOG, g.members.sparkSession, owned=True))
    ],
    "fleet_graph": lambda g: list(ks.fleet_graph(g.members, g.topics)),
    "group_clusters": lambda g: [ks.group_clusters(g.members, g.topics)],
    "member_traffic": lambda g: [
        ks.member_traffic(ks.partition_traffic(_records(g), g.topics), g.assignment, g.members)
    ],
    "moved_keys": lambda g: [
        ks.moved_keys(
            _records(g),
            g.topics.select(
                "topic", "num_partitions", (2 * F.col("num_partitions")).alias("new_num_partitions")
            ),
        )
    ],
    "null_key_shares": lambda g: [
        ks.null_key_shares(_partitions(g).withColumn("leader", F.lit(1)), "4.1.0")
    ],
    "partition_weights": lambda g: [ks.partition_weights(_offsets(g))],
    "place_records": lambda g: [ks.place_records(_records(g), g.topics)],
    "plan_by_weight": lambda g: list(
        ks.plan_by_weight(g.members, g.topics, _weights(g), g.owned, missing_weight=1.0)
    ),
    "predict_rebalance": lambda g: list(
        ks.predict_rebalance(g.members, g.topics, g.owned, assignor="cooperative-sticky")
    ),
    "read_group_log": lambda g: list(ks.read_group_log(_LOG, g.members.sparkSession)),
    "rebalances": lambda g: [_rebalances(g)],
    "storms": lambda g: [ks.storms(_rebalances(g))],
    "read_snapshot": lambda g: list(
        ks.read_snapshot(EXAMPLES / "both-protocols", g.members.sparkSession).tables().values()
    ),
    "touched_by": lambda g: [ks.touched_by(g.members, g.topics, ["orders.created"])],
    "tradeoff": lambda g: [
        ks.tradeoff(g.members, g.topics, _weights(g), g.owned, missing_weight=1.0)
    ],
}
"""Those that no count of queries is held for."""

REFUSAL = "write_snapshot"
"""The key of why a snapshot is not written where one is."""

Answers = dict[str, list[str]]


def answers(spark: SparkSession, folder: Path) -> Answers:
    """The rows of each frame of each call, as sorted text."""
    inputs = ExampleTables(
        *(spark.read.parquet(f"{folder}/{name}") for name in ExampleTables._fields)
    )
    return {
        f"{name} {number}": sorted(_rows(frame))
        for name, call in (CALLS | FURTHER).items()
        for number, frame in enumerate(call(inputs))
    }


def _rows(frame: DataFrame) -> Iterator[str]:
    for row in frame.collect():
        yield json.dumps(row.asDict(recursive=True), default=str, sort_keys=True)


def _rebalances(inputs: ExampleTables) -> DataFrame:
    return ks.rebalances(ks.read_group_log(_LOG, inputs.members.sparkSession))


def _partitions(inputs: ExampleTables) -> DataFrame:
    partition = F.explode(F.sequence(F.lit(0), F.col("num_partitions") - 1)).alias("partition")
    return inputs.topics.select("topic", partition)


def _records(inputs: ExampleTables) -> DataFrame:
    key = F.concat("topic", F.lit("-"), F.col("partition").cast("string"))
    keyed = F.when(F.col("partition") % 5 > 0, key).alias("key")
    return _partitions(inputs).select("topic", keyed, F.lit(7).alias("record_count"))


def _weights(inputs: ExampleTables) -> DataFrame:
    weight = (F.col("partition") * 7 % 11 + 1).cast("double").alias("weight")
    return _partitions(inputs).select("topic", "partition", weight)


def _offsets(inputs: ExampleTables) -> DataFrame:
    return inputs.owned.select(
        "group_id",
        "topic",
        "partition",
        F.lit(0).cast("bigint").alias("begin_offset"),
        (F.col("partition") * 100).cast("bigint").alias("end_offset"),
        F.col("partition").cast("bigint").alias("committed_offset"),
        F.lit("2026-01-01 00:00:00").cast("timestamp").alias("as_of"),
    )


def _clients(inputs: ExampleTables) -> DataFrame:
    return inputs.members.sparkSession.createDataFrame(
        [("c", "4.1.0", "session.timeout.ms", "1"), ("d", "4.1.0", "heartbeat.interval.ms", "9")],
        "client string, client_version string, setting string, value string",
    )


def _refusal(spark: SparkSession, folder: str) -> str:
    """Write a snapshot, and again to the same place."""
    snapshot = ks.read_snapshot(EXAMPLES / "fleet", spark)
    ks.write_snapshot(snapshot, folder)
    try:
        ks.write_snapshot(snapshot, folder, overwrite=True)
    except ks.KassignError as error:
        return str(error)
    return "written"


def main(folder: str, out: str) -> None:
    """Start a server of Spark Connect in this process, and ask it."""
    with tempfile.TemporaryDirectory() as scratch:
        spark = (
            SparkSession.builder.remote("local[2]")
            .config(map=UNCOMPILED | QUICK_WORKERS)
            .config("spark.sql.shuffle.partitions", "2")
            .config("spark.driver.extraJavaOptions", SHORT_LIVED)
            .config("spark.driver.host", "127.0.0.1")
            .config("spark.driver.bindAddress", "127.0.0.1")
            .config("spark.connect.grpc.binding.address", "127.0.0.1")
            .config("spark.sql.warehouse.dir", f"{scratch}/warehouse")
            .config("spark.local.dir", scratch)
            .getOrCreate()
        )
        try:
            result = answers(spark, Path(folder))
            result[REFUSAL] = [_refusal(spark, f"{out}-snapshot")]
            Path(out).write_text(json.dumps(result))
        finally:
            spark.stop()


if __name__ == "__main__":
    os.environ["PYSPARK_PYTHON"] = sys.executable
    main(*sys.argv[1:])
