"""Make ``examples/both-protocols`` anew: groups of both protocols on one real broker.

Run from the top folder: ``python -m tests.kafka.make_new_protocol_fleet examples/both-protocols``.
Ids of members and topics are random, so every run gives another, equally good example.
"""

import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from kassign_spark.live.live_snapshot import ClusterTables, read_cluster
from tests.kafka.broker import running_broker
from tests.kafka.consumers import JavaConsumers, State, java_consumers
from tests.kafka.make_example_fleet import write_example
from tests.kafka.topics import create_topics
from tests.spark_session import start_session

TOPICS = {
    "orders.created": 12,
    "orders.paid": 12,
    "payments.captured": 9,
    "refunds.opened": 4,
    "search.queries": 16,
    "search.results": 10,
}


class Group(NamedTuple):
    """A group of the example; ``assignor`` of the client, or of the coordinator where is_new."""

    group_id: str
    assignor: str
    member_count: int
    topics: list[str]
    is_static: bool = False
    is_new: bool = False


GROUPS = [
    Group("billing-invoices", "cooperative-sticky", 3, ["orders.paid"]),
    Group("orders-fulfilment", "cooperative-sticky", 4, ["orders.created"], is_static=True),
    # Reads two topics in step: the same numbers of both at one member.
    Group("orders-join", "range", 3, ["orders.created", "orders.paid"]),
    Group("search-archive", "roundrobin", 2, ["search.queries", "search.results"]),
    Group("fraud-scoring", "uniform", 3, ["payments.captured", "refunds.opened"], is_new=True),
    Group("payments-ledger", "uniform", 2, ["payments.captured"], is_static=True, is_new=True),
    Group("search-index", "range", 4, ["search.queries", "search.results"], is_new=True),
]


def start_fleet(consumers: JavaConsumers) -> None:
    """Start every consumer; the last of each group joins when the others have settled."""
    for is_late in (False, True):
        for group in GROUPS:
            for number in range(group.member_count):
                if is_late == (number == group.member_count - 1):
                    _start(consumers, group, number)
        consumers.wait_until(lambda states: all(s.member_id for s in states.values()), 120)


def _start(consumers: JavaConsumers, group: Group, number: int) -> None:
    name = f"{group.group_id}-{number}"
    settings = {"group_instance_id": name} if group.is_static else {}
    if group.is_new:
        settings |= {"group_protocol": "consumer", "group_remote_assignor": group.assignor}
    assignor = None if group.is_new else group.assignor
    consumers.start(name, group.group_id, group.topics, assignor, **settings)


def settled(consumers: JavaConsumers, address: str) -> ClusterTables:
    """Read the cluster when everybody has what he is to have.

    Raises:
        TimeoutError: that took minutes.
    """
    expected = sum(TOPICS[topic] for group in GROUPS for topic in group.topics)
    for _ in range(120):
        states = consumers.states()
        tables = read_cluster(address, consumer_groups=True, progress=print)
        if (
            len(tables.owned) == expected
            and holds(states) == {(r[2], r[3], r[4]) for r in tables.owned}
            and {(r[2], r[3], r[4]) for r in tables.target}
            <= {(r[2], r[3], r[4]) for r in tables.owned}
        ):
            return tables
        time.sleep(1)
    raise TimeoutError("the fleet has not settled")


def holds(states: dict[str, State]) -> set[tuple[str, str, int]]:
    """Say who holds what: member, topic, partition."""
    return {(state.member_id, *tp) for state in states.values() for tp in state.assignment}


def main(folder: Path) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        spark = start_session(Path(scratch))
        log = Path(scratch) / "broker"
        log.mkdir()
        with running_broker(log) as broker:
            create_topics(broker.bootstrap_server, TOPICS)
            with java_consumers(spark, broker.bootstrap_server) as consumers:
                start_fleet(consumers)
                tables = settled(consumers, broker.bootstrap_server)
        assert tables.omitted == [], tables.omitted
        assert len(tables.members) == sum(group.member_count for group in GROUPS)
        write_example(spark, tables, folder)
        spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
