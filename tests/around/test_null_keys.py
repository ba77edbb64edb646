"""Kafka's ``BuiltInPartitioner`` and its table of running sums are the oracle."""

import random
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from kassign_spark.errors import InputError
from kassign_spark.producer.null_keys import null_key_shares

SEED = 20260423
SCHEMA = "topic STRING, partition INT, leader INT, queue_size INT, is_slow BOOLEAN"


def shares_of(frame: DataFrame) -> dict[str, dict[int, float]]:
    got: dict[str, dict[int, float]] = {}
    for row in frame.collect():
        got.setdefault(row.topic, {})[row.partition] = row.share
    return got


def partitions_of(spark: SparkSession, **leaders: list[int | None]) -> DataFrame:
    rows = [
        (topic, p, leader, None, None)
        for topic, of_topic in leaders.items()
        for p, leader in enumerate(of_topic)
    ]
    return spark.createDataFrame(rows, SCHEMA)


@pytest.mark.parametrize(
    ("version", "rule"),
    [
        ("0.10.2.1", "round_robin"),
        ("2.3.1", "round_robin"),
        ("2.4.0", "sticky"),
        ("3.2.3", "sticky"),
        ("3.3.0", "uniform"),
        ("4.4.0", "uniform"),
    ],
)
def test_even_over_the_partitions_that_have_a_leader(
    spark: SparkSession, version: str, rule: str
) -> None:
    partitions = partitions_of(spark, t=[1, None, 2, -1], none=[None, -1], one=[7])
    got = null_key_shares(partitions, version)
    assert got.columns == ["topic", "partition", "share", "rule"]
    assert {row.rule for row in got.collect()} == {rule}
    assert shares_of(got) == {
        "t": {0: 0.5, 1: 0.0, 2: 0.5, 3: 0.0},
        "none": {0: 0.5, 1: 0.5},
        "one": {0: 1.0},
    }


def java_weights(spark: SparkSession, queues: list[int], slow: list[bool]) -> dict[int, int] | None:
    """What ``RecordAccumulator`` would tell the partitioner, and the chances it then takes."""
    jvm, gateway = spark._jvm, spark.sparkContext._gateway
    kept = [p for p in range(len(queues)) if not slow[p]]
    sizes, ids = (gateway.new_array(jvm.int, len(queues)) for _ in range(2))
    for place, partition in enumerate(kept):
        sizes[place], ids[place] = queues[partition], partition
    racks = gateway.new_array(jvm.java.lang.String, len(queues))
    built_in = jvm.org.apache.kafka.clients.producer.internals.BuiltInPartitioner(
        jvm.org.apache.kafka.common.utils.internals.LogContext(), "t", 1, False, ""
    )
    built_in.updatePartitionLoadStats(sizes, ids, racks, len(kept))
    holder = field(built_in, "partitionLoadStatsHolder")
    stats = None if holder is None else field(holder, "total")
    if stats is None:
        return None
    sums = list(field(stats, "cumulativeFrequencyTable"))[: field(stats, "length")]
    steps = [total - before for before, total in zip([0, *sums], sums, strict=False)]
    return dict(zip(list(field(stats, "partitionIds")), steps, strict=False))


def field(item: Any, name: str) -> Any:
    declared = item.getClass().getDeclaredField(name)
    declared.setAccessible(True)
    return declared.get(item)


def test_adaptive_weights_are_the_built_in_partitioners(spark: SparkSession) -> None:
    chosen = random.Random(SEED)
    cases = [
        ([0, 3, 1], [False] * 3),
        ([2, 2], [False] * 2),
        ([5], [False]),
        ([2, 2], [True, False]),
    ]
    cases += [([1, 2], [True, True])]
    for _ in range(60):
        size = chosen.randrange(1, 6)
        queues = [chosen.choice([0, 1, 2, 9]) for _ in range(size)]
        cases.append((queues, [chosen.random() < 0.2 for _ in range(size)]))
    rows = [
        (f"t{i}", p, 1, queue, is_slow)
        for i, (queues, slow) in enumerate(cases)
        for p, (queue, is_slow) in enumerate(zip(queues, slow, strict=True))
    ]
    frame = spark.createDataFrame(rows, SCHEMA)
    adaptive = shares_of(null_key_shares(frame, "4.4.0"))
    even = shares_of(null_key_shares(frame, "4.4.0", adaptive=False))
    seen = set()
    for i, (queues, slow) in enumerate(cases):
        weights = java_weights(spark, queues, slow)
        uniform = {p: pytest.approx(1 / len(queues)) for p in range(len(queues))}
        assert even[f"t{i}"] == uniform
        if weights is None:
            expected = uniform
        else:
            total = sum(weights.values())
            expected = {
                p: 0.0 if slow[p] else pytest.approx(weights[p] / total) for p in range(len(queues))
            }
        assert adaptive[f"t{i}"] == expected, (SEED, queues, slow, weights)
        seen.add(weights is None)
    assert seen == {True, False}


def test_unknown_queues_or_an_older_client_are_not_adaptive(spark: SparkSession) -> None:
    rows = [("t", 0, 1, 5, None), ("t", 1, 1, None, None)]
    frame = spark.createDataFrame(rows, SCHEMA)
    assert shares_of(null_key_shares(frame, "3.3.0")) == {"t": {0: 0.5, 1: 0.5}}
    known = spark.createDataFrame([("t", 0, 1, 5, None), ("t", 1, 1, 0, None)], SCHEMA)
    assert shares_of(null_key_shares(known, "3.2.0")) == {"t": {0: 0.5, 1: 0.5}}
    assert shares_of(null_key_shares(known, "3.3.0")) == {
        "t": {0: pytest.approx(1 / 7), 1: pytest.approx(6 / 7)}
    }


def test_a_version_that_is_none_is_refused(spark: SparkSession) -> None:
    with pytest.raises(InputError, match=r'client_version is "newest"; give one like 3\.9\.1'):
        null_key_shares(partitions_of(spark, t=[1]), "newest")
