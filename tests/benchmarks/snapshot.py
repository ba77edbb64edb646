"""How long a snapshot of many groups of the new protocol takes on the tests' broker.

    python -m tests.benchmarks.snapshot [GROUPS]

Each group has two members that read three topics of ten partitions. Members join by one heartbeat
and send no other, so with the longest session of the broker all are there for the second reading.
"""

import argparse
import tempfile
import time
from pathlib import Path

from kafka import KafkaAdminClient

from kassign_spark.live.snapshot import read_cluster
from tests.kafka.broker import running_broker
from tests.kafka.heartbeats import join, wait_for_coordinator
from tests.kafka.topics import create_topics

_TOPICS = {f"topic-{i}": 10 for i in range(3)}
_SETTINGS = {
    "group.consumer.max.session.timeout.ms": "600000",
    "group.consumer.session.timeout.ms": "600000",
}


def main() -> None:
    """Print seconds, groups and rows of two readings."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("groups", nargs="?", type=int, default=1_000)
    args = parser.parse_args()
    with (
        tempfile.TemporaryDirectory() as folder,
        running_broker(Path(folder), settings=_SETTINGS) as broker,
    ):
        create_topics(broker.bootstrap_server, _TOPICS)
        admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap_server)
        (node,) = (each["broker_id"] for each in admin.describe_cluster()["brokers"])
        wait_for_coordinator(admin)
        started = time.perf_counter()
        for member in range(2):
            for number in range(args.groups):
                join(admin, node, f"group-{number}", list(_TOPICS))
            print(f"member {member + 1}: {time.perf_counter() - started:.1f} s", flush=True)
        admin.close()
        for what in ("first", "second"):
            started = time.perf_counter()
            tables = read_cluster(broker.bootstrap_server, consumer_groups=True)
            seconds = time.perf_counter() - started
            groups = len({row[1] for row in tables.members})
            print(
                f"{what}: {seconds:.1f} s, {groups} groups, {len(tables.members)} members, "
                f"{len(tables.target)} rows of target, {len(tables.settings)} settings, "
                f"{len(tables.omitted)} left out",
                flush=True,
            )


if __name__ == "__main__":
    main()
