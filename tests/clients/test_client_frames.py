"""The column ``client`` in tables: whose answer a group gets, and what is refused."""

from typing import Any

import pytest
from pyspark.sql import SparkSession

from kassign_spark import advise, assign, explain, predict, rebalance
from kassign_spark.errors import InputError
from kassign_spark.settings import Settings
from tests import builders

_TOPICS = {"t": 12}


def _group(name: str, assignor: str, *clients: str | None, **more: Any) -> list[dict[str, Any]]:
    return [
        {
            "group_id": name,
            "member_id": f"m{n}",
            "topics": ["t"],
            "assignor": assignor,
            "client": client,
            "member_seq": n,
            **more,
        }
        for n, client in enumerate(clients, 1)
    ]


def _owned(assignment: Any, group: str) -> dict[str, list[int]]:
    owned: dict[str, list[int]] = {}
    for row in sorted(assignment.where(f"group_id = '{group}'").collect()):
        owned.setdefault(row.member_id, []).append(row.partition)
    return owned


def test_each_group_gets_the_answer_of_its_client(spark: SparkSession) -> None:
    rows = [
        *_group("java", "roundrobin", None, "java", None),
        *_group("sarama", "roundrobin", *["sarama"] * 3),
        *_group("kafka-go", "range", *["kafka-go"] * 5),
        *_group("franz-go", "sticky", *["franz-go"] * 2),
        *_group("drawn", "sticky", *["sarama"] * 2),
        *_group("one", "sticky", "sarama"),
        *_group("kafkajs", "RoundRobinAssigner", None, None),
    ]
    members, topics = builders.members(spark, rows), builders.topics(spark, _TOPICS)
    expected = {
        "java": {"m1": [0, 3, 6, 9], "m2": [1, 4, 7, 10], "m3": [2, 5, 8, 11]},
        "sarama": {"m1": [0, 4, 7, 11], "m2": [1, 2, 5, 8], "m3": [3, 6, 9, 10]},
        "kafka-go": {"m1": [0, 1], "m2": [2, 3], "m3": [4, 5, 6], "m4": [7, 8], "m5": [9, 10, 11]},
        "franz-go": {"m1": [0, 3, 4, 7, 8, 11], "m2": [1, 2, 5, 6, 9, 10]},
        "kafkajs": {"m1": [0, 2, 4, 6, 8, 10], "m2": [1, 3, 5, 7, 9, 11]},
        "one": {"m1": [*range(12)]},
    }
    predicted, verdict_rows = predict(members, topics)
    verdicts = {row.group_id: (row.verdict, row.detail) for row in verdict_rows.collect()}
    assert verdicts.pop("drawn")[0] == "drawn"
    assert verdicts == dict.fromkeys(expected, ("ok", None))
    planned = assign(members, topics)
    followed = rebalance(members, topics, exact=True).steps.where("action = 'assigned'")
    for group, owned in expected.items():
        assert _owned(predicted, group) == owned, group
        if group != "franz-go":  # a plan of sticky groups is as good as Java's, whoever leads
            assert _owned(planned, group) == owned, group
    assert _owned(predicted, "drawn") == {}
    assert followed.where("group_id = 'kafka-go'").count() == 12


def test_several_clients_in_a_group(spark: SparkSession) -> None:
    """Without a known leader the first member's library answers, or the one that is named."""
    rows = [
        *_group("alike", "roundrobin", "java", "aiokafka"),
        *_group("unlike", "roundrobin", "java", "sarama", None),
        *_group("led", "roundrobin", "java", "sarama", None),
    ]
    rows[-2]["is_leader"] = True
    members, topics = builders.members(spark, rows), builders.topics(spark, _TOPICS)
    predicted, verdict_rows = predict(members, topics)
    verdicts = {row.group_id: (row.verdict, row.detail) for row in verdict_rows.collect()}
    assert verdicts["alike"] == ("ok", None)
    assert verdicts["led"] == ("ok", None)
    assert verdicts["unlike"] == (
        "inexact",
        "the leader is not known: this is java's answer; sarama gives 10 partitions to other "
        "members; name the library with leader, or set is_leader of a member",
    )
    assert _owned(predicted, "led")["m1"] == [0, 4, 7, 11]
    assert _owned(predicted, "unlike")["m1"] != [0, 4, 7, 11]
    by_sarama, verdict_rows = predict(members, topics, leader="sarama")
    assert {row.verdict for row in verdict_rows.collect()} == {"ok"}
    assert _owned(by_sarama, "unlike") == _owned(predicted, "led")
    explained = explain(by_sarama.where("group_id = 'unlike'"), members, topics).collect()
    assert {row.group_id: (row.assignor, row.detail) for row in explained}["unlike"] == (
        "roundrobin",
        "as sarama computes it: who leads is not known; sticky, cooperative-sticky would give the "
        "same",
    )
    for name in ("alike", "led"):
        assert _owned(by_sarama, name) == _owned(predicted, name)
    with pytest.raises(InputError, match="unknown leader 'x': it must be one of java, "):
        predict(members, topics, leader="x")


def test_advice_to_let_another_library_lead(spark: SparkSession) -> None:
    """kafka-go begins each topic with its first member; kafka-python leaves static members out."""
    names = [f"t{n}" for n in range(6)]
    one_each = [
        row | {"topics": names} for row in _group("kafka-go", "roundrobin", *["kafka-go"] * 3)
    ]
    static = _group("kafka-python", "range", *["kafka-python"] * 3)
    for row, instance in zip(static, ("a", None, "c"), strict=True):
        row["group_instance_id"] = instance
    rows = [*one_each, *static, *_group("sarama", "range", *["sarama"] * 3)]
    members = builders.members(spark, rows)
    topics = builders.topics(spark, {**dict.fromkeys(names, 1), "t": 12})
    advice = advise(members, topics).collect()
    of_client = {row.group_id: row for row in advice if row.change == "client"}
    assert {name: (row.max_before, row.max_after) for name, row in of_client.items()} == {
        "kafka-go": (6, 2),
        "kafka-python": (6, 4),
    }
    assert of_client["kafka-go"].detail == (
        "let Java's client or franz-go lead, whose roundrobin is not kafka-go's"
    )
    assert {row.assignor for row in advice if row.group_id == "kafka-go"} <= {"range", "roundrobin"}


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"client": "rust"}, "column client: .*must be one of java, librdkafka"),
        (
            {"client": "kafkajs", "assignor": "range"},
            'column assignor: .*"range".*client has no assignor of that name',
        ),
    ],
)
def test_what_is_refused(spark: SparkSession, row: dict[str, Any], message: str) -> None:
    (member,) = _group("g", "roundrobin", None)
    members = builders.members(spark, [member | row])
    with pytest.raises(InputError, match=message):
        assign(members, builders.topics(spark, _TOPICS)).collect()


def test_a_group_too_large_for_a_task(spark: SparkSession) -> None:
    members = builders.members(spark, _group("g", "range", "kafka-go", "kafka-go"))
    topics = builders.topics(spark, _TOPICS)
    with pytest.raises(InputError, match=r"column client: .* raise bytes_per_task"):
        assign(members, topics, settings=Settings(bytes_per_task=1_000)).collect()
