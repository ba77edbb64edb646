"""Offsets of the real broker: the rates that were produced, and a plan that its consumers drain."""

import json
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from pyspark.sql import SparkSession

from kassign_spark import cli, partition_weights, read_snapshot
from tests.kafka.secured import SecuredBroker
from tests.kafka.topics import create_topics

pytestmark = pytest.mark.broker

_TOPIC, _GROUP = "uneven", "lagging"
_FIRST = (7, 5, 5, 4, 4, 3)
_LATER = (400, 250, 120, 30, 0, 10)
_ENDS = tuple(first + later for first, later in zip(_FIRST, _LATER, strict=True))
_COMMITTED = {0: 6, 1: 5, 2: 0, 3: 4, 4: 4}
"""Of partition 5 nothing is committed."""


class _Cluster:
    """A topic, and a group of two members that has committed a part of it."""

    def __init__(self, address: str, folder: Path) -> None:
        self.address, self.folder = address, folder

    def produce(self, counts: tuple[int, ...]) -> None:
        producer = Producer({"bootstrap.servers": self.address})
        for partition, count in enumerate(counts):
            for number in range(count):
                producer.produce(_TOPIC, str(number), partition=partition)
        assert producer.flush(30) == 0

    def consumer(self) -> Consumer:
        return Consumer(
            {
                "bootstrap.servers": self.address,
                "group.id": _GROUP,
                "enable.auto.commit": False,
                "auto.offset.reset": "error",
                "partition.assignment.strategy": "range",
            }
        )

    def snapshot(self, name: str) -> Path:
        folder = self.folder / name
        address = ["--bootstrap-server", self.address, "--output", str(folder)]
        assert cli.main(["snapshot", *address, "--offsets"]) == 0
        return folder


@pytest.fixture(scope="module")
def snapshots(
    spark: SparkSession, broker: SecuredBroker, tmp_path_factory: pytest.TempPathFactory
) -> tuple[_Cluster, Path, Path]:
    """Two snapshots, and what was produced between them."""
    cluster = _Cluster(broker.bootstrap_server, tmp_path_factory.mktemp("offsets"))
    create_topics(cluster.address, {_TOPIC: len(_FIRST), "never-read": 2})
    cluster.produce(_FIRST)
    members = [cluster.consumer(), cluster.consumer()]
    for member in members:
        member.subscribe([_TOPIC])
    deadline = time.monotonic() + 60
    while not all(len(member.assignment()) == 3 for member in members):
        assert time.monotonic() < deadline
        for member in members:
            member.poll(0.1)
    offsets = [TopicPartition(_TOPIC, p, at) for p, at in _COMMITTED.items()]
    for member in members:
        mine = {at.partition for at in member.assignment()}
        member.commit(offsets=[at for at in offsets if at.partition in mine], asynchronous=False)
    before = cluster.snapshot("before")
    cluster.produce(_LATER)
    now = cluster.snapshot("now")
    for member in members:
        member.close()
    return cluster, before, now


def test_rates_are_what_was_produced(
    spark: SparkSession, snapshots: tuple[_Cluster, Path, Path]
) -> None:
    _, before, now = (read_snapshot(f, spark) if isinstance(f, Path) else f for f in snapshots)
    at = {r.partition: r.as_of for r in before.offsets.where("group_id = 'lagging'").collect()}
    rows = now.offsets.where("group_id = 'lagging'").collect()
    assert {(r.topic, r.begin_offset) for r in rows} == {(_TOPIC, 0)}
    assert {r.partition: r.end_offset for r in rows} == dict(enumerate(_ENDS))
    assert {r.partition: r.committed_offset for r in rows} == {**_COMMITTED, 5: None}
    weights = partition_weights(now.offsets, before.offsets).where("group_id = 'lagging'")
    seconds = {r.partition: (r.as_of - at[r.partition]).total_seconds() for r in rows}
    produced = {r.partition: r.rate * seconds[r.partition] for r in weights.collect()}
    assert produced == pytest.approx(dict(enumerate(_LATER)), rel=1e-6)
    assert min(seconds.values()) > 0
    # Topics that no group reads have no offsets; who coordinates is known as well.
    assert now.offsets.where("topic = 'never-read'").isEmpty()
    assert {(r.topic, r.leader) for r in now.leaders.collect()} == {("__consumer_offsets", 1)}
    assert now.leaders.count() == 4


@pytest.mark.slow
def test_a_plan_drains_the_lag(
    snapshots: tuple[_Cluster, Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each member reads, by ``assign()``, as many records as the plan says, and no more."""
    cluster, _, now = snapshots

    def document(*arguments: str) -> Any:
        assert cli.main([*arguments, "--json"]) == 0
        return json.loads(capsys.readouterr().out)

    capsys.readouterr()
    plan = document("plan", str(now), "--weights", "lag", "--output", str(tmp_path / "plan"))
    (verdict,) = (group for group in plan["groups"] if group["group_id"] == _GROUP)
    lag = [end - _COMMITTED.get(p, end) for p, end in enumerate(_ENDS)]
    members = document("deliver", str(tmp_path / "plan"), "--group", _GROUP)["members"]
    assert len(members) == 2
    read = Counter[str]()
    for member in members:
        mine = member["topic_partitions"]
        expected = sum(lag[at["partition"]] for at in mine)
        read[member["member_id"]] = _drain(cluster, mine)
        assert read[member["member_id"]] == expected
    assert sum(read.values()) == sum(lag)
    assert max(read.values()) == verdict["max_load"] < max(sum(lag[:3]), sum(lag[3:]))


def _drain(cluster: _Cluster, partitions: list[dict[str, Any]]) -> int:
    """Read what a member has been given, from its commits on to the ends."""
    consumer = cluster.consumer()
    expected = {p["partition"]: _ENDS[p["partition"]] for p in partitions}
    try:
        consumer.assign(
            [TopicPartition(p["topic"], p["partition"], _COMMITTED[p["partition"]])
             for p in partitions if p["partition"] in _COMMITTED]
        )  # fmt: skip
        open_ = {p for p in expected if _COMMITTED.get(p, expected[p]) < expected[p]}
        count, deadline = 0, time.monotonic() + 60
        while open_:
            assert time.monotonic() < deadline
            for message in consumer.consume(500, 1.0):
                assert message.error() is None
                count += 1
                if message.offset() + 1 == expected[message.partition()]:
                    open_.discard(message.partition())
        assert not consumer.consume(1, 0.5)
        return count
    finally:
        consumer.close()
