"""How long a snapshot of many groups of the new protocol takes on the tests' broker.

    python -m tests.benchmarks.snapshot [GROUPS]

Each group has two members that read three topics of ten partitions. Members join by one heartbeat
and send no other, so with the longest session of the broker all are there for the last reading.
First the library asks the groups twice; then, in one session of Spark, the command asks them, and
reads the same from their log without asking any: both must be equal.
"""

import argparse
import tempfile
import time
from pathlib import Path

import pyarrow.parquet as pq
from kafka import KafkaAdminClient

from kassign_spark.live.live_snapshot import read_cluster
from tests.kafka import commands
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
        for run in ("first", "second"):
            started = time.perf_counter()
            tables = read_cluster(broker.bootstrap_server, consumer_groups=True)
            seconds = time.perf_counter() - started
            groups = len({row[1] for row in tables.members})
            print(
                f"{run}: {seconds:.1f} s, {groups} groups, {len(tables.members)} members, "
                f"{len(tables.target)} rows of target, {len(tables.settings)} settings, "
                f"{len(tables.omitted)} left out",
                flush=True,
            )
        _compare(broker.bootstrap_server, Path(folder))


def _compare(address: str, folder: Path) -> None:
    """By the commands, and what each of them wrote."""
    both = ["--bootstrap-server", address, "--output"]
    live, logged = commands.run(
        ["snapshot", *both, folder / "live"],
        ["snapshot", "--from-log", *both, folder / "logged"],
    )
    print(f"the command: {live.seconds:.1f} s; from the log: {logged.seconds:.1f} s", flush=True)
    for table, but in (("members", "member_seq"), ("owned", None), ("target", "position")):
        rows, read = (_rows(folder / name / table, but) for name in ("live", "logged"))
        print(f"{table}: {len(rows)} rows, {'equal' if rows == read else 'DIFFERENT'}", flush=True)
        assert rows == read


def _rows(path: Path, but: str | None) -> list[str]:
    """Rows without what the log does not have; the topics of a member are a set."""
    rows = pq.read_table(path).to_pylist()
    for row in rows:
        row.pop(but, None)
        if "topics" in row:
            row["topics"].sort()
    return sorted(str(sorted(row.items(), key=str)) for row in rows)


if __name__ == "__main__":
    main()
