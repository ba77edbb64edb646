"""The group log of a real broker, read by Spark on a server: the same tables as without one."""

import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from tests.connect.test_remote_commands import Command, serving
from tests.kafka import commands
from tests.kafka.broker import Brokers
from tests.kafka.churn import churn
from tests.kafka.topics import create_topics

pytestmark = [pytest.mark.broker, pytest.mark.slow, pytest.mark.usefixtures("own_processes")]

_TOPICS = {"served-t": 3, "served-u": 2}
_LINES = 30


def test_the_same_as_without_a_server(own_brokers: Brokers, tmp_path: Path) -> None:
    (tmp_path / "broker").mkdir()
    with (
        serving(tmp_path, "--package", commands.PACKAGE) as command,
        own_brokers(tmp_path / "broker") as broker,
    ):
        address = ("--bootstrap-server", broker.bootstrap_server)
        create_topics(broker.bootstrap_server, _TOPICS)
        follow = ("history", *address, "--follow", "--output", "followed")
        with churn(broker.bootstrap_server, "served", _TOPICS, groups=2):
            lines = _printed_until_interrupted(command, *follow)
        # Had the query gone on, a second one would not have got its checkpoint.
        *rest, total = command.run(*follow, "--available-now").splitlines()
        assert total.startswith(f"{len(rest)} rebalances more")
        command.run("log", *address, "--save", "log")
        command.run("history", *address, "--output", "served", code=1)  # there are storms
        commands.run(
            ["log", *address, "--save", tmp_path / "log-here"],
            ["history", *address, "--output", tmp_path / "here"],
        )
    assert _rows(tmp_path / "log" / "records") == _rows(tmp_path / "log-here" / "records")
    rebalances = _rows(tmp_path / "served" / "rebalances")
    assert rebalances == _rows(tmp_path / "here" / "rebalances")
    followed = _rows(tmp_path / "followed" / "rebalances")
    # What had been written as the interrupt came may not have been printed.
    assert len(followed) >= len(lines) + len(rest) > _LINES
    keys = [(row["group_id"], row["offset"]) for row in followed]
    assert len(keys) == len(set(keys))
    assert set(keys) <= {(row["group_id"], row["offset"]) for row in rebalances}


def _printed_until_interrupted(command: Command, *words: str) -> list[str]:
    """Return the lines that a command prints: so many, and what comes before it has ended."""
    with subprocess.Popen(
        [sys.executable, "-m", "kassign_spark", *words],
        cwd=command.folder,
        env=command.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as running:
        assert running.stdout is not None
        lines = [running.stdout.readline() for _ in range(_LINES)]
        running.send_signal(signal.SIGINT)
        printed, errors = running.communicate(timeout=60)
    assert running.returncode == 130, errors
    assert errors.splitlines()[-1] == (
        "kassign-spark: error: interrupted; followed had been written"
    )
    assert all(lines)
    return lines + printed.splitlines()


def _rows(folder: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = [
        row for part in sorted(folder.rglob("*.parquet")) for row in pq.read_table(part).to_pylist()
    ]
    for row in rows:
        row.pop("batch", None)
    return sorted(rows, key=lambda row: (row["partition"], row["offset"]) if "key" in row else (
        row["group_id"], row["offset"]))  # fmt: skip
