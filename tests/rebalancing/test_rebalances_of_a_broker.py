"""Every round that is predicted is what real consumers of the Java client are told and given.

A member's id is known only after it has joined: so what is predicted from is the state before a
change, with the members that were there after it, in the coordinator's order.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import NamedTuple

import pytest
from kafka import KafkaAdminClient
from kafka.protocol.admin import DescribeGroupsRequest
from pyspark.sql import SparkSession

from kassign_spark import assign
from kassign_spark.live.live_snapshot import ClusterTables, read_cluster, to_snapshot
from kassign_spark.plans.listener import listener_calls
from kassign_spark.plans.rebalance import rebalance
from kassign_spark.tables.snapshots import Snapshot
from tests.kafka.consumers import JavaConsumers, State, java_consumers
from tests.kafka.secured import SecuredBroker
from tests.kafka.topics import create_topics
from tests.oracles.protocol import claims, decode_subscription

pytestmark = pytest.mark.slow

_GROUPS = {
    "rounds-cooperative": "cooperative-sticky",
    "rounds-sticky": "sticky",
    "rounds-range": "range",
}
_ALONE = "rounds-alone"
_SLOW = [f"rounds-slow-{number}" for number in range(5)]
"""Their second members ask late what they were given: the first has mostly gone on by then."""
_CHANGES = {
    _ALONE: {"topic grows", "topic dropped"},
    **{group_id: {"second joins", "topic grows"} for group_id in _SLOW},
}
_CHANGES_OF_OTHERS = {"second joins", "third joins", "second leaves", "topic grows"}
_SIZES = {"rounds-a": 7, "rounds-b": 4}
_GROWN = {"rounds-b": 9}
_MEMBER_ID, _TOPICS, _GENERATION = 2, 5, 7

Partitions = list[tuple[str, int]]


class Change(NamedTuple):
    """What the cluster and its consumers said before and after something happened to them."""

    before: ClusterTables
    after: ClusterTables
    states_before: dict[str, State]
    states: dict[str, State]
    claims: dict[str, Partitions]
    """By member of the sticky group: what its user data said when it joined."""


class Predicted(NamedTuple):
    """By change, group and member."""

    rounds: dict[tuple[str, str], int]
    holdings: dict[tuple[str, str, str], Partitions]
    calls: dict[tuple[str, str, str], list[tuple[str, Partitions]]]


class Fleet:
    """The running groups, changed one after another."""

    def __init__(self, address: str, consumers: JavaConsumers) -> None:
        self._address = address
        self._consumers = consumers
        self._topics: dict[str, list[str]] = {}
        self._sizes = dict(_SIZES)
        self.changes: dict[str, Change] = {}

    def start(self, group_id: str, number: int, assignor: str, **settings: str) -> None:
        name = f"{group_id}-{number}"
        self._topics[name] = list(_SIZES)
        self._consumers.start(
            name, group_id, self._topics[name], assignor, metadata_max_age_ms="500", **settings
        )

    def stop(self, group_id: str, number: int) -> None:
        name = f"{group_id}-{number}"
        del self._topics[name]
        self._consumers.stop(name)

    def drop_topic(self, group_id: str, number: int, topic: str) -> None:
        name = f"{group_id}-{number}"
        self._topics[name].remove(topic)
        self._consumers.subscribe(name, self._topics[name])

    def grow(self) -> None:
        admin = KafkaAdminClient(bootstrap_servers=self._address)
        try:
            admin.create_partitions(_GROWN)
        finally:
            admin.close()
        self._sizes |= _GROWN

    def settled(self) -> dict[str, State]:
        """States once every group is in one generation and owns all its partitions."""

        def accepted(states: dict[str, State]) -> bool:
            topics_of, owned, generations = defaultdict(set), defaultdict(list), defaultdict(set)
            for name, state in states.items():
                generations[state.group_id].add(state.generation)
                owned[state.group_id] += state.assignment
                topics_of[state.group_id] |= {
                    (topic, p) for topic in self._topics[name] for p in range(self._sizes[topic])
                }
            return (
                states.keys() == self._topics.keys()
                and all(state.member_id for state in states.values())
                and all(len(of) == 1 for of in generations.values())
                and all(sorted(owned[group]) == sorted(topics_of[group]) for group in topics_of)
            )

        return self._consumers.wait_until(accepted)

    def change(self, name: str, action: Callable[[], None]) -> None:
        states_before, before = self.settled(), read_cluster(self._address)
        action()
        states = self.settled()
        self.changes[name] = Change(
            before, read_cluster(self._address), states_before, states, self._claims()
        )

    def _claims(self) -> dict[str, Partitions]:
        admin = KafkaAdminClient(bootstrap_servers=self._address)
        try:
            (coordinator,) = {broker["broker_id"] for broker in admin.describe_cluster()["brokers"]}
            request = DescribeGroupsRequest(
                groups=["rounds-sticky"], include_authorized_operations=False
            )
            answer = admin._manager.run(admin._manager.send, request, coordinator)
        finally:
            admin.close()
        return {
            member.member_id: sorted(
                claims(decode_subscription(member.member_metadata), "sticky").owned
            )
            for member in answer.groups[0].members
        }


@pytest.fixture(scope="module")
def changes(spark: SparkSession, broker: SecuredBroker) -> Iterator[dict[str, Change]]:
    create_topics(broker.bootstrap_server, _SIZES)

    def start_all(number: int) -> None:
        """Those that let go take their time, so that each has its answer before the next round."""
        for group_id, assignor in _GROUPS.items():
            fleet.start(group_id, number, assignor, revoking_ms="300")

    def start_second() -> None:
        start_all(2)
        for group_id in _SLOW:
            fleet.start(group_id, 2, "cooperative-sticky", between_polls_ms="400")

    def stop_second() -> None:
        for group_id in _GROUPS:
            fleet.stop(group_id, 2)

    with java_consumers(spark, broker.bootstrap_server) as consumers:
        fleet = Fleet(broker.bootstrap_server, consumers)
        start_all(1)
        fleet.start(_ALONE, 1, "cooperative-sticky")
        for group_id in _SLOW:
            fleet.start(group_id, 1, "cooperative-sticky")
        fleet.change("second joins", start_second)
        fleet.change("third joins", lambda: start_all(3))
        fleet.change("second leaves", stop_second)
        fleet.change("topic grows", fleet.grow)
        fleet.change("topic dropped", lambda: fleet.drop_topic(_ALONE, 1, "rounds-b"))
        yield fleet.changes


@pytest.fixture(scope="module")
def states_before(spark: SparkSession, changes: dict[str, Change]) -> Snapshot:
    """All changes in one call: each is a cluster of its own."""
    members, topics, owned = [], [], []
    for name, change in changes.items():
        generations = {m[_MEMBER_ID]: m[_GENERATION] for m in change.before.members}
        for row in change.after.members:
            was = generations.get(row[_MEMBER_ID])
            members.append((name, *row[1:_GENERATION], was, *row[_GENERATION + 1 :]))
        topics += [(name, *row[1:]) for row in change.after.topics]
        owned += [(name, *row[1:]) for row in change.before.owned]
    frames = to_snapshot(ClusterTables(members, topics, owned, []), spark)
    return Snapshot(*(frame.where("cluster_id IS NOT NULL") for frame in frames))


@pytest.fixture(scope="module")
def predicted(states_before: Snapshot) -> Predicted:
    members = states_before.members.where("group_id LIKE 'rounds-%'")
    steps = rebalance(members, *states_before[1:]).persist()
    result = Predicted(defaultdict(int), defaultdict(list), defaultdict(list))
    rows = steps.collect()
    for row in rows:
        group = (row.cluster_id, row.group_id)
        result.rounds[group] = max(result.rounds[group], row["round"])
    for row in rows:
        group = (row.cluster_id, row.group_id)
        if row["round"] == result.rounds[group] and row.action in ("retained", "assigned"):
            result.holdings[(*group, row.member_id)].append((row.topic, row.partition))
    calls = listener_calls(steps, members).orderBy("round", "call").collect()
    for row in calls:
        call = row.callback.removeprefix("onPartitions").lower()
        partitions = [(p.topic, p.partition) for p in row.partitions]
        result.calls[(row.cluster_id, row.group_id, row.member_id)].append((call, partitions))
    steps.unpersist()
    return result


def _taking_part(changes: dict[str, Change]) -> Iterator[tuple[str, str, State, State | None]]:
    """Change, consumer, its state then and before, of the groups in which something happened."""
    for name, change in changes.items():
        for consumer, state in change.states.items():
            if name in _CHANGES.get(state.group_id, _CHANGES_OF_OTHERS):
                yield name, consumer, state, change.states_before.get(consumer)


def test_every_member_is_told_what_was_predicted(
    changes: dict[str, Change], predicted: Predicted
) -> None:
    compared = late = 0
    for name, consumer, state, before in _taking_part(changes):
        events = state.events[len(before.events) if before else 0 :]
        expected = predicted.calls[(name, state.group_id, state.member_id)]
        if name == "second joins" and state.group_id in _SLOW and before is None:
            assert expected[0] == ("assigned", [])
            if events == expected[1:]:  # that round was over when it asked
                late += 1
                continue
        assert events == expected, (name, consumer)
        compared += len(events)
    assert compared > 50
    assert late > 0


def test_every_member_ends_with_what_was_predicted(
    changes: dict[str, Change], predicted: Predicted
) -> None:
    for name, consumer, state, _ in _taking_part(changes):
        owned = predicted.holdings[(name, state.group_id, state.member_id)]
        assert sorted(owned) == state.assignment, (name, consumer)


def test_there_are_as_many_rounds_as_generations(
    changes: dict[str, Change], predicted: Predicted
) -> None:
    seen = set()
    for name, _, state, before in _taking_part(changes):
        if before is not None:
            passed = state.generation - before.generation
            assert passed == predicted.rounds[(name, state.group_id)], (name, state.group_id)
            seen.add((state.group_id, passed))
    assert {("rounds-cooperative", 2), ("rounds-cooperative", 1), ("rounds-sticky", 1)} <= seen


def test_sticky_members_claim_what_a_snapshot_says_they_own(changes: dict[str, Change]) -> None:
    """Their user data is older than the assignment that a snapshot holds; the next one agrees."""
    for name, change in changes.items():
        if name == "topic dropped":
            continue
        owned = defaultdict(list)
        for _, group_id, member_id, topic, partition in change.before.owned:
            if group_id == "rounds-sticky":
                owned[member_id].append((topic, partition))
        assert change.claims == {m: sorted(owned.get(m, [])) for m in change.claims}, name
        assert any(change.claims.values())


def test_assign_predicts_sticky_after_a_member_left(
    states_before: Snapshot, changes: dict[str, Change]
) -> None:
    name = "second leaves"
    members = states_before.members.where(f"group_id = 'rounds-sticky' AND cluster_id = '{name}'")
    result = defaultdict(list)
    for row in assign(members, *states_before[1:]).collect():
        result[row.member_id].append((row.topic, row.partition))
    states = changes[name].states.values()
    assignments = {s.member_id: s.assignment for s in states if s.group_id == "rounds-sticky"}
    assert {member: sorted(partitions) for member, partitions in result.items()} == assignments
