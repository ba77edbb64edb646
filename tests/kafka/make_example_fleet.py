"""Make ``examples/fleet`` anew: a snapshot of a real broker with real consumers of a shop.

Run from the top folder: ``python -m tests.kafka.make_example_fleet examples/fleet``. Member ids end
in random UUIDs, so every run gives another, equally good example.
"""

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from kafka import KafkaAdminClient
from pyspark.sql import SparkSession

from kassign_spark.live.live_snapshot import ClusterTables, read_cluster, to_snapshot
from kassign_spark.tables.snapshots import write_snapshot
from tests.kafka.broker import running_broker
from tests.kafka.consumers import JavaConsumers, State, java_consumers
from tests.kafka.topics import create_topics
from tests.spark_session import start_session

TOPICS = {
    "audit.log": 1,
    "catalogue.prices": 10,
    "catalogue.products": 10,
    "clickstream.clicks": 48,
    "clickstream.pageviews": 48,
    "clickstream.searches": 24,
    "customers.consents": 3,
    "customers.profiles": 8,
    "fraud.scores": 9,
    "inventory.levels": 12,
    "inventory.reservations": 12,
    "mail.outbox": 4,
    "orders.cancelled": 6,
    "orders.created": 24,
    "orders.shipped": 12,
    "payments.authorised": 16,
    "payments.captured": 16,
    "payments.refunds": 6,
    "shipping.events": 15,
    "telemetry.gateway": 32,
}
GROWN = {"payments.refunds": 9}
"""Topics that get partitions after all groups have settled: no consumer has noticed it yet."""


class Members(NamedTuple):
    """Some alike members of a group."""

    count: int
    topics: Sequence[str] | str
    """Names, or one string: a pattern."""
    static: bool = False
    rack: str | None = None


class Fleet(NamedTuple):
    """A group of the example."""

    group_id: str
    assignor: str
    members: Sequence[Members]


_ORDERS = ["orders.created", "orders.cancelled", "orders.shipped"]
_CLICKS = ["clickstream.pageviews", "clickstream.clicks"]
_STOCK = ["inventory.levels", "inventory.reservations"]
_GOODS = ["catalogue.prices", "catalogue.products"]

GROUPS = [
    Fleet("orders-fulfilment", "range", [Members(8, _ORDERS, static=True)]),
    Fleet("orders-analytics", "range", [Members(5, ["orders.created", "orders.shipped"])]),
    Fleet(
        "payments-ledger",
        "range",
        [Members(6, ["payments.authorised", "payments.captured"], static=True)],
    ),
    Fleet("payments-refunds", "range", [Members(4, ["payments.refunds"])]),
    Fleet("clickstream-enrich", "range", [Members(12, _CLICKS, rack="rack-a")]),
    # Half-way through a deploy: the old version does not know the second topic.
    Fleet("inventory-sync", "range", [Members(5, _STOCK), Members(2, _STOCK[:1])]),
    Fleet("customer-profile-cache", "range", [Members(3, r"customers\..*")]),
    Fleet("audit-archive", "range", [Members(3, ["audit.log"])]),
    Fleet("catalogue-search-index", "range", [Members(4, _GOODS), Members(2, _GOODS[1:])]),
    Fleet("mail-sender", "range", [Members(2, ["mail.outbox"], static=True)]),
    Fleet("shipping-tracker", "range", [Members(5, ["shipping.events", "orders.shipped"])]),
    Fleet("clickstream-sessions", "roundrobin", [Members(10, [*_CLICKS, "clickstream.searches"])]),
    Fleet("telemetry-rollup", "roundrobin", [Members(9, ["telemetry.gateway"])]),
    Fleet(
        "fraud-scoring",
        "roundrobin",
        [
            Members(3, ["payments.authorised", "orders.created"], static=True),
            Members(3, ["payments.authorised", "orders.created"]),
        ],
    ),
    # Badly skewed: one member alone reads the big topics.
    Fleet(
        "orders-notifications",
        "roundrobin",
        [Members(1, _ORDERS), Members(3, ["orders.cancelled"])],
    ),
    Fleet("inventory-forecast", "roundrobin", [Members(3, _STOCK), Members(2, _STOCK[1:])]),
    Fleet("data-lake-orders", "roundrobin", [Members(8, r"orders\..*")]),
    Fleet("data-lake-payments", "roundrobin", [Members(4, r"payments\..*")]),
    Fleet("recommendations", "sticky", [Members(7, ["clickstream.clicks", "catalogue.products"])]),
    Fleet("pricing-engine", "sticky", [Members(4, ["catalogue.prices", "inventory.levels"])]),
    Fleet(
        "clickstream-heatmap",
        "sticky",
        [Members(4, _CLICKS), Members(2, ["clickstream.clicks", "clickstream.searches"])],
    ),
    Fleet("customer-segments", "sticky", [Members(3, ["customers.profiles"])]),
    Fleet("fraud-features", "cooperative-sticky", [Members(6, ["fraud.scores", "orders.created"])]),
    Fleet("telemetry-alerts", "cooperative-sticky", [Members(5, ["telemetry.gateway"])]),
    Fleet(
        "shipping-eta",
        "cooperative-sticky",
        [Members(3, ["shipping.events", "orders.shipped"]), Members(1, ["shipping.events"])],
    ),
]


