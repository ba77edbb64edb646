"""``history`` straight from a real broker's topic, as a batch and as a stream that is killed."""

import contextlib
import os
import signal
import subprocess
import threading
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from kassign_spark import cli
from kassign_spark.history.explained_generations import AS_ASSIGNED
from tests.kafka import commands
from tests.kafka.broker import Brokers
from tests.kafka.churn import churn
from tests.kafka.secured import SecuredBroker
from tests.kafka.topics import create_topics

pytestmark = pytest.mark.broker

_TOPICS = {"follow-t": 3, "follow-u": 2}
_MINE = "follow-"
_LINES = 40
_SECONDS = 150
"""In which a run tells so many lines, or is killed for it."""

Row = dict[str, Any]


@pytest.mark.slow
def test_a_killed_stream_loses_and_repeats_nothing(
    spark: SparkSession, broker: SecuredBroker, tmp_path: Path
) -> None:
    address = ("--bootstrap-server", broker.bootstrap_server)
    create_topics(broker.bootstrap_server, _TOPICS)
    follow = ("history", *address, "--follow", "--output", tmp_path / "out")
    with churn(broker.bootstrap_server, "follow", _TOPICS):
        printed = [_printed_until_killed(commands.command(*follow)) for _ in range(2)]
    rest = commands.outcome(*follow, "--available-now")
    assert rest.returncode == 0, rest.stderr
    commands.run(
        ["history", *address, "--explain", "--output", tmp_path / "batch"],
        ["log", *address, "--save", tmp_path / "log"],
    )
    assert cli.main(["history", "--log", str(tmp_path / "log"),
                     "--output", str(tmp_path / "logged")]) in (0, 1)  # fmt: skip

    batch, logged = _rows(tmp_path / "batch"), _rows(tmp_path / "logged")
    assert logged == batch
    rows = _rows(tmp_path / "out")
    places = [(row["group_id"], row["offset"]) for row in rows]
    assert len(places) == len(set(places))
    # What waits is the last of each group at most: something might still change it.
    last = {row["group_id"]: row["offset"] for row in batch}
    waits = [row for row in batch if (row["group_id"], row["offset"]) not in set(places)]
    assert all(row["offset"] == last[row["group_id"]] for row in waits)
    assert rows == [row for row in batch if row not in waits]
    assert len(last) == 6
    assert len(rows) > 4 * _LINES
    # Each of the runs told something, and none all of it.
    assert all(len(lines) >= _LINES for lines in printed)
    assert sum(map(len, printed)) < len(rows)
    _check_explained(tmp_path / "batch", rows)


@pytest.mark.slow
def test_a_cluster_without_groups_is_one_line(own_brokers: Brokers, tmp_path: Path) -> None:
    (tmp_path / "broker").mkdir()
    with own_brokers(tmp_path / "broker") as broker:
        refused = commands.outcome("history", "--bootstrap-server", broker.bootstrap_server)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert refused.stderr.splitlines()[-1] == (
        "kassign-spark: error: topic __consumer_offsets: holds no record: no group has ever "
        "committed"
    )
    assert refused.stderr.count("error") == 1


def _check_explained(folder: Path, rows: list[Row]) -> None:
    """Those of one member, which has all: with the cluster's own topics nothing is supposed."""
    explained = [
        row
        for row in pq.read_table(folder / "explained").to_pylist()
        if row["group_id"].startswith(_MINE)
    ]
    assert len(explained) > sum("classic" in row["group_id"] for row in rows) / 2
    assert {(row["is_explained"], row["explained_by"]) for row in explained} == {(True, "range")}
    assert not any(AS_ASSIGNED in (row["detail"] or "") for row in explained)


def _printed_until_killed(line: list[str]) -> list[str]:
    """Kill a command with all that it started, while it works; what it had said of mine."""
    printed: list[str] = []
    process = subprocess.Popen(
        line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    enough = threading.Timer(_SECONDS, os.killpg, (process.pid, signal.SIGKILL))
    enough.start()
    try:
        assert process.stdout is not None
        for printed_line in process.stdout:
            printed += [printed_line] if f" {_MINE}" in printed_line else []
            if len(printed) >= _LINES:
                break
    finally:
        enough.cancel()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        _, errors = process.communicate()
    assert len(printed) >= _LINES, errors
    return printed


def _rows(folder: Path) -> list[Row]:
    """Rows of the groups of this test."""
    table: pa.Table = pq.read_table(folder / "rebalances")
    order = [("group_id", "ascending"), ("offset", "ascending")]
    rows: list[Row] = (
        table.select([n for n in table.column_names if n != "batch"]).sort_by(order).to_pylist()
    )
    return [row for row in rows if row["group_id"].startswith(_MINE)]
