"""The library that a member runs, told from its bytes, its client id and its protocol."""

import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from kassign_spark import explain, predict, validate
from kassign_spark.conforming import conform
from kassign_spark.errors import InputError
from kassign_spark.inputs.client_families import with_clients
from kassign_spark.schemas import MEMBERS
from kassign_spark.tables.snapshots import Snapshot, read_snapshot, write_snapshot
from tests import builders

_TOPICS = ("orders", "käse")
_OWNED = "group_id string, member_id string, topic string, partition int, position int"
_NULL = b"\xff\xff\xff\xff"
_EMPTY = b"\x00" * 4
_HISTORY = struct.pack(">ih1sii", 1, 1, b"t", 1, 0) + struct.pack(">i", 4)
"""Of the sticky assignors, version 1: partition 0 of topic t, generation 4."""


def _sized(data: bytes) -> bytes:
    return struct.pack(">i", len(data)) + data


def _bytes(
    version: int, user_data: bytes, rack: bytes = b"", topics: Sequence[str] = _TOPICS
) -> bytes:
    """A subscription; ``user_data`` with its length, ``rack`` too, which version 3 has."""
    parts = [struct.pack(">hi", version, len(topics))]
    for topic in topics:
        name = topic.encode()
        parts.append(struct.pack(">h", len(name)) + name)
    parts.append(user_data)
    if version >= 1:
        parts.append(_EMPTY)  # nothing is owned
    if version >= 2:
        parts.append(_NULL)  # no generation
    return b"".join(parts) + rack


_NO_RACK, _EMPTY_RACK, _RACK = b"\xff\xff", b"\x00\x00", b"\x00\x02r1"
_CASES = [
    ("java", "range", "consumer-g-1", _bytes(3, _NULL, _NO_RACK), None),
    ("java with a rack", "range", "app", _bytes(3, _NULL, _RACK), None),
    ("java cooperative", "cooperative-sticky", "app", _bytes(3, _sized(_NULL), _NO_RACK), None),
    ("java later", "cooperative-sticky", "a", _bytes(3, _sized(b"\0\0\0\7"), _NO_RACK), None),
    ("java sticky", "sticky", "app", _bytes(3, _sized(_HISTORY), _NO_RACK), None),
    ("java of 2.4", "range", "app", _bytes(1, _NULL), None),
    ("librdkafka", "range", "app", _bytes(3, _EMPTY, _EMPTY_RACK), "librdkafka"),
    ("with a rack", "range", "app", _bytes(3, _EMPTY, _RACK), "librdkafka"),
    ("later", "cooperative-sticky", "a", _bytes(3, _sized(_HISTORY), _EMPTY_RACK), "librdkafka"),
    ("of 2.1", "range", "rdkafka", _bytes(1, _EMPTY), "librdkafka"),
    ("kgo", "range", "kgo", _bytes(3, _NULL, _NO_RACK), "franz-go"),
    ("fresh", "sticky", "app", _bytes(3, _sized(_EMPTY), _NO_RACK), "franz-go"),
    ("kgo later", "cooperative-sticky", "a", _bytes(3, _sized(_HISTORY), _NO_RACK), "franz-go"),
    ("sarama", "range", "sarama", _bytes(1, _NULL), "sarama"),
    ("no sarama", "range", "sarama", _bytes(3, _NULL, _NO_RACK), None),
    ("kafka-go", "range", "prog@host", _bytes(1, _NULL)[:-4], "kafka-go"),
    ("its racks", "range", "prog@host", _bytes(1, _sized(b"rack"))[:-4], "kafka-go"),
    ("kafka-python", "range", "kafka-python-3.0.12", _bytes(0, _EMPTY), "kafka-python"),
    ("of 2.2", "range", "kafka-python-2.2.15", _bytes(0, _EMPTY), "aiokafka"),
    ("aiokafka", "roundrobin", "aiokafka-0.14.0", None, "aiokafka"),
    ("kafkajs", "RoundRobinAssigner", "kafkajs", _bytes(0, _EMPTY), "kafkajs"),
    ("nothing", "range", None, None, None),
]


def _member(name: str, assignor: str, client_id: str | None, data: bytes | None) -> dict[str, Any]:
    return {
        "group_id": name,
        "member_id": "m",
        "topics": [*_TOPICS],
        "assignor": assignor,
        "client_id": client_id,
        "subscription": None if data is None else bytearray(data),
    }


def test_families(spark: SparkSession) -> None:
    members = builders.members(spark, [_member(*case[:4]) for case in _CASES])
    rows = with_clients(conform(members, MEMBERS)).collect()
    expected = {name: client for name, _, _, _, client in _CASES}
    assert {row.group_id: row.client for row in rows} == expected


def test_what_is_given_comes_first(spark: SparkSession) -> None:
    case = _member("g", "range", "kgo", _bytes(3, _EMPTY, _EMPTY_RACK)) | {"client": "sarama"}
    members = conform(builders.members(spark, [case]), MEMBERS)
    assert [row.client for row in with_clients(members).collect()] == ["sarama"]


