"""Kafka's ``Utils.murmur2`` of the jar, and kafka-python's, are the oracles."""

import doctest
import random

from kafka.partitioner.default import murmur2 as kafka_python_murmur2
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from kassign_spark.producer import murmur2 as module
from kassign_spark.producer.murmur2 import murmur2

SEED = 20260420
VECTORS = {
    b"": 275646681,
    b"a": -1563381124,
    b"abc": 479470107,
    b"21": -973932308,
    b"foobar": -790332482,
    b"key-0": 29210041,
    "用户42".encode(): -1582445644,
    bytes.fromhex("ff80007ffe"): 768357719,
}


def test_doctests(spark: SparkSession) -> None:
    result = doctest.testmod(module, extraglobs={"spark": spark})
    assert result.attempted >= 2
    assert result.failed == 0


def wrong_hashes(spark: SparkSession, expected: dict[bytes, int]) -> list[object]:
    """The keys for which our hash is not the expected one, each as bytes and both hashes."""
    rows = [(bytearray(key), value % 2**32) for key, value in expected.items()]
    frame = spark.createDataFrame(rows, "key BINARY, expected BIGINT")
    got = frame.withColumn("got", murmur2(F.col("key")))
    return got.where(~F.col("got").eqNullSafe(F.col("expected"))).collect()


def test_vectors(spark: SparkSession) -> None:
    assert wrong_hashes(spark, VECTORS) == []


def test_null_stays_null(spark: SparkSession) -> None:
    [row] = spark.createDataFrame([(None,)], "key BINARY").select(murmur2(F.col("key"))).collect()
    assert row[0] is None


def test_every_length_is_as_in_java(spark: SparkSession) -> None:
    chosen = random.Random(SEED)
    keys = [chosen.randbytes(length) for length in range(301) for _ in range(3)]
    keys += [bytes([255]) * length for length in range(301)]
    java = spark._jvm.org.apache.kafka.common.utils.Utils.murmur2
    expected = {key: java(bytearray(key)) for key in keys}
    assert wrong_hashes(spark, expected) == [], f"seed {SEED}"


def test_random_keys_are_as_in_kafka_python(spark: SparkSession) -> None:
    chosen = random.Random(SEED)
    keys = [chosen.randbytes(chosen.randrange(65)) for _ in range(5000)]
    expected = {key: kafka_python_murmur2(key) for key in keys}
    assert wrong_hashes(spark, expected) == [], f"seed {SEED}"


def test_it_is_an_expression_like_any_other(spark: SparkSession) -> None:
    """In filters, groups, aggregates, joins and whole-stage code."""
    keys = spark.createDataFrame([(f"key-{n}",) for n in range(50)], "key STRING")
    hashed = murmur2(F.col("key").cast("binary"))
    by_hash = keys.where(hashed % 2 == 0).groupBy(hashed % 3).agg(F.max(hashed), F.count("*"))
    expected = [kafka_python_murmur2(f"key-{n}".encode()) % 2**32 for n in range(50)]
    even = [h for h in expected if h % 2 == 0]
    assert sorted(map(tuple, by_hash.collect())) == sorted(
        (r, max(h for h in even if h % 3 == r), sum(h % 3 == r for h in even)) for r in range(3)
    )
    other = keys.select(hashed.alias("hash"))
    assert keys.join(other, hashed == F.col("hash"), how="inner").count() == 50
