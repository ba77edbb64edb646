"""Texts that Kafka's own tools print about a real broker, beside what it says itself."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from kassign_spark import cli, predict, read_snapshot
from kassign_spark.live.from_describe import read_described
from kassign_spark.live.live_snapshot import ClusterTables, read_cluster, to_snapshot
from tests.kafka.consumers import java_consumers
from tests.kafka.jars import KAFKA_VERSION, tools_class_path
from tests.kafka.secured import SecuredBroker
from tests.kafka.topics import create_topics

pytestmark = [pytest.mark.broker, pytest.mark.slow]

_TOPICS = {"told.by_tools": 11, "told-too": 3}
_TABLES = {"plain": (), "members": ("--members", "--verbose"), "state": ("--state",)}
_OLD, _NEW = ("kafka.admin", "kafka.admin"), ("org.apache.kafka.tools",) * 2
_PACKAGES = {"2.4.1": _OLD, "2.8.2": _OLD, "3.9.1": _NEW, KAFKA_VERSION: _NEW}
_JAVA = ("java", "-Xmx256m", "-XX:TieredStopAtLevel=1")
_ASSIGNORS = ("range", "roundrobin", "sticky", "cooperative-sticky")


@pytest.fixture(scope="module")
def cluster(
    spark: SparkSession, broker: SecuredBroker, own_processes: None
) -> Iterator[tuple[str, ClusterTables]]:
    """Groups of both protocols, static and idle members, and one that has left."""
    address = broker.bootstrap_server
    create_topics(address, _TOPICS)
    commits = {"enable_auto_commit": "true", "auto_commit_interval_ms": "200"}
    with java_consumers(spark, address) as consumers:
        for assignor in _ASSIGNORS:
            for number in range(3):
                static = {"group_instance_id": "one"} if number == 0 else {}
                name, group = f"{assignor} {number}", f"told {assignor}"
                consumers.start(name, group, sorted(_TOPICS), assignor, **static, **commits)
        for number in range(4):  # one more than there are partitions
            consumers.start(f"idle-{number}", "told-idle", ["told-too"], "range")
        for number in range(2):
            topics, settings = sorted(_TOPICS), {"group_protocol": "consumer"}
            consumers.start(f"new-{number}", "told-new", topics, None, **settings)
        consumers.start("gone", "told-gone", ["told-too"], "range", **commits)
        consumers.wait_until_joined(19)
        consumers.stop("gone")
        consumers.wait_until_joined(18)
        yield address, read_cluster(address, consumer_groups=True, offsets=True)


def printed(address: str, version: str, folder: Path) -> tuple[list[str], str]:
    """Texts of groups, and of topics: all that the tool writes, errors and logs too."""
    groups, topics = _PACKAGES[version]
    called = "consumer.group.ConsumerGroupCommand" if version >= "3.8" else "ConsumerGroupCommand"
    files = {name: folder / f"{version}-{name}.txt" for name in (*_TABLES, "topics")}
    for name, file in files.items():
        options = ["--all-groups", *_TABLES[name]] if name in _TABLES else []
        command = f"{groups}.{called}" if name in _TABLES else f"{topics}.TopicCommand"
        with file.open("w") as output:
            subprocess.run(
                [*_JAVA, command, "--bootstrap-server", address, "--describe", *options],
                env={**os.environ, "CLASSPATH": ":".join(map(str, tools_class_path(version)))},
                stdout=output,
                stderr=subprocess.STDOUT,
                timeout=120,
                check=True,
            )
    return [str(files[name]) for name in _TABLES], str(files["topics"])


def rows_of_module(rows: Any, has_new: bool) -> list[Any]:
    """Rows of this module's groups: the broker has those of other tests too."""
    names = {f"told {assignor}" for assignor in _ASSIGNORS} | {"told-idle"}
    return [row for row in rows if row[1] in (names | {"told-new"} if has_new else names)]


@pytest.mark.parametrize("version", list(_PACKAGES))
def test_a_snapshot_of_texts_is_the_live_one(
    version: str, cluster: tuple[str, ClusterTables], tmp_path: Path
) -> None:
    address, live = cluster
    files, topics = printed(address, version, tmp_path)
    has_new = version >= "3.8"
    tables = read_described(files, topics).tables
    assert sorted(rows_of_module(tables.owned, has_new)) == sorted(
        rows_of_module(live.owned, has_new)
    )
    assert [(*r[:3], *r[4:]) for r in tables.topics if r[1] in _TOPICS] == [
        (*r[:3], r[4] if version > "2.7" else None) for r in live.topics if r[1] in _TOPICS
    ]
    expected = [
        (
            *(*row[:3], row[3] if version > "2.4.1" else None, *row[4:7]),
            *(row[7] if row[11] and version == KAFKA_VERSION else None, *row[8:]),
        )
        for row in rows_of_module(live.members, has_new)
    ]
    assert rows_of_module(tables.members, has_new) == expected
    assert sorted(r[:5] for r in rows_of_module(tables.target, has_new)) == sorted(
        r[:5] for r in rows_of_module(live.target, has_new)
    )
    assert live.offsets is not None
    assert tables.offsets is not None
    committed = {r[1:4]: (r[5], r[6]) for r in live.offsets if r[6] is not None}
    result = {r[1:4]: (r[5], r[6]) for r in rows_of_module(tables.offsets, has_new)}
    assert result
    assert result == {key: committed[key] for key in result}
    omitted = {o.name: o.reason for o in tables.omitted}
    assert omitted["told-gone"] == "no members"
    assert has_new or omitted["told-new"] == "does not exist"


def test_commands_take_it(
    spark: SparkSession,
    cluster: tuple[str, ClusterTables],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """What it predicts is what a live snapshot predicts; sticky groups keep what they own."""
    address, live = cluster
    files, topics = printed(address, KAFKA_VERSION, tmp_path)
    folder = str(tmp_path / "snapshot")
    options = ["--from-describe", *files, "--topics", topics, "--output", folder]
    assert cli.main(["snapshot", *options]) == 0
    output = capsys.readouterr().out
    assert "note: such texts have no subscriptions" in output
    assert (
        f"the snapshot is in {folder}: members, topics, owned, target, offsets, leaders" in output
    )
    assert cli.main(["assign", folder, "--output", str(tmp_path / "plan")]) == 0
    assert cli.main(["predict", folder]) == 0
    assert cli.main(["validate", folder]) in (0, 1)

    def predicted(members: Any, topics: Any, owned: Any, target: Any) -> set[Any]:
        group = members.group_id.startswith("told")
        chosen = predict(
            members.where(group),
            topics,
            owned.where(owned.group_id.startswith("told")),
            target=target.where(target.group_id.startswith("told")),
        )
        assert {row.verdict for row in chosen.verdicts.collect()} == {"ok"}
        return {tuple(row) for row in chosen.assignment.collect()}

    mine, real = read_snapshot(folder, spark), to_snapshot(live, spark)
    assert predicted(*mine, mine.target) == predicted(*real, real.target)
