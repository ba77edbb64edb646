"""Snapshots of the real broker, beside what its real consumers know of themselves."""

import time
from collections import defaultdict
from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer
from kafka.admin import (
    ResourceType,
)
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import kassign_spark
from kassign_spark.live.live_snapshot import ClusterTables, read_cluster, to_snapshot
from tests.kafka.consumers import JavaConsumers, State, java_consumers
from tests.kafka.hiding import hidden
from tests.kafka.oracle import Group, Member, as_sets, assign
from tests.kafka.raw_members import raw_member
from tests.kafka.secured import SecuredBroker
from tests.kafka.topics import create_topics

_TOPICS = {"live-orders": 5, "live-payments": 3, "live-big": 300}
_PLANNED = ("live-range", "live-roundrobin")
_NO_USER_DATA = b"\xff\xff\xff\xff"


@pytest.fixture(autouse=True)
def _short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kassign_spark.live.classic_groups.PAUSE_SECONDS", 0.1)


@pytest.fixture(scope="module")
def topics(broker: SecuredBroker) -> None:
    create_topics(broker.bootstrap_server, _TOPICS)


@pytest.fixture(scope="module")
def consumers(spark: SparkSession, broker: SecuredBroker, topics: None) -> Iterator[JavaConsumers]:
    """Four groups; a third member joins the sticky ones after the others have settled."""
    every = ["live-orders", "live-payments"]
    with java_consumers(spark, broker.bootstrap_server) as running:
        running.start("r1", "live-range", every, client_rack="rack-a")
        running.start("r2", "live-range", every, group_instance_id="live-static")
        running.start("r3", "live-range", ["live-orders"])
        running.start("o1", "live-roundrobin", [*every, "live-missing"], "roundrobin")
        running.start("o2", "live-roundrobin", "live-(orders|payments)", "roundrobin")
        for member in ("s1", "s2"):
            running.start(member, "live-sticky", ["live-big"], "sticky")
        for member in ("c1", "c2"):
            running.start(member, "live-cooperative", every, "cooperative-sticky")
        running.wait_until_joined(9)
        running.start("s3", "live-sticky", ["live-big"], "sticky")
        running.start("c3", "live-cooperative", every, "cooperative-sticky")
        running.wait_until_joined(11)
        yield running


@pytest.fixture(scope="module")
def states(consumers: JavaConsumers) -> dict[str, State]:
    return consumers.wait_until_joined(11)


@pytest.fixture(scope="module")
def snapshot(broker: SecuredBroker, states: dict[str, State]) -> ClusterTables:
    return read_cluster(broker.bootstrap_server)


def _of(tables: ClusterTables, group_id: str) -> list[tuple[object, ...]]:
    return [row for row in tables.members if row[1] == group_id]


def _owned(tables: ClusterTables) -> dict[str, list[tuple[str, int]]]:
    owned: dict[str, list[tuple[str, int]]] = defaultdict(list)
    for _, _, member_id, topic, partition in tables.owned:
        owned[member_id].append((topic, partition))
    return {member_id: sorted(tps) for member_id, tps in owned.items()}


def test_owned_is_what_each_consumer_holds(
    snapshot: ClusterTables, states: dict[str, State]
) -> None:
    mine = {state.member_id for state in states.values()}
    result = {member: tps for member, tps in _owned(snapshot).items() if member in mine}
    assert result == {s.member_id: s.assignment for s in states.values() if s.assignment}
    assert max(p for tps in result.values() for _, p in tps) == 299


def test_members_are_what_each_consumer_said(
    snapshot: ClusterTables, states: dict[str, State]
) -> None:
    rows = {row[2]: row for row in snapshot.members}
    both = ["live-orders", "live-payments"]
    expected = {
        "r1": ("live-range", None, "rack-a", both, "range"),
        "r2": ("live-range", "live-static", None, both, "range"),
        "r3": ("live-range", None, None, ["live-orders"], "range"),
        "o1": ("live-roundrobin", None, None, ["live-missing", *both], "roundrobin"),
        "o2": ("live-roundrobin", None, None, both, "roundrobin"),
        "s1": ("live-sticky", None, None, ["live-big"], "sticky"),
        "c3": ("live-cooperative", None, None, both, "cooperative-sticky"),
    }
    for name, (group_id, instance, rack, subscribed, assignor) in expected.items():
        row = rows[states[name].member_id]
        assert row[:5] == (None, group_id, states[name].member_id, instance, rack)
        assert sorted(row[5]) == subscribed
        assert row[6] is None
        assert row[9] == assignor
    for group_id in ("live-range", "live-roundrobin", "live-sticky", "live-cooperative"):
        assert [row[8] for row in _of(snapshot, group_id)] == list(
            range(len(_of(snapshot, group_id)))
        )


