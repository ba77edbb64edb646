"""Hash codes and the order of hash maps, as the JVM has them."""

import random
from typing import Any

import pytest
from pyspark.sql import SparkSession

from kassign_spark.client.hash_order import hash_map_order, java_hash, scala_set_order, sort_as_java
from tests.random_groups import random_member_ids


def test_hash_codes() -> None:
    codes = {"": 0, "test": 3556498, "my-group": -1906497762 % 2**32, "组": 32452, "😀": 1772899}
    assert {text: java_hash(text) for text in codes} == codes


def test_order_of_sequential_ids() -> None:
    ids = [f"consumer-{i}" for i in range(1, 14)]
    order, _, is_reproduced = hash_map_order([java_hash(i) for i in ids])
    assert [position + 1 for position in order] == [11, 10, 6, 5, 4, 3, 2, 13, 1, 12, 9, 8, 7]
    assert is_reproduced


def test_order_is_that_of_the_jvms_hash_map(spark: SparkSession) -> None:
    rng = random.Random(5)
    for count in (1, 2, 11, 12, 13, 24, 25, 48, 49, 400):
        ids = random_member_ids(rng, count)
        java = spark._jvm.java.util.HashMap()  # type: ignore[union-attr]
        for member_id in ids:
            java.put(member_id, 0)
        order = hash_map_order([java_hash(member_id) for member_id in ids])
        assert order.is_reproduced
        assert [ids[i] for i in order.order] == list(java.keySet())


def test_order_is_that_of_a_scala_set(spark: SparkSession) -> None:
    jvm: Any = spark._jvm
    version = jvm.scala.util.Properties.versionNumberString()
    if not version.startswith("2.13"):
        pytest.skip(f"Spark has Scala {version}, a Kafka broker 2.13, whose sets are others")
    rng = random.Random(6)
    for count in (1, 4, 5, 8, 30, 400):
        names = [*random_member_ids(rng, count)]
        if count > 4:
            names += ["AaAa", "BBBB", "AaBB"]  # one hash code
        scala = jvm.scala.collection.immutable.HashSet()
        for name in names:
            scala = scala.incl(name)
        iterator, listed = scala.iterator(), []
        while iterator.hasNext():
            listed.append(iterator.next())
        assert scala_set_order(names) == (listed if count > 4 else names)


def test_strings_order_by_code_unit() -> None:
    texts = ["\uffee", "\U0001f600", "b", "a"]
    assert [texts[i] for i in sort_as_java(texts)] == ["a", "b", "\U0001f600", "\uffee"]
    assert sort_as_java(["b", "a"]) == [1, 0]


def test_buckets_of_nine_keys_are_not_reproduced() -> None:
    """Codes that differ by the table's size share a bucket."""
    eight, nine = [[64 * 64 * i for i in range(n)] for n in (8, 9)]
    others = list(range(1, 40))
    assert hash_map_order(eight + others).is_reproduced
    assert not hash_map_order(nine + others).is_reproduced
    assert not hash_map_order(nine).is_reproduced, "a small table grows early instead"
