"""Kafka's ``BuiltInPartitioner.partitionForKey`` is the oracle, in the jar."""

import doctest
import math
import random

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from kassign_spark.errors import InputError, SchemaError
from kassign_spark.producer import partitioner
from kassign_spark.producer.partitioner import (
    expected_moved_share,
    moved_keys,
    partition_for_key,
    place_records,
)
from kassign_spark.settings import client_versions

SEED = 20260422
KEYS = ["", "a", "abc", "21", "foobar", "key-0", "用户42", "😀", "x" * 43, "y" * 44, "z" * 200]


@pytest.mark.parametrize("module", [partitioner, client_versions])
def test_doctests(spark: SparkSession, module: object) -> None:
    result = doctest.testmod(module, extraglobs={"spark": spark})
    assert result.attempted >= 2
    assert result.failed == 0


def java_partition(spark: SparkSession, key: bytes, count: int) -> int:
    built_in = spark._jvm.org.apache.kafka.clients.producer.internals.BuiltInPartitioner
    return built_in.partitionForKey(bytearray(key), count)


def test_keys_go_where_java_sends_them(spark: SparkSession) -> None:
    chosen = random.Random(SEED)
    keys = [key.encode() for key in KEYS]
    keys += [chosen.randbytes(chosen.randrange(60)) for _ in range(800)]
    counts = [1, 2, 12, 50, 2**31 - 1]
    rows = [
        (bytearray(key), n, java_partition(spark, key, n))
        for key, n in ((key, chosen.choice(counts)) for key in keys)
    ]
    frame = spark.createDataFrame(rows, "key BINARY, n INT, expected INT")
    wrong = frame.where(~partition_for_key(F.col("key"), F.col("n")).eqNullSafe(F.col("expected")))
    assert wrong.collect() == [], f"seed {SEED}"


def test_string_keys_are_their_utf8_bytes(spark: SparkSession) -> None:
    rows = [(key, java_partition(spark, key.encode(), 12)) for key in KEYS]
    frame = spark.createDataFrame([*rows, (None, None)], "key STRING, expected INT")
    got = partition_for_key(F.col("key"), 12)
    assert frame.where(~got.eqNullSafe(F.col("expected"))).collect() == []


def test_masked_not_absolute_and_never_negative(spark: SparkSession) -> None:
    """By ``abs`` "21" and "foobar" would be in 8 and 2; a signed remainder would be negative."""
    assert [abs(h) % 12 for h in (-973932308, -790332482)] == [8, 2]
    frame = spark.createDataFrame([("21",), ("foobar",)], "key STRING")
    got = frame.select(partition_for_key(F.col("key"), 12)).collect()
    assert [row[0] for row in got] == [0, 6]


def test_partition_counts_that_cannot_be(spark: SparkSession) -> None:
    with pytest.raises(InputError, match="num_partitions is 0"):
        partition_for_key(F.col("key"), 0)
    frame = spark.createDataFrame([("a", 0), ("a", -1), ("a", None)], "key STRING, n INT")
    got = frame.select(partition_for_key(F.col("key"), F.col("n"))).collect()
    assert [row[0] for row in got] == [None] * 3


def topics_of(spark: SparkSession, **sizes: int) -> DataFrame:
    return spark.createDataFrame(list(sizes.items()), "topic STRING, num_partitions INT")


def test_a_records_own_partition_wins(spark: SparkSession) -> None:
    cases = [
        ("t", "21", 5, 5, "explicit"),
        ("t", None, 11, 11, "explicit"),
        ("t", "21", None, 0, "key"),
        ("t", "foobar", None, 6, "key"),
        ("t", "", None, 9, "key"),
        ("t", None, None, None, "null_key"),
        ("t", "21", 12, None, "invalid"),
        ("t", "21", -1, None, "invalid"),
        ("none", "21", None, None, "no_topic"),
        ("empty", "21", 0, None, "no_topic"),
    ]
    records = spark.createDataFrame(
        [(i, *case) for i, case in enumerate(cases)],
        "i INT, topic STRING, key STRING, partition INT, placed INT, why STRING",
    )
    topics = topics_of(spark, t=12, empty=0)
    got = place_records(records.withColumn("record_count", F.col("i")), topics)
    assert got.columns == [
        *("topic", "key", "partition", "record_count", "byte_count"),
        *("placed_partition", "placement"),
    ]
    placed = {r.record_count: (r.placed_partition, r.placement) for r in got.collect()}
    assert placed == {i: case[3:] for i, case in enumerate(cases)}
    without_keys = place_records(records, topics, ignore_keys=True)
    kinds = without_keys.groupBy("placement").count().collect()
    assert {r.placement: r["count"] for r in kinds} == {
        "explicit": 2,
        "null_key": 4,
        "invalid": 2,
        "no_topic": 2,
    }