def test_generation_is_the_current_one_of_all_members(
    snapshot: ClusterTables, states: dict[str, State]
) -> None:
    """No rebalance failed in these groups, so the lower bound is the very number."""
    current = {state.member_id: state.generation for state in states.values()}
    result = {row[2]: row[7] for row in snapshot.members if row[2] in current}
    assert result == current
    assert max(current.values()) >= 3, "the cooperative group needed several rebalances"


@pytest.mark.parametrize(
    "group_id", ["live-range", "live-roundrobin", "live-sticky", "live-cooperative"]
)
def test_kafka_would_assign_the_snapshot_as_it_is(
    spark: SparkSession, snapshot: ClusterTables, group_id: str
) -> None:
    """Fed to the real assignor, a settled group's rows give what they say is owned."""
    owned = _owned(snapshot)
    members = [
        Member(str(m[2]), m[5], owned.get(str(m[2]), []), m[7], m[3], m[4])  # type: ignore[arg-type]
        for m in _of(snapshot, group_id)
    ]
    sizes = {row[1]: row[3] for row in snapshot.topics}
    assignor = str(_of(snapshot, group_id)[0][9])
    (answer,) = assign(spark, [Group(sizes, members, assignor)])
    assert as_sets(answer) == {m.member_id: owned.get(m.member_id, []) for m in members}


def test_assign_predicts_what_consumers_were_given(
    spark: SparkSession, snapshot: ClusterTables, states: dict[str, State]
) -> None:
    members, topics, owned = to_snapshot(snapshot, spark)
    planned = F.col("assignor").isin("range", "roundrobin")
    assignment = kassign_spark.assign(members.filter(planned), topics, owned)
    result: dict[str, list[tuple[str, int]]] = defaultdict(list)
    for row in assignment.collect():
        result[row.member_id].append((row.topic, row.partition))
    assignments = {s.member_id: s.assignment for s in states.values() if s.group_id in _PLANNED}
    assert {member_id: sorted(tps) for member_id, tps in result.items()} == assignments


def test_topics_have_sizes_and_racks(snapshot: ClusterTables) -> None:
    rows = {row[1]: row for row in snapshot.topics}
    for topic, count in _TOPICS.items():
        assert rows[topic][:4] == (None, topic, count, [["rack-a"]] * count)
        assert len(str(rows[topic][4])) == 22
    assert rows["__consumer_offsets"][2] == 4, "internal topics are there too"
    assert "live-missing" not in rows


def test_frames_have_the_declared_schema(spark: SparkSession, snapshot: ClusterTables) -> None:
    members, topics, owned = to_snapshot(snapshot, spark)
    assert "cluster_id" not in members.columns + topics.columns + owned.columns
    assert members.count() == len(snapshot.members)
    assert topics.count() == len(snapshot.topics)
    assert owned.count() == len(snapshot.owned)


def test_a_name_for_the_cluster(spark: SparkSession, broker: SecuredBroker, topics: None) -> None:
    frames = to_snapshot(read_cluster(broker.bootstrap_server, cluster_id="east"), spark)
    assert [row.cluster_id for row in frames.topics.select("cluster_id").distinct().collect()] == [
        "east"
    ]


def test_progress_is_told(broker: SecuredBroker, consumers: JavaConsumers) -> None:
    lines: list[str] = []
    read_cluster(broker.bootstrap_server, progress=lines.append)
    assert any(line.startswith("described ") for line in lines)


def _string(text: str) -> bytes:
    return len(text).to_bytes(2, "big") + text.encode()


def _subscription(version: int, topic: str, rest: bytes) -> bytes:
    head = version.to_bytes(2, "big") + (1).to_bytes(4, "big") + _string(topic)
    return head + _NO_USER_DATA + rest


