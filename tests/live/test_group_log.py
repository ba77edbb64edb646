"""The group log of a real broker: kept in files, and as a snapshot equal to the live one."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from kafka.admin import (
    ResourceType,
)
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from kassign_spark import cli
from kassign_spark.log.group_log import read_group_log
from kassign_spark.tables.snapshots import Snapshot, read_snapshot
from tests.kafka import commands
from tests.kafka.consumers import JavaConsumers, State, java_consumers
from tests.kafka.hiding import hidden
from tests.kafka.secured import SecuredBroker
from tests.kafka.topics import create_topics

pytestmark = [pytest.mark.broker, pytest.mark.slow]

_TOPICS = {"log-a": 5, "log-b": 3}
_CLASSIC = {"log-range": "range", "log-cooperative": "cooperative-sticky"}
_GROUPS = [*_CLASSIC, "log-consumer"]


@pytest.fixture(scope="module")
def settled(spark: SparkSession, broker: SecuredBroker) -> Iterator[JavaConsumers]:
    """Groups of both protocols, of which a member has left."""
    create_topics(broker.bootstrap_server, _TOPICS)
    with java_consumers(spark, broker.bootstrap_server) as consumers:
        for group, assignor in _CLASSIC.items():
            for place in "abc":
                consumers.start(f"{group}-{place}", group, list(_TOPICS), assignor)
        for place in "abc":
            static = {"group_instance_id": "one"} if place == "a" else {}
            consumers.start(
                f"log-consumer-{place}",
                "log-consumer",
                list(_TOPICS),
                None,
                group_protocol="consumer",
                **static,
            )
        consumers.wait_until_joined(9)
        for group in _GROUPS:
            consumers.stop(f"{group}-c")
        consumers.wait_until(_all_owned, 90)
        yield consumers


def _all_owned(states: dict[str, State]) -> bool:
    counts = Counter(s.group_id for s in states.values() for _ in s.assignment)
    return len(states) == 6 and all(counts[group] == sum(_TOPICS.values()) for group in _GROUPS)


def _command(*arguments: str | Path) -> None:
    assert cli.main([str(argument) for argument in arguments]) == 0


def _rows(snapshot: Snapshot, table: str, *but: str) -> list[str]:
    frame = snapshot.tables()[table]
    mine = frame.where(frame.group_id.isin(*_GROUPS)).drop(*but)
    if "topics" in mine.columns:  # a set to the coordinator of the new protocol
        mine = mine.withColumn("topics", F.array_sort("topics"))
    return sorted(str(row.asDict()) for row in mine.collect())


def test_the_log_says_what_the_live_groups_say(
    spark: SparkSession, broker: SecuredBroker, settled: JavaConsumers, tmp_path: Path
) -> None:
    address = ("--bootstrap-server", broker.bootstrap_server)
    both = ("--output",)
    commands.run(
        ["log", *address, "--save", tmp_path / "log"],
        ["snapshot", "--from-log", *address, *both, tmp_path / "direct"],
    )
    _command("snapshot", *address, *both, tmp_path / "live")
    _command("snapshot", *address, *both, tmp_path / "logged", "--from-log", tmp_path / "log")
    _command("snapshot", *both, tmp_path / "offline", "--from-log", tmp_path / "log",
             "--topics", tmp_path / "live")  # fmt: skip
    live = read_snapshot(tmp_path / "live", spark)
    for name in ("direct", "logged", "offline"):
        logged = read_snapshot(tmp_path / name, spark)
        # The coordinator's own order is not in the log, and who leads is there alone.
        but = ("member_seq", "is_leader")
        assert _rows(logged, "members", *but) == _rows(live, "members", *but)
        leaders = logged.members.where("is_leader").groupBy("group_id").count()
        mine = leaders.where(F.col("group_id").isin(*_GROUPS))
        assert sorted(map(tuple, mine.collect())) == [(group, 1) for group in sorted(_CLASSIC)]
        assert len(_rows(logged, "members")) == 6
        assert _rows(logged, "owned") == _rows(live, "owned")
        assert len(_rows(logged, "owned")) == 3 * 8
        assert _rows(logged, "target", "position") == _rows(live, "target", "position")
    # Other tests leave records in this broker's log that no consumer wrote.
    records = read_group_log(tmp_path / "log", spark).records
    mine = records.where(f"string(key) RLIKE '{'|'.join(_GROUPS)}'")
    mine.write.parquet(str(tmp_path / "mine"))
    log = read_group_log(tmp_path / "mine", spark)
    assert log.generations.count()
    assert log.unread.collect() == []


def test_without_rights_it_is_one_line_and_no_secret(
    broker: SecuredBroker, settled: JavaConsumers, tmp_path: Path
) -> None:
    """The user of the SASL listener, by a client properties file."""
    properties = tmp_path / "client.properties"
    sasl = broker.credentials.sasl_properties()
    properties.write_text("".join(f"{key}={value}\n" for key, value in sasl.items()))
    with hidden(broker, ResourceType.TOPIC, "__consumer_offsets"):
        address = ("--bootstrap-server", broker.addresses["SASL"])
        save = ("--save", tmp_path / "log")
        refused = commands.outcome("log", *address, *save, "--command-config", properties)
    assert (refused.returncode, refused.stdout) == (2, "")
    error = refused.stderr.splitlines()[-1]
    assert error.startswith("kassign-spark: error: ")
    assert "this user may not read __consumer_offsets" in error
    assert refused.stderr.count("error") == 1
    assert broker.credentials.password not in refused.stderr
    assert list(tmp_path.iterdir()) == [properties]
