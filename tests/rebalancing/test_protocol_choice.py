"""Assignors and protocols are chosen as the real client and the real broker choose them."""

from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from kassign_spark.live.live_snapshot import read_cluster
from kassign_spark.plans.protocol_choice import PROTOCOLS, check_migration, choose_assignors
from tests.kafka.consumers import CLASSES, java_consumers
from tests.kafka.secured import SecuredBroker
from tests.kafka.topics import create_topics

_DEFAULT = None
_PACKAGE = "org.apache.kafka.clients.consumer."
_LISTS: dict[str, list[list[str] | None]] = {
    "default": [_DEFAULT, _DEFAULT],
    "tie-range": [_DEFAULT, ["cooperative-sticky", "range"]],
    "tie-sticky": [["sticky", "range"], ["range", "sticky"]],
    "tie-roundrobin": [["roundrobin", "cooperative-sticky"], ["cooperative-sticky", "roundrobin"]],
    "only-common": [
        ["roundrobin", "range", "sticky"],
        ["sticky", "range"],
        ["range", "roundrobin"],
    ],
    "votes": [["sticky", "range"], ["range", "sticky"], ["range", "sticky"]],
    "mixed": [["cooperative-sticky"], ["cooperative-sticky", "range"]],
    "cooperative": [["cooperative-sticky"], ["cooperative-sticky"]],
}


def _table(spark: SparkSession, lists: dict[str, list[Any]]) -> DataFrame:
    rows = [(g, f"m{i}", of) for g, each in lists.items() for i, of in enumerate(each)]
    return spark.createDataFrame(rows, "group_id string, member_id string, assignors array<string>")


def test_choices(spark: SparkSession) -> None:
    lists = _LISTS | {
        "none": [["range"], ["roundrobin"]],
        "empty": [[]],
        "own": [["mine", "cooperative-sticky"], ["range", "cooperative-sticky"]],
        "odd": [["strict", "range"]],
        "twice": [["range", "range"], ["sticky", "range"]],
    }
    known = {**PROTOCOLS, "strict": ("cooperative",)}
    groups, members = choose_assignors(_table(spark, lists), protocols=known)
    assert "cluster_id" not in groups.columns + members.columns
    result = {
        r.group_id: (r.assignor, [tuple(v) for v in r.votes], r.protocol, r.problem)
        for r in groups.collect()
    }
    assert result == {
        "default": ("range", [("range", 2), ("cooperative-sticky", 0)], "eager", None),
        "tie-range": ("range", [("range", 1), ("cooperative-sticky", 1)], "eager", None),
        "tie-sticky": ("sticky", [("sticky", 1), ("range", 1)], "eager", None),
        "tie-roundrobin": (
            "roundrobin",
            [("roundrobin", 1), ("cooperative-sticky", 1)],
            "eager",
            None,
        ),
        "only-common": ("range", [("range", 3)], "eager", None),
        "votes": ("range", [("range", 2), ("sticky", 1)], "eager", None),
        "mixed": ("cooperative-sticky", [("cooperative-sticky", 2)], None, "mixed_protocols"),
        "cooperative": (
            "cooperative-sticky",
            [("cooperative-sticky", 2)],
            "cooperative",
            None,
        ),
        "none": (None, [], "eager", "no_common_assignor"),
        "empty": (None, [], None, "no_common_assignor"),
        "own": ("cooperative-sticky", [("cooperative-sticky", 2)], None, "no_protocol"),
        "odd": ("strict", [("strict", 1), ("range", 0)], None, "no_protocol"),
        "twice": ("range", [("range", 2)], "eager", None),
    }
    details = {(r.group_id, r.member_id): r.detail for r in members.collect() if r.protocol is None}
    assert details == {
        ("empty", "m0"): "lists no assignor",
        ("own", "m0"): "which protocols these support is not known: mine",
        ("odd", "m0"): "its assignors have no protocol in common: the consumer does not start",
    }


def test_a_member_without_a_group_is_left_out(spark: SparkSession) -> None:
    rows = [("g", "m", ["range"]), (None, "m", ["range"])]
    columns = "group_id string, member_id string, assignors array<string>"
    candidates = spark.createDataFrame(rows, columns)
    groups, members = choose_assignors(candidates)
    for frame in (groups, members, check_migration(candidates)):
        assert [row.group_id for row in frame.collect()] == ["g"]


