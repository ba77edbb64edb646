"""The broker serves, and leaves nothing running."""

import os
from pathlib import Path

import pytest
from kafka import KafkaAdminClient

from tests.kafka.broker import Broker, Brokers
from tests.kafka.topics import create_topics


def test_it_serves_topics(broker: Broker) -> None:
    create_topics(broker.bootstrap_server, {"test-broker-a": 3, "test-broker-b": 1})
    admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap_server)
    try:
        topics = admin.describe_topics(["test-broker-a", "test-broker-b"])
    finally:
        admin.close()
    assert {t["name"]: len(t["partitions"]) for t in topics} == {
        "test-broker-a": 3,
        "test-broker-b": 1,
    }


def _fail_while_it_runs(brokers: Brokers, folder: Path, pids: list[int]) -> None:
    with brokers(folder) as broker:
        pids.append(broker.pid)
        os.kill(broker.pid, 0)
        raise KeyError


def test_it_ends_when_the_block_fails(own_brokers: Brokers, tmp_path: Path) -> None:
    pids: list[int] = []
    with pytest.raises(KeyError):
        _fail_while_it_runs(own_brokers, tmp_path, pids)
    with pytest.raises(ProcessLookupError):
        os.kill(pids[0], 0)


def test_a_wrong_setting_is_reported(own_brokers: Brokers, tmp_path: Path) -> None:
    wrong = {"log.segment.bytes": "none"}
    with (
        pytest.raises(RuntimeError, match=r"log\.segment\.bytes"),
        own_brokers(tmp_path, settings=wrong),
    ):
        pass
