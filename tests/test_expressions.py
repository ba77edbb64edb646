"""Java's own strings and hash maps, on Spark's JVM, are the oracle."""

import doctest
import random

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from kassign_spark import expressions
from kassign_spark.expressions import (
    hash_bucket,
    hash_map_capacity,
    java_hash_code,
    java_string_order,
    topic_partition_hash,
)

SEED = 20260418
VECTORS = {
    "": 0,
    "test": 3556498,
    "my-group": -1906497762,
    "组": 32452,
    "😀": 1772899,
    "polygenelubricants": -2147483648,
    "GydZG_": -2147483648,
    "DESIGNING WORKHOUSES": -2147483648,
}
ALPHABETS = [
    "abcdefghijklmnopqrstuvwxyz0123456789-._",
    "aé߿ࠀ组퟿￿\x7f\x80",
    "a組\U00010000\U0010ffff😀￮",
]


def random_strings(count: int) -> list[str]:
    chosen = random.Random(SEED)
    return [
        "".join(chosen.choices(chosen.choice(ALPHABETS), k=chosen.randrange(70)))
        for _ in range(count)
    ]


def test_doctests(spark: SparkSession) -> None:
    names = {**vars(expressions), "spark": spark}
    result = doctest.testmod(expressions, extraglobs=names)
    assert result.attempted >= 10
    assert result.failed == 0


def test_hash_code_vectors(spark: SparkSession) -> None:
    rows = spark.createDataFrame([*VECTORS.items(), (None, None)], "text STRING, expected INT")
    wrong = rows.where(~java_hash_code(F.col("text")).eqNullSafe(F.col("expected")))
    assert wrong.collect() == []


def test_hash_code_of_random_strings_is_javas(spark: SparkSession) -> None:
    strings = random_strings(2000)
    assert sum(any(ord(c) > 0xFFFF for c in s) for s in strings) > 400
    hash_code = spark._jvm.java.util.Objects.hashCode
    rows = spark.createDataFrame([(s, hash_code(s)) for s in strings], "text STRING, expected INT")
    wrong = rows.where(~java_hash_code(F.col("text")).eqNullSafe(F.col("expected")))
    assert wrong.collect() == [], f"seed {SEED}"


def test_topic_partition_hash_is_kafkas(spark: SparkSession) -> None:
    chosen = random.Random(SEED)
    topic_partition = spark._jvm.org.apache.kafka.common.TopicPartition
    pairs = [(t, chosen.choice([0, 1, 7, 2**31 - 1])) for t in random_strings(300)]
    rows = [(t, p, topic_partition(t, p).hashCode()) for t, p in pairs]
    frame = spark.createDataFrame([*rows, (None, 0, None)], "t STRING, p INT, expected INT")
    got = topic_partition_hash(F.col("t"), F.col("p"))
    assert frame.where(~got.eqNullSafe(F.col("expected"))).collect() == [], f"seed {SEED}"


def test_string_order_is_javas(spark: SparkSession) -> None:
    strings = sorted({*random_strings(300), "\uffee", "😀", "\ue000", "\ud7ff"})
    java = spark._jvm.java.util.TreeSet()
    for text in strings:
        java.add(text)
    expected = list(java)
    assert expected != strings, "no string tells the two orders apart"
    rows = spark.createDataFrame([(s,) for s in strings], "text STRING")
    assert [r.text for r in rows.orderBy(java_string_order(F.col("text"))).collect()] == expected


def test_capacity_of_every_small_map_and_around_every_doubling(spark: SparkSession) -> None:
    doublings = [3 * 2**k + d for k in range(2, 28) for d in (-1, 0, 1)]
    rows = [(n, least_table(n)) for n in {*range(200), *doublings, 2**31 - 1}]
    frame = spark.createDataFrame(rows, "count INT, expected INT")
    assert frame.where(hash_map_capacity(F.col("count")) != F.col("expected")).collect() == []
    as_bigint = hash_map_capacity(F.col("count").cast("bigint"))
    assert frame.where(as_bigint != F.col("expected")).collect() == []


def least_table(count: int) -> int:
    table = 16
    while 4 * count > 3 * table and table < 2**30:
        table *= 2
    return table


def assert_map_orders(spark: SparkSession, maps: list[list[str]]) -> None:
    """Compare the order of keys by bucket, then by insertion, with real hash maps."""
    rows = [(i, at, key, len(keys)) for i, keys in enumerate(maps) for at, key in enumerate(keys)]
    keys = spark.createDataFrame(rows, "map INT, at INT, key STRING, n INT")
    bucket = hash_bucket(java_hash_code(F.col("key")), hash_map_capacity(F.col("n")))
    ordered = keys.groupBy("map").agg(
        F.array_sort(F.collect_list(F.struct(bucket.alias("bucket"), "at", "key"))).alias("keys")
    )
    for row in ordered.select("map", "keys.key").collect():
        java = spark._jvm.java.util.HashMap()
        for key in maps[row["map"]]:
            java.put(key, True)
        assert list(java.keySet()) == row.key, f"seed {SEED}: {row}"


def test_map_order_is_javas_around_every_doubling(spark: SparkSession) -> None:
    chosen = random.Random(SEED)
    maps = [[f"consumer-{i + 1}" for i in range(13)]]
    for n in (1, 11, 12, 13, 24, 25, 48, 49, 96, 97):
        maps.append([f"consumer-{i}" for i in range(n)])
        for alphabet in ALPHABETS:
            keys = {"".join(chosen.choices(alphabet, k=20)) for _ in range(n)}
            maps.append(chosen.sample(sorted(keys), len(keys)))
    assert_map_orders(spark, maps)