def test_a_member_given_twice_has_no_two_votes(spark: SparkSession) -> None:
    lists = [("g", "a", ["sticky", "range"]), ("g", "a", ["sticky", "range"])]
    lists += [("g", "b", ["range", "sticky"]), ("h", "a", ["range", "sticky"])]
    columns = "group_id string, member_id string, assignors array<string>"
    candidates = spark.createDataFrame(lists, columns)
    groups, members = choose_assignors(candidates)
    assert {
        (r.group_id, r.assignor, len(r.votes), r.protocol, r.problem) for r in groups.collect()
    } == {
        ("g", None, 0, None, "duplicate_member"),
        ("h", "range", 2, "eager", None),
    }
    problem = (
        'table candidates, column member_id: "a" appears 2 times in group "g": '
        "give each member once"
    )
    details = [(r.group_id, r.member_id, r.vote, r.detail) for r in members.collect()]
    assert sorted(details, key=str) == [
        ("g", "a", None, problem),
        ("g", "a", None, problem),
        ("g", "b", None, None),
        ("h", "a", "range", None),
    ]
    stuck, not_started = check_migration(candidates).orderBy("group_id").collect()
    assert (stuck.step, not_started.step) == ("stuck", "not_started")


def test_migration(spark: SparkSession) -> None:
    eager, both, done = ["range"], ["cooperative-sticky", "range"], ["cooperative-sticky"]
    lists = {
        "0": [eager, eager],
        "1": [eager, both],
        "2": [both, _DEFAULT],
        "3": [both, done],
        "4": [done, done],
        "5": [eager, done],
    }
    result = {
        r.group_id: (
            r.step,
            r.assignor,
            r.mixes_protocols,
            r.safe_steps,
            [b.member_id for b in r.blocking],
        )
        for r in check_migration(_table(spark, lists)).collect()
    }
    add, remove = ["add_cooperative_sticky"], ["remove_eager"]
    assert result == {
        "0": ("not_started", "range", False, add, ["m0", "m1"]),
        "1": ("first_bounce", "range", False, add, ["m0"]),
        "2": ("first_bounce_done", "range", False, remove, []),
        "3": ("second_bounce", "cooperative-sticky", True, remove, []),
        "4": ("done", "cooperative-sticky", False, [], []),
        "5": ("stuck", None, True, [], ["m0"]),
    }


def test_protocol_is_the_one_of_a_real_consumer(spark: SparkSession) -> None:
    lists: list[list[str] | None] = [
        _DEFAULT,
        ["cooperative-sticky"],
        ["sticky"],
        ["cooperative-sticky", "roundrobin"],
    ]
    rows = choose_assignors(_table(spark, {"g": lists})).members.orderBy("member_id").collect()
    assert [row.protocol for row in rows] == [_real_protocol(spark, names) for names in lists]
    assert {row.protocol for row in rows} == {"eager", "cooperative"}


def _real_protocol(spark: SparkSession, assignors: list[str] | None) -> str:
    jvm: Any = spark._jvm
    config = jvm.java.util.HashMap()
    config.put("bootstrap.servers", "127.0.0.1:9")
    config.put("group.id", "protocol")
    if assignors is not None:
        config.put(
            "partition.assignment.strategy", ",".join(_PACKAGE + CLASSES[a] for a in assignors)
        )
    deserializer = jvm.org.apache.kafka.common.serialization.ByteArrayDeserializer
    consumer = jvm.org.apache.kafka.clients.consumer.KafkaConsumer(
        config, deserializer(), deserializer()
    )
    try:
        result = consumer
        for field in ("delegate", "coordinator", "protocol"):
            declared = result.getClass().getDeclaredField(field)
            declared.setAccessible(True)
            result = declared.get(result)
        return str(result.toString()).lower()
    finally:
        consumer.close()


def test_the_real_broker_chooses_the_same(spark: SparkSession, broker: SecuredBroker) -> None:
    address = broker.bootstrap_server
    create_topics(address, {"choice": 2})
    with java_consumers(spark, address) as consumers:
        for group, lists in _LISTS.items():
            for i, names in enumerate(lists):
                consumers.start(f"{group}-{i}", f"choice-{group}", ["choice"], names)
        consumers.wait_until_joined(sum(map(len, _LISTS.values())), seconds=120)
        real = {row[1].removeprefix("choice-"): row[9] for row in read_cluster(address).members}
        consumers.start("late", "choice-cooperative", ["choice"], "range")
        with pytest.raises(RuntimeError, match="InconsistentGroupProtocolException"):
            consumers.wait_until(lambda _: False, seconds=20)
    rows = choose_assignors(_table(spark, _LISTS)).groups.collect()
    assert {r.group_id: r.assignor for r in rows} == {g: real[g] for g in _LISTS}
