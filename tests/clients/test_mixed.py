"""Groups of several libraries, whose leader cannot read what some members send."""

import struct
from typing import Any

import pytest
from kafka.protocol.consumer.metadata import ConsumerProtocolSubscription
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from kassign_spark import explain, predict
from tests import builders
from tests.clients.libraries import answers
from tests.kafka.oracle import Group, Member

_SHORT = struct.pack(">hih1si", 1, 1, 1, b"t", -1)
"""kafka-go's subscription to topic t."""
_CASES = [
    ("java", "kafka-go", "range", "throws", "java cannot read kafka-go's subscriptions"),
    ("kafka-python", "kafka-go", "range", "throws", "kafka-python cannot read kafka-go's"),
    ("librdkafka", "kafka-go", "range", "ok", "librdkafka cannot read kafka-go's"),
    ("franz-go", "kafka-go", "roundrobin", "ok", None),
    ("kafka-go", "librdkafka", "range", "throws", "cannot read the subscriptions of librdkafka"),
    ("kafka-go", "sarama", "roundrobin", "throws", "cannot read the subscriptions of sarama"),
    ("kafka-go", "aiokafka", "range", "ok", None),
    ("sarama", "aiokafka", "sticky", "throws", "empty user data of new members of aiokafka"),
    ("sarama", "aiokafka", "range", "ok", None),
]


def _members(number: int, leader: str, other: str, assignor: str) -> list[dict[str, Any]]:
    of_group = {"group_id": f"g{number}", "topics": ["t"], "assignor": assignor}
    leading = {"member_id": "m1", "client": leader, "is_leader": True, "member_seq": 0}
    return [
        of_group | leading,
        of_group | {"member_id": "m2", "client": other, "is_leader": False, "member_seq": 1},
    ]


def test_verdicts(spark: SparkSession) -> None:
    rows = [row for n, case in enumerate(_CASES) for row in _members(n, *case[:3])]
    members, topics = builders.members(spark, rows), builders.topics(spark, {"t": 22})
    predicted, verdicts = predict(members, topics)
    by_group = {row.group_id: row for row in verdicts.collect()}
    counts = {
        (row.group_id, row.member_id): row["count"]
        for row in predicted.groupBy("group_id", "member_id").count().collect()
    }
    for number, (leader, other, _, verdict, detail) in enumerate(_CASES):
        row = by_group[f"g{number}"]
        assert row.verdict == verdict, (leader, other)
        assert (detail or "") in (row.detail or ""), row.detail
        assert (row.detail is None) == (detail is None)
    shares = [(counts.get((f"g{n}", "m1"), 0), counts.get((f"g{n}", "m2"), 0)) for n in (2, 3, 6)]
    assert shares == [(22, 0), (11, 11), (11, 11)]


def test_an_assignor_that_the_library_lacks_is_javas(spark: SparkSession) -> None:
    """Though Java could not read kafka-go's members: nobody leads the group so."""
    rows = _members(0, "kafka-go", "kafka-go", "range")
    members, topics = builders.members(spark, rows), builders.topics(spark, {"t": 4})
    plan = builders.assignment(spark, builders.owner_rows("m1: tp0 tp2; m2: tp1 tp3", "g0"))
    (row,) = explain(plan, members, topics).collect()
    assert (row.assignor, row.detail) == (
        "roundrobin",
        "its own assignor range differs in 2 partitions: t-1 is with m2, not with m1; sticky, "
        "cooperative-sticky would give the same",
    )


def test_what_java_and_kafka_python_do_with_short_bytes(spark: SparkSession) -> None:
    jvm: Any = spark._jvm
    protocol = jvm.org.apache.kafka.clients.consumer.internals.ConsumerProtocol
    with pytest.raises(Py4JJavaError, match="SchemaException"):
        protocol.deserializeSubscription(jvm.java.nio.ByteBuffer.wrap(_SHORT))
    with pytest.raises(struct.error):
        ConsumerProtocolSubscription.decode(_SHORT)


@pytest.mark.usefixtures("own_processes")
def test_what_sarama_does_with_empty_user_data() -> None:
    members = [Member("m1", ["t"]), Member("m2", ["t"], user_data=b"")]
    (answer,) = answers("sarama", [Group({"t": 4}, members, "sticky")])
    assert isinstance(answer, str)
    assert "insufficient data" in answer