def test_topics_may_be_given_by_partition_and_cluster(spark: SparkSession) -> None:
    topics = spark.createDataFrame(
        [("a", "t", p) for p in range(12)] + [("b", "t", 0)],
        "cluster_id STRING, topic STRING, partition INT",
    )
    records = spark.createDataFrame(
        [("a", "t", bytearray(b"foobar")), ("b", "t", bytearray(b"foobar"))],
        "cluster_id STRING, topic STRING, key BINARY",
    )
    got = place_records(records, topics).collect()
    assert {r.cluster_id: r.placed_partition for r in got} == {"a": 6, "b": 0}


def test_keys_of_other_types_are_refused(spark: SparkSession) -> None:
    records = spark.createDataFrame([("t", 1)], "topic STRING, key INT")
    with pytest.raises(SchemaError, match="column key must be binary, not int"):
        place_records(records, topics_of(spark, t=1))


def test_expected_share_by_counting_remainders(spark: SparkSession) -> None:
    pairs = [(p, q) for p in range(1, 31) for q in range(1, 31)]
    frame = spark.createDataFrame(pairs, "p INT, q INT")
    got = frame.select("p", "q", expected_moved_share(F.col("p"), F.col("q")).alias("share"))
    for row in got.collect():
        cycle = math.lcm(row.p, row.q)
        moved = sum(h % row.p != h % row.q for h in range(cycle)) / cycle
        assert row.share == pytest.approx(moved), row
    most_steps = spark.createDataFrame([(1836311903, 1134903170)], "p INT, q INT")
    [row] = most_steps.select(expected_moved_share(F.col("p"), F.col("q"))).collect()
    assert row[0] == pytest.approx(1 - 1 / 1836311903)


def test_moved_keys_when_a_topic_grows(spark: SparkSession) -> None:
    chosen = random.Random(SEED)
    keys = [f"user-{chosen.randrange(10**9)}" for _ in range(1500)]
    rows = [("t", key, None, chosen.randrange(1, 9)) for key in keys for _ in range(2)]
    others = [("t", None, None, 5), ("t", "key", 3, 5), ("u", "key", None, 5)]
    records = spark.createDataFrame(
        [*rows, *others], "topic STRING, key STRING, partition INT, record_count INT"
    )
    sizes = [(6, 12), (6, 7), (12, 6), (6, 6)]
    growth = spark.createDataFrame(
        [*(("t", *s) for s in sizes), ("v", 1, 2)],
        "topic STRING, num_partitions INT, new_num_partitions INT",
    )
    got = {tuple(r)[:3]: r for r in moved_keys(records, growth).collect()}
    murmur2 = spark._jvm.org.apache.kafka.common.utils.Utils.murmur2
    different = {key: murmur2(bytearray(key.encode())) & 0x7FFFFFFF for key in keys}
    for before, after in sizes:
        row = got[("t", before, after)]
        moved = {key for key, h in different.items() if h % before != h % after}
        assert (row.key_count, row.moved_key_count) == (len(different), len(moved))
        assert row.record_count == sum(r[3] for r in rows)
        assert row.moved_record_count == sum(r[3] for r in rows if r[1] in moved)
        assert row.moved_share == pytest.approx(len(moved) / len(different))
        assert row.moved_share == pytest.approx(row.expected_share, abs=0.03)
    none = got[("v", 1, 2)]
    assert tuple(none)[3:] == (0, 0, None, 0, 0, None, 0.5)
    assert len(got) == 5
