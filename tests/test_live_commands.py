"""From a real cluster to a plan, by the commands: what its real consumers were given."""

import json
import os
import signal
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from kassign_spark import cli
from kassign_spark.live import live_snapshot as live
from tests.kafka.broker import Brokers
from tests.kafka.consumers import java_consumers
from tests.kafka.secured import SecuredBroker
from tests.kafka.topics import create_topics

_GROUPS = {
    "command-range": "range",
    "command-roundrobin": "roundrobin",
    "command-sticky": "sticky",
    "command-cooperative": "cooperative-sticky",
}


def test_assign_predicts_what_consumers_were_given(
    spark: SparkSession,
    broker: SecuredBroker,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Of groups that have settled, so that the sticky ones keep all that they own."""
    address = broker.bootstrap_server
    create_topics(address, {"command-a": 7, "command-b": 4})
    snapshot, plan = tmp_path / "snapshot", tmp_path / "plan"
    with java_consumers(spark, address) as consumers:
        for group, assignor in _GROUPS.items():
            for member in range(3):
                topics = ["command-a", "command-b"]
                consumers.start(f"{group}-{member}", group, topics, assignor)
        consumers.wait_until_joined(12)
        arguments = ["--bootstrap-server", address, "--output", str(snapshot), "--classic-only"]
        assert cli.main(["snapshot", *arguments, "--cluster-id", "east", "--format", "csv"]) == 0
        states = consumers.states()
    output = capsys.readouterr()
    assert f"the snapshot is in {snapshot}: members, topics, owned, leaders" in output.out
    assert f"connected to {address}: 1 brokers\n" in output.err

    assert cli.main(["assign", str(snapshot), "--output", str(plan), "--format", "json"]) == 0
    assert "no violations" in capsys.readouterr().out
    result: dict[str, list[tuple[str, int]]] = defaultdict(list)
    for part in (plan / "assignment").glob("part-*"):
        for line in part.read_text().splitlines():
            row: dict[str, Any] = json.loads(line)
            assert row["cluster_id"] == "east"
            result[row["member_id"]].append((row["topic"], row["partition"]))
    mine = {state.member_id: state.assignment for state in states.values()}
    assert {member: sorted(result[member]) for member in mine} == mine


def test_a_login_that_is_refused(
    spark: SparkSession,
    broker: SecuredBroker,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Settings come from a file, and what they hold is never shown."""
    monkeypatch.setattr("kassign_spark.live.admin._BOOTSTRAP_MS", 2_000)
    secret = "correct-horse-battery"
    properties = tmp_path / "client.properties"
    sasl = broker.credentials.sasl_properties(secret)
    properties.write_text("".join(f"{key}={value}\n" for key, value in sasl.items()))
    arguments = ["--output", str(tmp_path / "s"), "--command-config", str(properties), "--verbose"]
    assert cli.main(["snapshot", "--bootstrap-server", broker.addresses["SASL"], *arguments]) == 2
    printed = "".join(capsys.readouterr())
    assert "sasl.jaas.config" in printed
    assert secret not in printed
    assert list(tmp_path.iterdir()) == [properties]


def test_a_broker_that_dies(
    spark: SparkSession,
    own_brokers: Brokers,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It dies between the topics and the groups."""
    monkeypatch.setattr("kassign_spark.live.admin._BOOTSTRAP_MS", 3_000)
    monkeypatch.setattr("kassign_spark.live.admin._REQUEST_MS", 3_000)
    (tmp_path / "broker").mkdir()
    with own_brokers(tmp_path / "broker") as broker:
        read_groups = live.stable_groups

        def dying(*arguments: Any) -> Any:
            os.kill(broker.pid, signal.SIGKILL)
            return read_groups(*arguments)

        monkeypatch.setattr(live, "stable_groups", dying)
        output = tmp_path / "new" / "snapshot"
        arguments = ["--bootstrap-server", broker.bootstrap_server, "--output", str(output)]
        assert cli.main(["snapshot", *arguments]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    error = printed.err.splitlines()[-1]
    assert error.startswith("kassign-spark: error: ")
    assert broker.bootstrap_server in error
    assert printed.err.count("error") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["broker"]