def test_versions_of_the_subscription(broker: SecuredBroker, topics: None) -> None:
    """V0 has no generation and no rack; an unknown version is read as the newest known."""
    no_owned = (0).to_bytes(4, "big")
    newest = no_owned + (7).to_bytes(4, "big") + _string("rack-z") + b"more"
    assigned = b"\x00\x00" + (1).to_bytes(4, "big") + _string("live-orders")
    assigned += (1).to_bytes(4, "big") + (2).to_bytes(4, "big") + _NO_USER_DATA
    address = broker.bootstrap_server
    with (
        raw_member(address, "raw-v0", _subscription(0, "live-orders", b""), assigned) as old,
        raw_member(address, "raw-v9", _subscription(9, "live-orders", newest), assigned) as new,
    ):
        result = read_cluster(address)
    assert [row[:10] for row in _of(result, "raw-v0")] == [
        (None, "raw-v0", old, None, None, ["live-orders"], None, 1, 0, "range")
    ]
    assert [row[:10] for row in _of(result, "raw-v9")] == [
        (None, "raw-v9", new, None, "rack-z", ["live-orders"], None, 8, 0, "range")
    ]
    assert _owned(result)[old] == _owned(result)[new] == [("live-orders", 2)]


@pytest.mark.parametrize(
    "metadata",
    [
        b"",
        b"\x00",
        b"\x00\x03\x00\x00\x00\x02\x00",
        _subscription(0, "live-orders", b"")[:12],
        _subscription(0, "live-orders", b"")[:-4],
        b"\xff" * 40,
    ],
    ids=["empty", "half a version", "cut in topics", "cut in a name", "cut after topics", "noise"],
)
def test_a_group_with_undecodable_bytes_is_left_out(
    broker: SecuredBroker, topics: None, metadata: bytes
) -> None:
    group_id = f"raw-{metadata.hex()[:20]}-{len(metadata)}"
    with raw_member(broker.bootstrap_server, group_id, metadata, b""):
        result = read_cluster(broker.bootstrap_server)
    (omission,) = (o for o in result.omitted if o.name == group_id)
    assert omission.kind == "group"
    assert "cannot be decoded" in omission.reason
    assert _of(result, group_id) == []


def test_groups_of_other_kinds_are_left_out(
    broker: SecuredBroker, spark: SparkSession, topics: None
) -> None:
    address = broker.bootstrap_server
    with java_consumers(spark, address) as consumers:
        consumers.start("n1", "kip848", ["live-orders"], None, group_protocol="consumer")
        consumers.start("gone", "emptied", ["live-orders"])
        consumers.wait_until_joined(2)
        consumers.stop("gone")
        with raw_member(address, "connectors", b"\x00\x01", b"", protocol_type="connect"):
            result = read_cluster(address, consumer_groups=False)
    reasons = {o.name: o.reason for o in result.omitted}
    assert reasons["kip848"] == "KIP-848 group: the broker makes its assignment, not an assignor"
    assert reasons["emptied"] == "no members"
    assert reasons["connectors"] == "protocol type connect, not consumer"
    assert {"kip848", "emptied", "connectors"}.isdisjoint(row[1] for row in result.members)


def _librdkafka(address: str, group_id: str) -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": address,
            "group.id": group_id,
            "session.timeout.ms": 6000,
            "max.poll.interval.ms": 30000,
            "partition.assignment.strategy": "range,roundrobin",
        }
    )


def _poll_until_assigned(consumer: Consumer) -> None:
    deadline = time.monotonic() + 30
    while not consumer.assignment():
        assert time.monotonic() < deadline
        consumer.poll(0.1)


@pytest.mark.slow
def test_a_group_in_the_middle_of_a_rebalance(broker: SecuredBroker, topics: None) -> None:
    """One member does not poll, so the other one's join keeps the group waiting."""
    stuck, joining = (_librdkafka(broker.bootstrap_server, "rebalancing") for _ in range(2))
    try:
        stuck.subscribe(["live-orders"])
        _poll_until_assigned(stuck)
        assert {row[9] for row in _of(read_cluster(broker.bootstrap_server), "rebalancing")} == {
            "range"
        }
        joining.subscribe(["live-orders"])
        joining.poll(1.5)
        result = read_cluster(broker.bootstrap_server)
    finally:
        joining.close()
        stuck.close()
    (omission,) = (o for o in result.omitted if o.name == "rebalancing")
    assert "PreparingRebalance" in omission.reason
    assert _of(result, "rebalancing") == []


def test_a_group_that_may_not_be_described(broker: SecuredBroker, states: dict[str, State]) -> None:
    with hidden(broker, ResourceType.GROUP, "live-range"):
        properties = broker.credentials.sasl_properties()
        result = read_cluster(broker.addresses["SASL"], properties)
    (omission,) = (o for o in result.omitted if o.name == "live-range")
    assert "GroupAuthorizationFailed" in omission.reason
    assert _of(result, "live-range") == []
    assert len(_of(result, "live-sticky")) == 3
