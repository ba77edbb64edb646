"""The group log from files, as a batch and as a stream, and what cannot be read."""

import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from kassign_spark import KassignError
from kassign_spark.log.group_log import read_group_log
from kassign_spark.log.log_schemas import DECODED, RECORDS, UNREAD
from kassign_spark.log.newest import newest_state
from kassign_spark.schemas import TOPICS
from kassign_spark.spark.spark_versions import KAFKA_PACKAGE
from tests.kafka.log_records import Bytes, Record, random_record, versions, write
from tests.log.batches import damaged, decoded, with_messages
from tests.log.expected_rows import recorded_at


@pytest.fixture(scope="module")
def bytes_(spark: SparkSession) -> list[Bytes]:
    rng = random.Random(20)
    types = (0, 1, 2, 3, 4, 5, 6, 7, 8, 11, 16)
    records = [random_record(rng, t, v) for t in types for v in versions(t) for _ in range(4)]
    records += [with_messages(rng, record) for record in records if record.type == 2]
    whole = write(spark, records)
    return [*whole, *(damaged(rng, both) for both in whole), (None, b"x")]


@pytest.fixture(scope="module")
def folder(
    spark: SparkSession, bytes_: list[Bytes], tmp_path_factory: pytest.TempPathFactory
) -> str:
    path = str(tmp_path_factory.mktemp("log") / "records")
    rows = [
        (key, value, "__consumer_offsets", 0, offset, recorded_at(offset))
        for offset, (key, value) in enumerate(bytes_)
    ]
    frame = spark.createDataFrame(rows, RECORDS.columns)
    frame.withColumn("timestampType", F.lit(0)).write.parquet(path)
    return path


def _rows(frame: DataFrame) -> list[str]:
    return sorted(map(str, (row.asDict() for row in frame.collect())))


def _streamed(frame: DataFrame, name: str) -> list[str]:
    spark = frame.sparkSession
    query = frame.writeStream.format("memory").queryName(name).trigger(availableNow=True).start()
    assert query.awaitTermination(120)
    rows = _rows(spark.table(name))
    spark.catalog.dropTempView(name)
    return rows


def test_tables_are_what_the_decoder_gives(
    spark: SparkSession, folder: str, bytes_: list[Bytes]
) -> None:
    log = read_group_log(folder, spark, owned=True)
    expected = decoded(bytes_)
    unread = expected.unread.drop_columns("offset")
    by = ["kind", "version", "reason", "group_id"]
    counted = unread.group_by(by).aggregate([("count", "sum")]).rename_columns([*by, "count"])
    assert _rows(log.unread) == _rows(spark.createDataFrame(counted.to_pylist(), UNREAD.columns))
    for table, arrow in zip(DECODED, expected[:-1], strict=True):
        frame: DataFrame = getattr(log, table.name)
        assert frame.schema.simpleString() == table.columns.simpleString()
        assert _rows(frame) == _rows(spark.createDataFrame(arrow.to_pylist(), table.columns))
    assert log.records.count() == len(bytes_)


def test_a_stream_has_the_same_rows(spark: SparkSession, folder: str) -> None:
    batch = read_group_log(folder, spark)
    stream = read_group_log(folder, spark, stream=True)
    assert _streamed(stream.commits, "streamed_commits") == _rows(batch.commits)
    assert _streamed(stream.log_members, "streamed_members") == _rows(batch.log_members)


def _of_other_tables(spark: SparkSession, path: Path) -> str:
    """A folder as a snapshot is one."""
    _of(spark, path / "members")
    _of(spark, path / "topics")
    return str(path)


def _of_text(_: SparkSession, path: Path) -> str:
    path.mkdir()
    (path / "notes.txt").write_text("no Parquet")
    return str(path)


def _of(spark: SparkSession, path: Path, *columns: str, where: str = "true") -> str:
    row = (
        "SELECT binary('k') key, binary('v') value, 'orders' topic, 0 partition, 0L offset, "
        "timestamp '2026-01-01' timestamp"
    )
    frame = spark.sql(row).where(where)
    frame.select(*(columns or frame.columns)).write.parquet(str(path))
    return str(path)


