"""Real consumers of several libraries in a real broker: told apart, predicted, explained."""

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from subprocess import DEVNULL, PIPE, Popen

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from kassign_spark import explain, predict
from kassign_spark.live.live_snapshot import read_cluster, to_snapshot
from tests.clients.libraries import consumer_command
from tests.kafka.consumers import java_consumers
from tests.kafka.raw_members import raw_member
from tests.kafka.secured import SecuredBroker
from tests.kafka.topics import create_topics

_SIZES = {"clients-a": 7, "clients-b": 3}
_SECONDS = 90
_MEMBERS = ("b", "a", "c")
"""Client ids or instance ids of each group's members; the last one is static."""


def _librdkafka(address: str, stop: threading.Event, name: str, assignor: str) -> None:
    from confluent_kafka import Consumer

    settings = {"group.instance.id": name} if name == _MEMBERS[-1] else {}
    consumer = Consumer(
        {
            "bootstrap.servers": address,
            "group.id": f"librdkafka-{assignor}",
            "client.id": name,
            "partition.assignment.strategy": assignor,
            **settings,
        }
    )
    consumer.subscribe([*_SIZES])
    while not stop.is_set():
        consumer.poll(0.1)
    consumer.close()


def _kafka_python(address: str, stop: threading.Event, name: str, assignor: str) -> None:
    from kafka import KafkaConsumer
    from kafka.coordinator.assignors.range import RangePartitionAssignor

    assert assignor == "range"
    consumer = KafkaConsumer(
        *_SIZES,
        bootstrap_servers=address,
        group_id=f"kafka-python-{assignor}",
        partition_assignment_strategy=[RangePartitionAssignor],
    )
    while not stop.is_set():
        consumer.poll(100)
    consumer.close()


def _aiokafka(address: str, stop: threading.Event, name: str, assignor: str) -> None:
    from aiokafka import AIOKafkaConsumer

    async def consume() -> None:
        consumer = AIOKafkaConsumer(
            *_SIZES, bootstrap_servers=address, group_id=f"aiokafka-{assignor}"
        )
        await consumer.start()
        while not stop.is_set():
            await consumer.getmany(timeout_ms=100)
        await consumer.stop()

    asyncio.run(consume())


_GROUPS: dict[str, tuple[Callable[[str, threading.Event, str, str], None], str]] = {
    "librdkafka": (_librdkafka, "range"),
    "kafka-python": (_kafka_python, "range"),
    "aiokafka": (_aiokafka, "roundrobin"),
}


_PROGRAMS = {
    "sarama": "roundrobin",
    "franz-go": "sticky",
    "kafkajs": "RoundRobinAssigner",
    "kafka-go": "rack-affinity",
}
"""Libraries whose consumers are processes of their own, with the assignors of their groups."""


@contextmanager
def _programs(address: str) -> Iterator[None]:
    """Run three consumers of each library, which end when their standard input does."""
    commands = [
        consumer_command(client, address, f"{client}-{assignor}", assignor, [*_SIZES])
        for client, assignor in _PROGRAMS.items()
        for _ in _MEMBERS
    ]
    with ExitStack() as running:
        for command in commands:
            process = running.enter_context(Popen(command, stdin=PIPE, stdout=DEVNULL))
            assert process.stdin is not None
            running.callback(process.stdin.close)
        yield


@contextmanager
def _running(address: str) -> Iterator[None]:
    stop = threading.Event()
    threads = [
        threading.Thread(target=consume, args=(address, stop, name, assignor), daemon=True)
        for consume, assignor in _GROUPS.values()
        for name in _MEMBERS
    ]
    try:
        for thread in threads:
            thread.start()
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join(timeout=30)


@pytest.mark.parametrize("user_data", [b"\xff\xff\xff\xff", b"\x00\x00\x00\x04rack"])
def test_the_short_bytes_of_kafka_go(
    spark: SparkSession, broker: SecuredBroker, user_data: bytes
) -> None:
    topics = b"".join(len(name).to_bytes(2) + name.encode() for name in _SIZES)
    metadata = b"\x00\x01" + len(_SIZES).to_bytes(4) + topics + user_data
    group = f"kafka-go-{len(user_data)}"
    with raw_member(broker.bootstrap_server, group, metadata, b""):
        tables = read_cluster(broker.bootstrap_server)
    (row,) = (row for row in tables.members if row[1] == group)
    assert row[5] == [*_SIZES]
    assert tables.sent[group, row[2]][1] == metadata
    members = to_snapshot(tables, spark).members.where(f"group_id = '{group}'")
    assert [row.client for row in members.collect()] == ["kafka-go"]


@pytest.mark.slow
def test_libraries_are_told_apart_and_predicted(spark: SparkSession, broker: SecuredBroker) -> None:
    address = broker.bootstrap_server
    create_topics(address, _SIZES)
    running_assignors = {**{client: name for client, (_, name) in _GROUPS.items()}, **_PROGRAMS}
    groups = {f"{client}-{assignor}": client for client, assignor in running_assignors.items()}
    awaited = {**dict.fromkeys(groups, len(_MEMBERS)), "clients-java": 1}
    with ExitStack() as running:
        consumers = running.enter_context(java_consumers(spark, address))
        consumers.start("java", "clients-java", [*_SIZES], "range")
        running.enter_context(_running(address))
        running.enter_context(_programs(address))
        began = time.monotonic()
        while True:
            tables = read_cluster(address)
            sizes = {group: sum(row[1] == group for row in tables.members) for group in awaited}
            owned = {group: sum(row[1] == group for row in tables.owned) for group in awaited}
            if sizes == awaited and owned == dict.fromkeys(awaited, sum(_SIZES.values())):
                break
            assert time.monotonic() - began < _SECONDS, (sizes, owned)
            time.sleep(1)
    snapshot = to_snapshot(tables, spark)
    assert snapshot.owned is not None
    names = [*groups]
    members = snapshot.members.where(F.col("group_id").isin(names))
    owned = snapshot.owned.where(F.col("group_id").isin(names))
    clients = {(row.group_id, row.client) for row in members.collect()}
    assert clients == {*groups.items()}
    java = snapshot.members.where("group_id = 'clients-java'").collect()
    assert [row.client for row in java] == [None]
    predicted, verdict_rows = predict(members, snapshot.topics, owned)
    verdicts = {row.group_id: row.verdict for row in verdict_rows.collect()}
    # Of kafkajs' leader nothing is known, but all its members subscribe alike.
    assert verdicts == dict.fromkeys(groups, "ok")
    key = ["group_id", "member_id", "topic", "partition"]
    # What the sticky one would do next is to keep what its members have.
    assert sorted(predicted.select(key).collect()) == sorted(owned.select(key).collect())
    explained = explain(owned, members, snapshot.topics)
    assert {row.group_id: row.assignor for row in explained.collect()} == {
        name: "roundrobin" if client == "kafkajs" else running_assignors[client]
        for name, client in groups.items()
    }
