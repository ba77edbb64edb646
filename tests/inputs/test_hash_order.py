"""Member ids of one hash: Java's own map really iterates them otherwise, and that is told."""

from itertools import islice, product
from typing import Any

from pyspark.sql import SparkSession

from kassign_spark import validate
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
