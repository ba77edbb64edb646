"""Real consumers of Kafka's Java client, run on threads of the Spark session's JVM."""

import contextlib
import json
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession

from tests.kafka.oracle import new_java_object

CLASSES = {
    "range": "RangeAssignor",
    "roundrobin": "RoundRobinAssignor",
    "sticky": "StickyAssignor",
    "cooperative-sticky": "CooperativeStickyAssignor",
}


@dataclass(frozen=True)
class State:
    """What a consumer knows of itself after its last poll."""

    group_id: str
    member_id: str
    generation: int
    assignment: list[tuple[str, int]]
    """Sorted."""
    events: list[tuple[str, list[tuple[str, int]]]]
    """Calls of its rebalance listener so far: assigned, revoked or lost, and the partitions."""


@dataclass(frozen=True)
class Event:
    """A call of a consumer's rebalance listener."""

    name: str
    """Of the consumer."""
    event: str
    """assigned, revoked or lost."""
    partitions: list[tuple[str, int]]
    at: int
    """Milliseconds since 1970."""


class JavaConsumers:
    """Consumers by a name of their own; see ``java_consumers``."""

    def __init__(self, spark: SparkSession, bootstrap_server: str) -> None:
        self._java: Any = new_java_object(spark, "Consumers")
        self._bootstrap_server = bootstrap_server

    def start(
        self,
        name: str,
        group_id: str,
        topics: Sequence[str] | str,
        assignors: str | Sequence[str] | None = "range",
        **settings: str,
    ) -> None:
        """Start one and return before it has joined.

        Args:
            name: Of the consumer here; also its ``client.id``, with which its member id begins.
            group_id: Its group.
            topics: Names, or one string: a pattern.
            assignors: One name of an assignor or several, the preferred first; None: the client's
                own default, and the only choice with ``group_protocol="consumer"``.
            settings: Of the consumer, with ``_`` for the dots: ``group_instance_id="i1"``. Two
                are of the program around it: ``revoking_ms``, how long its listener takes to let go
                of partitions, and ``between_polls_ms``, how long it does something else after each
                poll, which is then a short one.
        """
        config = {
            "bootstrap.servers": self._bootstrap_server,
            "group.id": group_id,
            "client.id": name,
            "enable.auto.commit": "false",
            "enable.metrics.push": "false",
            "auto.offset.reset": "earliest",
            "retry.backoff.ms": "50",
        }
        if assignors is not None:
            names = [assignors] if isinstance(assignors, str) else assignors
            package = "org.apache.kafka.clients.consumer."
            config["partition.assignment.strategy"] = ",".join(package + CLASSES[a] for a in names)
            config["heartbeat.interval.ms"] = "300"
        config |= {key.replace("_", "."): value for key, value in settings.items()}
        subscription = topics if isinstance(topics, str) else list(topics)
        self._java.start(name, json.dumps(config), json.dumps(subscription))

    def subscribe(self, name: str, topics: Sequence[str] | str) -> None:
        subscription = topics if isinstance(topics, str) else list(topics)
        self._java.subscribe(name, json.dumps(subscription))

    def stop(self, name: str) -> None:
        """Close one: a dynamic member leaves its group, a static one stays until its timeout."""
        self._java.stop(name)

    def crash(self, name: str) -> None:
        """End one without a word to its group, which misses it after its session timeout."""
        self._java.crash(name)

    def events(self) -> list[Event]:
        """All calls of the listeners so far, of consumers that were stopped too, by time."""
        result = [
            Event(**event | {"partitions": _tuples(event["partitions"])})
            for event in json.loads(self._java.events())
        ]
        return sorted(result, key=lambda event: event.at)

    def states(self) -> dict[str, State]:
        """Of those that have polled at least once.

        Raises:
            RuntimeError: a consumer has ended with an exception.
        """
        states = {}
        for name, state in json.loads(self._java.states()).items():
            if "error" in state:
                raise RuntimeError(f"consumer {name}: {state['error']}")
            if "group_id" in state:
                events = [(e["event"], _tuples(e["partitions"])) for e in state.pop("events")]
                states[name] = State(
                    **state | {"assignment": _tuples(state["assignment"]), "events": events}
                )
        return states

    def wait_until(
        self, accepted: Callable[[dict[str, State]], bool], seconds: float = 60
    ) -> dict[str, State]:
        """States that are accepted and that then hold for a second."""
        deadline = time.monotonic() + seconds
        held_since, last_states = time.monotonic(), self.states()
        while time.monotonic() < deadline:
            time.sleep(0.1)
            states = self.states()
            if states != last_states or not accepted(states):
                held_since, last_states = time.monotonic(), states
            elif time.monotonic() - held_since > 1:
                return states
        raise TimeoutError(f"after {seconds} s the consumers are {last_states}")

    def wait_until_joined(self, count: int, seconds: float = 60) -> dict[str, State]:
        """States once ``count`` consumers are members, each group in one generation."""

        def joined(states: dict[str, State]) -> bool:
            generations = defaultdict(set)
            for state in states.values():
                generations[state.group_id].add(state.generation)
            return (
                len(states) == count
                and all(state.member_id for state in states.values())
                and all(len(of) == 1 and min(of) > 0 for of in generations.values())
            )

        return self.wait_until(joined, seconds)

    def stop_all(self) -> None:
        self._java.stopAll()


@contextlib.contextmanager
def java_consumers(spark: SparkSession, bootstrap_server: str) -> Iterator[JavaConsumers]:
    """Consumers of one broker; those still running at the end of the block are closed."""
    consumers = JavaConsumers(spark, bootstrap_server)
    try:
        yield consumers
    finally:
        consumers.stop_all()


def _tuples(partitions: list[list[Any]]) -> list[tuple[str, int]]:
    return [(topic, partition) for topic, partition in partitions]