_BAD: dict[str, tuple[Callable[[SparkSession, Path], Any], str]] = {
    "nothing": (lambda _, path: path, "folder .*: not found"),
    "a snapshot": (
        _of_other_tables,
        "log/?.*: is not a group log: it has neither the table records, which kassign-spark log "
        "writes, nor Parquet files with columns key, value, topic, partition, offset, timestamp$",
    ),
    "text": (_of_text, "group log .*log: is not a group log: it has neither the table records, "),
    "columns": (
        lambda spark, path: _of(spark, path, "key", "value"),
        "table records: column topic .* is missing",
    ),
    "no value": (
        lambda spark, path: _of(spark, path, "key", "topic"),
        r"table records: column value \(binary\) is missing",
    ),
    "empty": (lambda spark, path: _of(spark, path, where="false"), "holds no record"),
    "another": (
        _of,
        "has records of topic orders; the log of the groups is __consumer_offsets",
    ),
    "no cluster": (lambda *_: {}, "kafka.bootstrap.servers is missing"),
    "no package": (
        lambda *_: {"kafka.bootstrap.servers": "localhost:1"},
        f"needs the Spark package {re.escape(KAFKA_PACKAGE)};",
    ),
    "another topic": (
        lambda *_: {"kafka.bootstrap.servers": "localhost:1", "subscribe": "orders"},
        "subscribe must name __consumer_offsets",
    ),
}


@pytest.mark.parametrize("case", _BAD)
def test_what_is_no_log_is_one_line(spark: SparkSession, tmp_path: Path, case: str) -> None:
    write_log, message = _BAD[case]
    with pytest.raises(KassignError, match=message) as raised:
        read_group_log(write_log(spark, tmp_path / "log"), spark)
    assert "\n" not in str(raised.value)


def test_a_stream_of_another_topic_is_one_line(spark: SparkSession, tmp_path: Path) -> None:
    path = _of(spark, tmp_path / "log")
    with pytest.raises(KassignError, match="has records of topic orders"):
        read_group_log(path, spark, stream=True)


def _record(group: str, generation: int, *members: str, protocol_type: str = "consumer") -> Record:
    return Record(
        2,
        {"group": group},
        3,
        {
            "protocolType": protocol_type,
            "generation": generation,
            "protocol": "range" if members else None,
            "leader": members[0] if members else None,
            "currentStateTimestamp": 1_700_000_000_000,
            "members": [
                {
                    "memberId": member,
                    "groupInstanceId": None,
                    "clientId": "c",
                    "clientHost": "/h",
                    "rebalanceTimeout": 1000,
                    "sessionTimeout": 1000,
                    "subscription": "AAAAAAABAAFhAAAAAA==" if member != "broken" else "AAAAAA==",
                    "assignment": "AAAAAAABAAFhAAAAAQAAAAAAAAAA",
                }
                for member in members
            ],
        },
    )  # fmt: skip


def test_the_newest_state_is_the_last_record_of_each_group(spark: SparkSession) -> None:
    records = [
        _record("moved", 1, "m1", "m2"),
        _record("moved", 2, "m2", "m3", "m1"),
        _record("empty", 1, "m1"),
        _record("empty", 2),
        _record("gone", 1, "m1"),
        Record(2, {"group": "gone"}),
        _record("broken", 1, "m1", "broken"),
        _record("connect", 1, "m1", protocol_type="connect"),
    ]
    rows = [
        (key, value, "__consumer_offsets", 0, offset, recorded_at(offset))
        for offset, (key, value) in enumerate(write(spark, records))
    ]
    topics = spark.createDataFrame([("east", "a", 1, None, None)], TOPICS.columns)
    state = newest_state(spark.createDataFrame(rows, RECORDS.columns), topics)
    assert [row.asDict() for row in state.omitted.orderBy("group_id").collect()] == [
        {"group_id": "broken", "reason": "member broken: its bytes cannot be decoded"},
        {"group_id": "connect", "reason": "protocol type connect, not consumer"},
        {"group_id": "empty", "reason": "no members"},
    ]
    members = state.snapshot.members.orderBy("member_seq").collect()
    assert [member.member_id for member in members] == ["m2", "m3", "m1"]
    assert [member.member_seq for member in members] == [0, 1, 2]
    (member, *_) = members
    assert (member.cluster_id, member.topics, member.generation) == ("east", ["a"], 2)
    assert (member.assignor, member.client_id) == ("range", "c")
    assert [m.is_leader for m in members] == [True, False, False]
    assert {bytes(m.subscription) for m in members} == {bytes.fromhex("00000000000100016100000000")}
    assert state.snapshot.owned is not None
    owned = sorted(state.snapshot.owned.collect())
    assert owned == [Row("east", "moved", member, "a", 0) for member in ("m1", "m2", "m3")]