def start_fleet(consumers: JavaConsumers) -> dict[str, State]:
    """Start every consumer; the last of each group joins when the others have settled."""
    late = []
    started = 0
    for group in GROUPS:
        everyone = [members for members in group.members for _ in range(members.count)]
        for number, members in enumerate(everyone):
            settings = {"heartbeat_interval_ms": "1000"}
            if members.static:
                settings["group_instance_id"] = f"{group.group_id}-{number}"
            if members.rack:
                settings["client_rack"] = members.rack
            name = f"{group.group_id}-{number}"
            if number == len(everyone) - 1:
                late.append((name, group, members, settings))
                continue
            consumers.start(name, group.group_id, members.topics, group.assignor, **settings)
            started += 1
    consumers.wait_until_joined(started, seconds=180)
    for name, group, members, settings in late:
        consumers.start(name, group.group_id, members.topics, group.assignor, **settings)
    return consumers.wait_until_joined(started + len(late), seconds=180)


def write_example(spark: SparkSession, tables: ClusterTables, folder: Path) -> None:
    """Write JSON lines, one file a table: small, and a change of them can be read in a diff."""
    with tempfile.TemporaryDirectory() as scratch:
        written = Path(scratch) / "snapshot"
        snapshot = to_snapshot(tables, spark)
        write_snapshot(snapshot, written, table_format="json")
        for table in snapshot.tables():
            parts = sorted((written / table).glob("part-*"))
            (folder / table).mkdir(parents=True, exist_ok=True)
            file = folder / table / f"{table}.json"
            file.write_text("".join(part.read_text() for part in parts))


def main(folder: Path) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        spark = start_session(Path(scratch))
        log = Path(scratch) / "broker"
        log.mkdir()
        with running_broker(log) as broker:
            create_topics(broker.bootstrap_server, TOPICS)
            with java_consumers(spark, broker.bootstrap_server) as consumers:
                states = start_fleet(consumers)
                admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap_server)
                admin.create_partitions(GROWN)
                admin.wait_for_topics(list(GROWN))
                admin.close()
                tables = read_cluster(broker.bootstrap_server, progress=print)
                after = consumers.states()
        check(states, after, tables)
        write_example(spark, tables, folder)
        spark.stop()
    groups = {row[1] for row in tables.members}
    print(f"{len(groups)} groups, {len(tables.members)} members, {len(tables.owned)} owned")


def check(states: dict[str, State], after: dict[str, State], tables: ClusterTables) -> None:
    """Nothing moved while the snapshot was taken, and it holds all that the consumers hold."""
    assignments = {state.member_id: state.assignment for state in states.values()}
    assert assignments == {state.member_id: state.assignment for state in after.values()}
    owned = {(row[2], row[3], row[4]) for row in tables.owned}
    assert owned == {(member, *tp) for member, tps in assignments.items() for tp in tps}
    assert tables.omitted == [], tables.omitted
    assert len(tables.members) == len(states)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
