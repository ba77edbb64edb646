"""Member ids of one hash: Java's own map has another order, and users are told."""

import random
from itertools import islice, product
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from kassign_spark import validate
from kassign_spark.client.hash_order import hash_map_order, java_hash, java_hash_codes
from kassign_spark.validation.member_order import crowded_buckets
from tests import builders

_ALIKE = ["".join(blocks) for blocks in islice(product(("Aa", "BB"), repeat=4), 16)]
"""All have the same hash code."""


def _java_order(spark: SparkSession, keys: list[str]) -> list[str]:
    jvm: Any = spark._jvm
    table = jvm.java.util.HashMap()
    for key in keys:
        table.put(key, True)
    return list(jvm.java.util.ArrayList(table.keySet()))


def _members(alike: int, others: int) -> list[str]:
    return _ALIKE[:alike][::-1] + [f"m{i}" for i in range(others)]


def _bucket_sizes(maps: list[list[str]]) -> list[int]:
    keys = [key for keys in maps for key in keys]
    codes = java_hash_codes(pa.array(keys)).astype(np.int64)
    return crowded_buckets(np.repeat(np.arange(len(maps)), [*map(len, maps)]), codes).tolist()


def _order_here(keys: list[str]) -> list[str]:
    """By bucket, then by insertion."""
    return [keys[i] for i in hash_map_order([*map(java_hash, keys)]).order]


def test_crowded_buckets_are_told(spark: SparkSession) -> None:
    groups = {
        "seven": (_members(7, 30), "sticky"),
        "eight": (_members(8, 30), "cooperative-sticky"),
        "unnamed": (_members(16, 40), None),
        "range": (_members(16, 40), "range"),
        "small": (_members(8, 0), "sticky"),
        "nine": (_members(9, 0), "sticky"),
    }
    rows = [
        {"group_id": g, "member_id": m, "topics": ["t"], "member_seq": i, "assignor": assignor}
        for g, (ids, assignor) in groups.items()
        for i, m in enumerate(ids)
    ]
    result = validate(builders.members(spark, rows), builders.topics(spark, {"t": 4})).collect()
    details = {r.group_id: r.detail.split(" member ids")[0] for r in result}
    assert {r.problem for r in result} == {"hash_order_not_reproduced"}
    assert details == {
        "eight": "the hashes of 8",
        "unnamed": "the hashes of 16",
        "nine": "the hashes of 9",
    }


def test_java_really_visits_a_crowded_bucket_in_another_order(spark: SparkSession) -> None:
    def in_bucket(keys: list[str]) -> list[str]:
        return [key for key in _java_order(spark, keys) if key in _ALIKE]

    kept, lost = _members(7, 30), _members(16, 40)
    assert in_bucket(kept) == kept[:7]
    assert in_bucket(lost) != lost[:16]


def test_a_bucket_that_becomes_a_tree_is_noticed(spark: SparkSession) -> None:
    others = [f"member-{i}" for i in range(200)]
    maps = {
        "eight in a small table stay a list": _ALIKE[:8],
        "nine double the table of 16 before its time": _ALIKE[:9],
        "a tree in a table of 64": [*others[:30], *_ALIKE],
        "a tree in the table of 64, which larger tables inherit": [*_ALIKE, *others],
        "eight in a table of 512: a list in truth": [*others, *_ALIKE[:8]],
        "six": [*others, *_ALIKE[:6]],
    }
    sizes = dict(zip(maps, _bucket_sizes([*maps.values()]), strict=True))
    reproduced = {name for name, size in sizes.items() if not size}
    assert reproduced == {"eight in a small table stay a list", "six"}
    for name in reproduced:
        assert _java_order(spark, maps[name]) == _order_here(maps[name])


def test_a_tree_that_a_larger_table_would_split_is_noticed(spark: SparkSession) -> None:
    """The nine share a bucket of 64 and are apart in the table of 128."""
    near = [text for i in range(100_000) if _bucket_of(text := f"m{i}", 64) == 5][:9]
    apart = [text for i in range(100_000) if _bucket_of(text := f"n{i}", 64) != 5][:60]
    assert max(map([_bucket_of(text, 128) for text in near].count, (5, 69))) < 8
    assert _bucket_sizes([[*near, *apart], [*apart, *near]]) == [9, 0]
    assert _java_order(spark, [*apart, *near]) == _order_here([*apart, *near])


def _bucket_of(text: str, capacity: int) -> int:
    code = java_hash(text)
    return (code ^ code >> 16) & (capacity - 1)


def test_maps_of_ordinary_keys_are_reproduced(spark: SparkSession) -> None:
    drawn = random.Random(20261130)
    sizes = (1, 11, 12, 13, 24, 25, 48, 49, 96, 97)
    maps = [drawn.sample([f"consumer-{i}-é😀" for i in range(500)], n) for n in sizes]
    assert not any(_bucket_sizes(maps))
    for keys in maps:
        assert _java_order(spark, keys) == _order_here(keys)


@pytest.mark.parametrize("keys", [[*"abcdefgh", *_ALIKE[:9]], [*_ALIKE, *map(str, range(200))]])
def test_orders_that_are_called_lost_differ_in_truth(spark: SparkSession, keys: list[str]) -> None:
    """Else the rule would be caution without a cause."""
    assert all(_bucket_sizes([keys]))
    assert _java_order(spark, keys) != _order_here(keys)


def test_members_are_put_by_member_seq_and_then_in_javas_order(spark: SparkSession) -> None:
    """Java sorts a character above U+FFFF before U+FFEE, Spark after it.

    The table doubles at the 49th member. Eight that share a bucket of 64, and none of 128, are
    crowded where the last of them is the 48th.
    """
    alike = [text for i in range(100_000) if _bucket_of(text := f"a{i}", 64) == 5][:7]
    apart = [text for i in range(100_000) if _bucket_of(text := f"b{i}", 64) != 5][:40]
    eighth = next(text for i in range(100_000) if _bucket_of(text := f"😀{i}", 64) == 5)
    members = [*alike, *apart, "\uffee", eighth]
    places = {"java": {}, "late": {eighth: 1}, "early": {eighth: 0, **dict.fromkeys(apart, 1)}}
    rows = [
        {"group_id": group, "member_id": m, "topics": ["t"], "member_seq": place.get(m)}
        for group, place in places.items()
        for m in members
    ]
    result = validate(builders.members(spark, rows), builders.topics(spark, {"t": 4})).collect()
    assert {r.group_id for r in result} == {"java", "early"}
    assert {r.problem for r in result} == {"hash_order_not_reproduced"}
