"""Generations of a log that other libraries led are explained as theirs, and not as Java's."""

import random
from dataclasses import replace

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from kassign_spark.history.explain_read import SIZES
from kassign_spark.history.explained_generations import explain_generations
from tests.clients.libraries import Answer, answers
from tests.clients.test_older_sticky import fresh, later
from tests.history.test_explain_generations import _record
from tests.kafka.log_records import Record, write
from tests.kafka.oracle import Group, Member
from tests.log.batches import decoded

_COUNT = 60
_CASES = [
    ("kafka-python", "kafka-python-3.0.12", "sticky"),
    ("kafka-python", "kafka-python-3.0.12", "cooperative-sticky"),
    ("aiokafka", "aiokafka-0.14.0", "sticky"),
    ("sarama", "sarama", "roundrobin"),
    ("sarama", "sarama", "sticky"),
    ("franz-go", "kgo", "sticky"),
]


def _generation(client_id: str, name: str, number: int, group: Group, answer: Answer) -> Record:
    assert isinstance(answer, dict)
    record = _record(name, number, group, {m: sorted(own) for m, own in answer.items()})
    assert record.value is not None
    members = [member | {"clientId": client_id} for member in record.value["members"]]
    return replace(record, value=record.value | {"members": members})


@pytest.mark.parametrize(("client", "client_id", "assignor"), _CASES)
def test_generations(spark: SparkSession, client: str, client_id: str, assignor: str) -> None:
    rng = random.Random(3)
    groups = [fresh(rng, assignor) for _ in range(_COUNT)]
    generations: list[tuple[str, int, Group, Answer]] = []
    for number in range(1, 3):
        plans = answers(client, groups)
        for n, (group, answer) in enumerate(zip(groups, plans, strict=True)):
            # A log does not say that a topic has vanished.
            if all({*member.topics} <= {*group.topics} for member in group.members):
                generations.append((f"g{n}", number, *_renamed(group, answer, f".{n}.{number}")))
        groups = [later(rng, *pair, number) for pair in zip(groups, plans, strict=True)]
    sizes = [size for _, _, group, _ in generations for size in group.topics.items()]
    table = pa.Table.from_pylist([{"topic": t, "size": n, "racks": None} for t, n in sizes], SIZES)

    def explained_count(client_id: str) -> int:
        records = [_generation(client_id, *generation) for generation in generations]
        explained = explain_generations(decoded(write(spark, records)), table)
        return explained["is_explained"].to_pylist().count(True)

    assert explained_count(client_id) == len(generations)
    assert explained_count("app") < len(generations)


def test_an_empty_rack_is_librdkafkas(spark: SparkSession) -> None:
    """It compares a static member with another by member id; Java has static ones first."""
    answer = {"a-1": {("t", 0), ("t", 1)}, "z-1": {("t", 2)}}
    explained = []
    for number, rack in enumerate(("", None, "r"), start=1):
        static = Member("z-1", ["t"], group_instance_id="i", rack_id=rack)
        group = Group({"t": 3}, [static, Member("a-1", ["t"], rack_id=rack)], "range")
        records = [_generation("app", "g", number, group, answer)]
        table = explain_generations(decoded(write(spark, records)), None)
        explained += table["is_explained"].to_pylist()
    assert explained == [True, False, False]


def _renamed(group: Group, answer: Answer, end: str) -> tuple[Group, Answer]:
    """Topics are the cluster's: those of each group and generation are its own."""
    assert isinstance(answer, dict)
    members = [
        replace(
            member,
            topics=[topic + end for topic in member.topics],
            owned=[(topic + end, partition) for topic, partition in member.owned],
        )
        for member in group.members
    ]
    topics = {topic + end: size for topic, size in group.topics.items()}
    renamed = {m: {(topic + end, p) for topic, p in own} for m, own in answer.items()}
    return Group(topics, members, group.assignor), renamed