def test_the_answer_is_that_of_the_family(spark: SparkSession) -> None:
    data = _bytes(1, _NULL, topics=["orders"])[:-4]
    row = _member("g", "range", "prog@host", data) | {"topics": ["orders"]}
    members = builders.members(spark, [row | {"member_id": f"m{n}"} for n in range(3)])
    predicted, _ = predict(members, builders.topics(spark, {"orders": 7}))
    in_order = predicted.orderBy("partition").collect()
    assert "".join(row.member_id for row in in_order) == "m0m0m1m1m2m2m2"  # as kafka-go has it


def test_rack_affinity_takes_racks_from_the_bytes(spark: SparkSession) -> None:
    rows = [
        _member("g", "rack-affinity", "prog@host", _bytes(1, _sized(rack), topics=["orders"])[:-4])
        | {"topics": ["orders"], "member_id": f"m{n}", "member_seq": n}
        for n, rack in enumerate((b"b", b"a", b"a"))
    ]
    members = builders.members(spark, rows)
    leaders = [["a", "b"], ["b"], ["a", "b"], ["b"], ["b"], ["a"], ["a"]]
    topics = spark.createDataFrame(
        [("orders", 7, leaders)],
        "topic string, num_partitions int, replica_racks array<array<string>>",
    )
    predicted, verdicts = predict(members, topics)
    assert [row.verdict for row in verdicts.collect()] == ["ok"]
    expected = {0: "m1", 1: "m0", 2: "m1", 3: "m0", 4: "m0", 5: "m2", 6: "m2"}
    assert {row.partition: row.member_id for row in predicted.collect()} == expected
    explained = explain(predicted, members, topics).collect()
    assert [(row.assignor, row.own_assignor) for row in explained] == [("rack-affinity",) * 2]
    for unknown in (
        (members.drop("member_seq"), topics, "the order of members"),
        (members, topics.drop("replica_racks"), "replica_racks"),
        (members.drop("subscription"), topics, "rack_id"),
    ):
        (verdict,) = predict(*unknown[:2])[1].collect()
        assert verdict.verdict == "inexact"
        assert unknown[2] in verdict.detail
    with_racks = members.drop("subscription").withColumn("rack_id", F.lit("a"))
    with pytest.raises(InputError, match="client has no assignor of that name"):
        predict(with_racks.withColumn("client", F.lit("java")), topics)
    with pytest.raises(InputError, match="unknown assignor"):
        predict(members, topics, assignor="rack-affinity")


@pytest.mark.parametrize("table_format", ["parquet", "json", "csv"])
def test_files_keep_bytes_and_positions(
    spark: SparkSession, tmp_path: Path, table_format: str
) -> None:
    data = _bytes(3, _EMPTY, _EMPTY_RACK, topics=["orders"] * 30)
    row = _member("g", "range", "app", data) | {"topics": ["orders"] * 30}
    members = builders.members(spark, [row, row | {"member_id": "n", "subscription": None}])
    owned = spark.createDataFrame([("g", "m", "orders", 0, 1)], _OWNED)
    snapshot = Snapshot(members, builders.topics(spark, {"orders": 7}), owned)
    write_snapshot(snapshot, tmp_path / "snapshot", table_format=table_format)
    read = read_snapshot(tmp_path / "snapshot", spark)
    assert read.owned is not None
    assert [each.position for each in read.owned.collect()] == [1]
    sent = {each.member_id: each.subscription for each in read.members.collect()}
    assert sent == {"m": bytearray(data), "n": None}
    _, verdicts = predict(read.members, read.topics, read.owned)
    assert [each.verdict for each in verdicts.collect()] == ["ok"]


@pytest.mark.parametrize("position", [-4, 99_999_999_999])
def test_a_position_is_a_place_in_a_list(spark: SparkSession, position: int) -> None:
    members = builders.members(spark, [_member("g", "sticky", "aiokafka-1", None)])
    topics = builders.topics(spark, dict.fromkeys(_TOPICS, 3)).where("topic = 'orders'")
    members = members.withColumn("topics", F.expr("array('orders')"))
    owned = spark.createDataFrame(
        [("g", "m", "orders", 0, position)], _OWNED.replace("position int", "position bigint")
    )
    with pytest.raises(InputError, match=rf"table owned, column position: {position} "):
        predict(members, topics, owned)[0].collect()
    problems = validate(members, topics, owned).where("problem = 'position_out_of_range'")
    assert problems.count() == 1


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x00\x03",
        _bytes(1, _NULL)[:-6],
        _bytes(3, _NULL, _NO_RACK, topics=["orders"]),
        _bytes(1, _sized(b"rack"))[:-6],
    ],
)
def test_unreadable_bytes_are_refused(spark: SparkSession, data: bytes) -> None:
    row = _member("g", "range", "app", data) | {"topics": ["orders", "cheese"]}
    members = builders.members(spark, [row])
    with pytest.raises(InputError, match=r"column subscription: .* no subscription to the topics"):
        predict(members, builders.topics(spark, {"orders": 7}))[0].collect()
