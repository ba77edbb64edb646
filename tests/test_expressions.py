"""Java's own strings and hash maps, on Spark's JVM, are the oracle."""

import doctest
import random

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from kassign_spark import expressions
from kassign_spark.expressions import (
    hash_bucket,
    hash_map_capacity,
    hash_map_tables,
    is_order_lost,
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


def with_map_order(keys: DataFrame) -> DataFrame:
    """Each map's keys in iteration order; columns map, at, key in, map, keys, lost out."""
    hashed = keys.withColumns(
        {
            "hash": java_hash_code(F.col("key")),
            "n": F.expr("count(*) OVER (PARTITION BY map)"),
        }
    )
    tables = hashed.withColumn("table", F.explode(hash_map_tables(F.col("at"), F.col("n"))))
    buckets = (
        tables.groupBy("map", "table", hash_bucket(F.col("hash"), F.col("table")))
        .agg(F.count("*").alias("size"))
        .groupBy("map")
        .agg(F.bool_or(is_order_lost(F.col("size"), F.col("table"))).alias("lost"))
    )
    bucket = hash_bucket(F.col("hash"), hash_map_capacity(F.col("n")))
    ordered = hashed.groupBy("map").agg(
        F.array_sort(F.collect_list(F.struct(bucket.alias("bucket"), "at", "key"))).alias("keys")
    )
    return ordered.join(buckets, on="map", how="inner").select("map", "keys.key", "lost")


def assert_map_orders(spark: SparkSession, maps: list[list[str]]) -> list[bool]:
    """Compare with real hash maps; returns which orders are given up as lost."""
    rows = [(i, at, key) for i, keys in enumerate(maps) for at, key in enumerate(keys)]
    got = with_map_order(spark.createDataFrame(rows, "map INT, at INT, key STRING")).collect()
    lost = {r["map"]: r.lost for r in got}
    for row in got:
        java = spark._jvm.java.util.HashMap()
        for key in maps[row["map"]]:
            java.put(key, True)
        assert lost[row["map"]] or list(java.keySet()) == row.key, f"seed {SEED}: {row}"
    return [lost[i] for i in range(len(maps))]


def test_map_order_of_consumers_1_to_13(spark: SparkSession) -> None:
    keys = [(0, i, f"consumer-{i + 1}") for i in range(13)]
    got = with_map_order(spark.createDataFrame(keys, "map INT, at INT, key STRING")).collect()
    order = [11, 10, 6, 5, 4, 3, 2, 13, 1, 12, 9, 8, 7]
    assert [r.key for r in got] == [[f"consumer-{i}" for i in order]]


def test_map_order_is_javas_around_every_doubling(spark: SparkSession) -> None:
    chosen = random.Random(SEED)
    maps = []
    for n in (1, 11, 12, 13, 24, 25, 48, 49, 96, 97):
        maps.append([f"consumer-{i}" for i in range(n)])
        for alphabet in ALPHABETS:
            keys = {"".join(chosen.choices(alphabet, k=20)) for _ in range(n)}
            maps.append(chosen.sample(sorted(keys), len(keys)))
    assert not any(assert_map_orders(spark, maps))


def colliding(count: int) -> list[str]:
    """Keys of one hash: "Aa" and "BB" have the same."""
    digits = (count - 1).bit_length()
    return ["".join("Aa" if i >> d & 1 else "BB" for d in range(digits)) for i in range(count)]


def test_a_bucket_that_becomes_a_tree_is_noticed(spark: SparkSession) -> None:
    others = [f"member-{i}" for i in range(200)]
    eight, nine, sixteen = colliding(8), colliding(9), colliding(16)
    maps = [
        eight,  # eight in a small table stay a list
        nine,  # nine double the table of 16 before its time
        [*others[:30], *sixteen],  # a tree in a table of 64
        [*sixteen, *others],  # a tree in the table of 64, which the larger tables inherit
        [*others, *eight],  # eight in a table of 512: a list in truth, given up by our rule
        [*others, *eight[:6]],
    ]
    assert assert_map_orders(spark, maps) == [False, True, True, True, True, False]


@pytest.mark.parametrize(
    "keys", [[*"abcdefgh", *colliding(9)], [*colliding(16), *[f"m{i}" for i in range(200)]]]
)
def test_orders_given_up_as_lost_differ_in_truth(spark: SparkSession, keys: list[str]) -> None:
    """Else the rule would be caution without a cause."""
    java = spark._jvm.java.util.HashMap()
    for key in keys:
        java.put(key, True)
    rows = spark.createDataFrame(
        [(0, at, key) for at, key in enumerate(keys)], "map INT, at INT, key STRING"
    )
    [row] = with_map_order(rows).collect()
    assert row.lost
    assert list(java.keySet()) != row.key
