"""What ``simulate`` says starts a rebalance starts one among real consumers, and nothing else does.

Each group is one consumer, a, that stays, and one, b, to which something happens; a's generation
tells whether there was a rebalance.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest
from kafka import KafkaAdminClient
from pyspark.sql import SparkSession

from kassign_spark.simulation.simulate import simulate
from tests import builders
from tests.kafka.consumers import JavaConsumers, State, java_consumers
from tests.kafka.secured import SecuredBroker
from tests.kafka.topics import create_topics
from tests.simulation.test_simulate import e, events_frame

pytestmark = pytest.mark.slow

_SIZES = {"events-t": 4, "events-u": 2, "events-grown": 2}
_NEW = "events-new"
_T, _SESSION = ["events-t"], "6000"
_BOTH = ["roundrobin", "range"]


class Scenario(NamedTuple):
    """``before`` and ``after`` are what b is started with; no ``after``: it does not come back."""

    event: dict[str, Any]
    static: bool = False
    before: Any = _T
    after: Any = None
    assignors: Any = "range"
    new_assignors: Any = None


def _restart(**more: Any) -> dict[str, Any]:
    return e("member_restarts", "b", downtime_ms=0, **more)


SCENARIOS = {
    "leaves": Scenario(e("member_leaves", "b")),
    "leaves-static": Scenario(e("member_leaves", "b"), static=True),
    "back": Scenario(_restart(), static=True, after=_T),
    "back-with-more": Scenario(
        _restart(topics=["events-t", "events-u"]), static=True, after=["events-t", "events-u"]
    ),
    "back-with-other": Scenario(_restart(topics=["events-u"]), static=True, after=["events-u"]),
    "assignor": Scenario(
        e("assignor_changes", "b", assignors=_BOTH),
        static=True,
        after=_T,
        new_assignors=_BOTH,
    ),
    "same-pattern": Scenario(
        e("subscription_changes", "b", topics_pattern="events-t|x"),
        before="events-t",
        after="events-t|x",
    ),
    "other-pattern": Scenario(
        e("subscription_changes", "b", topics_pattern="events-[tu]"),
        before="events-t",
        after="events-[tu]",
    ),
    "to-pattern": Scenario(
        e("subscription_changes", "b", topics_pattern="events-t"), after="events-t"
    ),
    "to-pattern-static": Scenario(
        e("subscription_changes", "b", topics_pattern="events-t"), after="events-t", static=True
    ),
    "grows": Scenario(
        e("topic_grows", topic="events-grown", num_partitions=3), before=["events-grown"]
    ),
    "appears": Scenario(
        e("topic_appears", topic=_NEW, num_partitions=1), before="events-t|events-n.*"
    ),
    "untouched": Scenario(e("topic_appears", topic=_NEW, num_partitions=1)),
}


@pytest.fixture(scope="module")
def expected(spark: SparkSession) -> dict[str, bool]:
    """What ``simulate`` says, each group in a cluster of its own, as topics are a cluster's."""
    members, topics, owned, events = [], [], [], []
    for name, of in SCENARIOS.items():
        at = {"cluster_id": name, "group_id": name}
        for member in ("a", "b"):
            subscription = of.before if member == "b" else _T
            members.append(
                {
                    **at,
                    "member_id": member,
                    "group_instance_id": member if of.static else None,
                    "topics_pattern": subscription if isinstance(subscription, str) else None,
                    "topics": None if isinstance(subscription, str) else subscription,
                    "assignor": "range",
                }
            )
        topics += [{"cluster_id": name, "topic": t, "num_partitions": n} for t, n in _SIZES.items()]
        owned += [
            {**at, "member_id": "ab"[p % 2], "topic": "events-t", "partition": p} for p in range(4)
        ]
        group = {} if of.event["kind"].startswith("topic_") else {"group_id": name}
        events.append({**of.event, **group, "cluster_id": name, "event": 1})
        if name == "assignor":
            # So that a lists both, as the consumer does: it is back in time, and nothing changes.
            events[-1]["event"] = 2
            events.append({**of.event, **at, "member_id": "a", "event": 1})
    result = simulate(
        builders.members(spark, members),
        builders.topics(spark, topics),
        builders.owned(spark, owned),
        events_frame(spark, events),
    )
    last = {}
    for row in result.orderBy("event", "stage").collect():
        last[row.group_id] = row.rebalance
    return last


@pytest.fixture(scope="module")
def observed(
    spark: SparkSession, broker: SecuredBroker, expected: dict[str, bool]
) -> Iterator[dict[str, bool]]:
    """Whether each group has rebalanced."""
    address = broker.bootstrap_server
    create_topics(address, _SIZES)
    with java_consumers(spark, address) as consumers:
        for member in ("a", "b"):
            for name, of in SCENARIOS.items():
                _start(consumers, name, member, of.before if member == "b" else _T, of.assignors)
            count = len(SCENARIOS) * (1 if member == "a" else 2)
            before = consumers.wait_until_joined(count)
        for name, of in SCENARIOS.items():
            _happen(consumers, name, of)
        admin = KafkaAdminClient(bootstrap_servers=address)
        try:
            admin.create_partitions({"events-grown": 3})
        finally:
            admin.close()
        create_topics(address, {_NEW: 1})
        rebalanced = [name for name, is_expected in expected.items() if is_expected]
        # What is to happen has happened, and has come to rest; then what happened to the others.
        after = consumers.wait_until(_all_moved(before, rebalanced), seconds=60)
        yield {
            name: after[f"{name}-a"].generation != before[f"{name}-a"].generation
            for name in SCENARIOS
        }


def _start(consumers: JavaConsumers, name: str, member: str, topics: Any, assignors: Any) -> None:
    settings = {"session_timeout_ms": _SESSION, "metadata_max_age_ms": "500"}
    if SCENARIOS[name].static:
        settings["group_instance_id"] = f"{name}-{member}"
    if name == "assignor" and member == "a":
        assignors = _BOTH
    consumers.start(f"{name}-{member}", f"events-{name}", topics, assignors, **settings)


def _happen(consumers: JavaConsumers, name: str, of: Scenario) -> None:
    kind = of.event["kind"]
    if kind.startswith("member_") or kind == "assignor_changes":
        consumers.stop(f"{name}-b")
        if of.after is not None:
            _start(consumers, name, "b", of.after, of.new_assignors or of.assignors)
    elif kind == "subscription_changes":
        consumers.subscribe(f"{name}-b", of.after)


def _all_moved(before: dict[str, State], names: list[str]) -> Callable[[dict[str, State]], bool]:
    def moved(states: dict[str, State]) -> bool:
        return all(
            states[f"{name}-a"].generation > before[f"{name}-a"].generation for name in names
        )

    return moved


def test_what_is_said_to_start_a_rebalance_does(
    expected: dict[str, bool], observed: dict[str, bool]
) -> None:
    assert observed == expected
    assert set(observed.values()) == {True, False}
