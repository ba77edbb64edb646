"""Groups of the new protocol on the real broker: snapshots, and targets said beforehand."""

import time
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import pytest
from kafka.admin import ResourceType
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from kassign_spark import predict
from kassign_spark.live.live_snapshot import ClusterTables, read_cluster, to_snapshot
from tests.kafka.consumers import JavaConsumers, java_consumers
from tests.kafka.hiding import hidden
from tests.kafka.secured import SecuredBroker
from tests.kafka.topics import create_topics

pytestmark = pytest.mark.broker

_TOPICS = {"new-orders": 7, "new-payments": 5}
_SETTLES = 180


@pytest.fixture(scope="module")
def consumers(spark: SparkSession, broker: SecuredBroker) -> Iterator[JavaConsumers]:
    create_topics(broker.bootstrap_server, _TOPICS)
    with java_consumers(spark, broker.bootstrap_server) as running:
        yield running


def start(consumers: JavaConsumers, name: str, group: str, **settings: str) -> None:
    consumers.start(name, group, sorted(_TOPICS), None, group_protocol="consumer", **settings)


def settled(
    consumers: JavaConsumers, address: str, group: str, members: int
) -> tuple[ClusterTables, dict[str, list[tuple[str, int]]]]:
    """The cluster once the members of a group all have what they are to have, and each one's."""

    def holdings(tables: ClusterTables) -> dict[str, list[tuple[str, int]]]:
        return by_member(row[:5] for row in tables.target if row[1] == group)

    deadline = time.monotonic() + _SETTLES
    while time.monotonic() < deadline:
        consumers.wait_until(
            lambda states: sum(s.group_id == group for s in states.values()) == members, _SETTLES
        )
        tables = read_cluster(address, consumer_groups=True)
        target = holdings(tables)
        states = [s for s in consumers.states().values() if s.group_id == group]
        mine = {s.member_id: s.assignment for s in states}
        rows = [row for row in tables.members if row[1] == group]
        if len(rows) == len(mine) == members and all(
            mine.get(row[2]) == target.get(row[2], []) for row in rows
        ):
            epochs = {row[7] for row in rows}
            if len(epochs) == 1:
                return tables, target
    raise TimeoutError(f"group {group} has not settled")


def by_member(rows: Any) -> dict[str, list[tuple[str, int]]]:
    result: dict[str, list[tuple[str, int]]] = defaultdict(list)
    for _, _, member, topic, partition in rows:
        result[member].append((topic, partition))
    return {member: sorted(tps) for member, tps in result.items()}


def predicted(
    spark: SparkSession, now: ClusterTables, before: ClusterTables, group: str
) -> tuple[str, dict[str, list[tuple[str, int]]]]:
    """The target of the members of ``now`` whose last one is that of ``before``."""
    members, topics, owned = to_snapshot(now, spark)
    target = to_snapshot(before, spark).target
    assert target is not None
    here = F.col("group_id") == group
    result = predict(members.where(here), topics, owned.where(here), target=target.where(here))
    (verdict,) = result.verdicts.collect()
    return verdict.verdict, by_member((None, *row) for row in result.assignment.collect())


@pytest.mark.slow
@pytest.mark.parametrize("assignor", ["uniform", "range"])
def test_targets_are_what_the_broker_computes(
    spark: SparkSession, broker: SecuredBroker, consumers: JavaConsumers, assignor: str
) -> None:
    address, group = broker.bootstrap_server, f"new-{assignor}"
    names = [f"{assignor}-{i}" for i in range(4)]
    for name in names[:3]:
        start(consumers, name, group, group_remote_assignor=assignor)
    three, target = settled(consumers, address, group, 3)
    assert sum(map(len, target.values())) == 12
    # Its own target is what the coordinator would compute again.
    assert predicted(spark, three, three, group) == ("ok", target)
    start(consumers, names[3], group, group_remote_assignor=assignor)
    four, target = settled(consumers, address, group, 4)
    verdict, answer = predicted(spark, four, three, group)
    assert verdict == "ok"
    assert answer == target
    consumers.stop(names[0])
    left, target = settled(consumers, address, group, 3)
    assert predicted(spark, left, four, group) == ("ok", target)


def test_rows_of_a_snapshot(
    spark: SparkSession, broker: SecuredBroker, consumers: JavaConsumers
) -> None:
    address = broker.bootstrap_server
    start(consumers, "static", "new-rows", group_instance_id="one", client_rack="rack-z")
    tables, _ = settled(consumers, address, "new-rows", 1)
    (row,) = (row for row in tables.members if row[1] == "new-rows")
    state = consumers.states()["static"]
    assert row == (
        *(None, "new-rows", state.member_id, "one", "rack-z"),
        *(sorted(_TOPICS), None, state.generation, 0, "uniform", None, "consumer"),
    )
    owned = by_member(row for row in tables.owned if row[1] == "new-rows")
    assert owned == {state.member_id: state.assignment}
    positions = [row[5] for row in tables.target if row[1] == "new-rows"]
    assert positions == list(range(12))
    ids = {row[1]: row[4] for row in tables.topics}
    assert {len(ids[topic]) for topic in _TOPICS} == {22}
    snapshot = to_snapshot(tables, spark)
    assert {"group_type", "topics_regex"} <= set(snapshot.members.columns)
    further = {"target", "leaders", "group_settings"}
    assert set(snapshot.tables()) == {"members", "topics", "owned", *further}
    # A static member that closes is away: it keeps its partitions, and its epoch says so.
    consumers.stop("static")
    away = read_cluster(address, consumer_groups=True)
    (row,) = (row for row in away.members if row[1] == "new-rows")
    assert row[7] == -2
    assert len([row for row in away.target if row[1] == "new-rows"]) == 12


def test_groups_that_are_not_asked_for_or_may_not_be_read(
    broker: SecuredBroker, consumers: JavaConsumers
) -> None:
    start(consumers, "shown", "new-shown")
    start(consumers, "hidden", "new-hidden")
    settled(consumers, broker.bootstrap_server, "new-shown", 1)
    settled(consumers, broker.bootstrap_server, "new-hidden", 1)
    plain = read_cluster(broker.bootstrap_server, consumer_groups=False)
    assert {"new-shown", "new-hidden"}.isdisjoint(row[1] for row in plain.members)
    assert {"new-shown", "new-hidden"} <= {o.name for o in plain.omitted}
    with hidden(broker, ResourceType.GROUP, "new-hidden"):
        result = read_cluster(
            broker.addresses["SASL"],
            broker.credentials.sasl_properties(),
            consumer_groups=True,
        )
    (omission,) = (o for o in result.omitted if o.name == "new-hidden")
    assert "GroupAuthorizationFailed" in omission.reason
    assert {row[1] for row in result.members} >= {"new-shown"}
    assert "new-hidden" not in {row[1] for row in result.members}
