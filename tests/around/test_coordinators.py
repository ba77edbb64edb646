import doctest
import random

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from kassign_spark.brokers import coordinator as module
from kassign_spark.brokers.coordinator import (
    coordinator_load,
    coordinator_partition,
    coordinators,
)
from kassign_spark.errors import InputError, SchemaError

SEED = 20260421
OF_50 = {
    "polygenelubricants": 0,
    "my-group": 12,
    "test": 48,
    "组": 2,
    "😀": 49,
    "connect-cluster": 13,
    "": 0,
}


def test_doctests(spark: SparkSession) -> None:
    result = doctest.testmod(module, extraglobs={"spark": spark})
    assert result.attempted >= 3
    assert result.failed == 0


def test_vectors(spark: SparkSession) -> None:
    groups = spark.createDataFrame([*OF_50.items(), (None, None)], "id STRING, expected INT")
    wrong = groups.where(~coordinator_partition(F.col("id")).eqNullSafe(F.col("expected")))
    assert wrong.collect() == []


def test_abs_is_neither_the_producers_mask_nor_the_printed_formula(spark: SparkSession) -> None:
    """ "my-group" is in 36 by masking; "polygenelubricants" in 48 by ``Math.abs(hash % 50)``."""
    assert (-1906497762 & 0x7FFFFFFF) % 50 == 36
    assert abs(-(2**31)) % 50 == 48
    [row] = (
        spark.createDataFrame([("my-group", "polygenelubricants")], "a STRING, b STRING")
        .select(coordinator_partition(F.col("a")), coordinator_partition(F.col("b")))
        .collect()
    )
    assert tuple(row) == (12, 0)


def test_random_groups_are_where_kafkas_utils_put_them(spark: SparkSession) -> None:
    chosen = random.Random(SEED)
    alphabet = "abcdefghijklmnop-_.0123456789é組😀"
    groups = ["".join(chosen.choices(alphabet, k=chosen.randrange(40))) for _ in range(800)]
    groups += ["polygenelubricants", "GydZG_", "DESIGNING WORKHOUSES"]
    kafka_abs = spark._jvm.org.apache.kafka.common.utils.Utils.abs
    hash_code = spark._jvm.java.util.Objects.hashCode
    rows = []
    for group in groups:
        count = chosen.choice([1, 2, 7, 48, 50, 64, 2**31 - 1])
        rows.append((group, count, kafka_abs(hash_code(group)) % count))
    frame = spark.createDataFrame(rows, "id STRING, n INT, expected INT")
    got = coordinator_partition(F.col("id"), F.col("n"))
    assert frame.where(~got.eqNullSafe(F.col("expected"))).collect() == [], f"seed {SEED}"


def test_partition_counts_that_cannot_be(spark: SparkSession) -> None:
    for count in (0, -1, True):
        with pytest.raises(InputError, match="num_partitions"):
            coordinator_partition(F.col("id"), count)
    frame = spark.createDataFrame([("a", 0), ("a", -3), ("a", None)], "id STRING, n INT")
    got = frame.select(coordinator_partition(F.col("id"), F.col("n"))).collect()
    assert [row[0] for row in got] == [None] * 3


def leaders_of(spark: SparkSession, *rows: tuple[str, str, int, int | None]) -> DataFrame:
    schema = "cluster_id STRING, topic STRING, partition INT, leader INT"
    return spark.createDataFrame(list(rows), schema)


def offsets_leaders(cluster: str, *brokers: int | None) -> list[tuple[str, str, int, int | None]]:
    return [(cluster, "__consumer_offsets", i, broker) for i, broker in enumerate(brokers)]


def test_coordinator_is_the_leader_in_the_groups_own_cluster(spark: SparkSession) -> None:
    leaders = leaders_of(
        spark,
        *offsets_leaders("a", *[100 + i for i in range(50)]),
        *offsets_leaders("b", 7),
        *offsets_leaders("c", *[None if i == 12 else -1 for i in range(50)]),
        ("a", "orders", 12, 999),
    )
    groups = spark.createDataFrame(
        [(c, g) for c in "abcd" for g in ("my-group", "test", "my-group")],
        "cluster_id STRING, group_id STRING",
    )
    got = coordinators(groups, leaders)
    assert got.columns == ["cluster_id", "group_id", "coordinator_partition", "coordinator"]
    assert sorted(tuple(row) for row in got.collect()) == [
        ("a", "my-group", 12, 112),
        ("a", "test", 48, 148),
        ("b", "my-group", 0, 7),
        ("b", "test", 0, 7),
        ("c", "my-group", 12, None),
        ("c", "test", 48, None),
        ("d", "my-group", None, None),
        ("d", "test", None, None),
    ]
    located = coordinators(groups.where("cluster_id = 'd'"), leaders, num_partitions=50)
    assert sorted(tuple(row) for row in located.collect()) == [
        ("d", "my-group", 12, None),
        ("d", "test", 48, None),
    ]


def test_load_of_each_coordinator(spark: SparkSession) -> None:
    # my-group: partition 12, test: 48, 组: 2, connect-cluster: 13.
    brokers: list[int | None] = [1] * 10 + [2] * 10 + [3] * 28 + [None, 3]
    leaders = leaders_of(spark, *offsets_leaders("a", *brokers)).drop("cluster_id")
    groups = {"my-group": 6, "connect-cluster": 2, "组": 1, "test": 4}
    members = spark.createDataFrame(
        [(g, f"m{i}", ["t"]) for g, n in groups.items() for i in range(n)],
        "group_id STRING, member_id STRING, topics ARRAY<STRING>",
    )
    owned = spark.createDataFrame(
        [("组", "m0", "t", p) for p in range(30)],
        "group_id STRING, member_id STRING, topic STRING, partition INT",
    )
    got = coordinator_load(members, leaders, owned)
    assert got.columns == [
        "coordinator",
        "coordinator_partition_count",
        "group_count",
        "member_count",
        "partition_count",
        "load_ratio",
        "is_hot",
    ]
    rows = {row.coordinator: tuple(row)[1:] for row in got.collect()}
    assert rows == {
        1: (10, 1, 1, 30, 3.0, True),  # 30 partitions, 10 are the mean
        2: (10, 2, 8, 0, pytest.approx(8 / 3), True),  # 8 members, 3 are the mean
        3: (29, 0, 0, 0, 0.0, False),
        None: (0, 1, 4, 0, None, False),
    }
    without = {
        row.coordinator: tuple(row)[4:]
        for row in coordinator_load(members, leaders, hot_ratio=2.7).collect()
    }
    assert without == {
        1: (None, pytest.approx(1 / 3), False),
        2: (None, pytest.approx(8 / 3), False),
        3: (None, 0.0, False),
        None: (None, None, False),
    }


def test_bad_arguments_are_one_clear_line(spark: SparkSession) -> None:
    leaders = leaders_of(spark, *offsets_leaders("a", 1))
    groups = spark.createDataFrame([("g",)], "group_id STRING")
    with pytest.raises(SchemaError, match="cluster_id: leaders has it, groups has not"):
        coordinators(groups, leaders)
    with pytest.raises(SchemaError, match="table leaders: column partition"):
        coordinators(groups, leaders.drop("cluster_id", "partition"))
    members = spark.createDataFrame([("g", "m")], "group_id STRING, member_id STRING")
    with pytest.raises(InputError, match="hot_ratio is 0"):
        coordinator_load(members, leaders.drop("cluster_id"), hot_ratio=0)
