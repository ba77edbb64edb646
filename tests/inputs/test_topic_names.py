"""Names that Kafka allows no topic are refused wherever a topic is named."""

from datetime import datetime

import pytest
from pyspark.sql import SparkSession

from kassign_spark import assign, partition_weights, plan_by_weight, predict, simulate
from kassign_spark.errors import InputError
from tests import builders

REFUSED = ["orders, refunds", "orders,refunds", "orders; refunds", " orders", "a/b", "käse", "."]
REFUSED += ["..", "a" * 250, 'a"b', "a\\b", "^orders-.*", "a,", "[a]", "a\n", "a\x00"]
ALLOWED = ["orders", "a" * 249, "...", "..a", ".a", "a.", "-", "_", "Z.A1-_", "__consumer_offsets"]
_TOPICS = [{"topic": name, "num_partitions": 1} for name in ALLOWED]


def _member(group: str, *topics: str) -> dict[str, object]:
    return {"group_id": group, "member_id": "m", "topics": list(topics), "assignor": "range"}


def test_of_members(spark: SparkSession) -> None:
    well = [_member("well", *ALLOWED), _member("none")]
    topics = builders.topics(spark, _TOPICS)
    assert assign(builders.members(spark, well), topics).count() == len(ALLOWED)
    bad = [_member(f"g{n:02}", "orders", name) for n, name in enumerate(REFUSED)]
    with pytest.raises(InputError) as error:
        assign(builders.members(spark, [*well, *bad]), topics)
    message = str(error.value)
    assert message.count("Kafka allows no such topic name") == len(REFUSED)
    assert 'table members, column topics: "orders, refunds" (at group_id="g00"' in message
    assert "a list of topics is written a;b, and a pattern belongs into topics_pattern" in message
    with pytest.raises(InputError, match="no such topic name"):
        predict(builders.members(spark, [_member("g", *ALLOWED * 2000, "a b")]), topics)


def test_of_other_tables(spark: SparkSession) -> None:
    members = builders.members(spark, [_member("g", "orders")])
    topics = builders.topics(spark, _TOPICS)
    row = {"group_id": "g", "member_id": "m", "topic": "a b", "partition": 0}
    bad_topics = builders.topics(spark, [*_TOPICS, {"topic": "a b", "num_partitions": 1}])
    weights = spark.createDataFrame(
        [("orders", 0, 1.0), ("a b", 0, 1.0)], "topic string, partition int, weight double"
    )
    offsets = spark.createDataFrame(
        [("a b", 0, 0, 1, datetime(2026, 1, 1))],
        "topic string, partition int, begin_offset long, end_offset long, as_of timestamp",
    )
    events = spark.createDataFrame(
        [
            (1, "topic_appears", "a b", 1, None, None),
            (2, "subscription_changes", None, None, "g", ["orders, x"]),
        ],
        "event int, kind string, topic string, num_partitions int, group_id string, "
        "topics array<string>",
    )
    calls = {
        "table topics": lambda: assign(members, bad_topics),
        "table owned": lambda: assign(members, topics, builders.owned(spark, [row])),
        "table weights": lambda: plan_by_weight(members, topics, weights),
        "table offsets": lambda: partition_weights(offsets),
        "event 1": lambda: simulate(members, topics, None, events),
        "event 2": lambda: simulate(members, topics, None, events),
    }
    for table, call in calls.items():
        with pytest.raises(InputError) as error:
            call()
        assert table in str(error.value)
        assert "Kafka allows no such topic name" in str(error.value)
