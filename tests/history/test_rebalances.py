"""``rebalances`` in Spark: a batch in one job, and a stream that is stopped and goes on."""

import os
from collections.abc import Iterable
from datetime import UTC
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from kassign_spark.history import whole_groups as module
from kassign_spark.history.rebalance_columns import REBALANCES
from kassign_spark.history.rebalances import rebalances
from kassign_spark.log.log_schemas import RECORDS
from tests.history import plain
from tests.history.random_logs import random_log
from tests.history.raw import records
from tests.query_counter import counting

_MADE = random_log(3, groups=8, new=False)
_RAW = records(_MADE)
_EXPECTED = plain.read(_MADE)
_FILES = 5

Row = dict[str, Any]


def _frame(spark: SparkSession, rows: Iterable[Any]) -> DataFrame:
    return spark.createDataFrame(list(rows), RECORDS.columns)


def _rows(frame: DataFrame) -> list[Row]:
    result = frame.orderBy("group_id", "offset").collect()
    rows = [{name: row[name] for name in _EXPECTED[0]} for row in result]
    return [row | {"at": row["at"].astimezone(UTC)} for row in rows]


def test_a_batch_is_one_job(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    # So little at once that tasks read their groups one after the other.
    monkeypatch.setattr(module, "_MOST_BYTES", 20_000)
    raw = _frame(spark, sorted(_RAW, key=hash)).repartition(3).localCheckpoint()
    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", 50)
    try:
        with counting(spark) as counted:
            generations = rebalances(raw).collect()
        assert counted.jobs <= 2  # with adaptive execution the shuffle is a job of its own
        assert rebalances(raw).schema.names == REBALANCES.columns.names
        result = _rows(spark.createDataFrame(generations, REBALANCES.columns))
    finally:
        spark.conf.unset("spark.sql.execution.arrow.maxRecordsPerBatch")
    assert result == _EXPECTED


@pytest.mark.slow
def test_a_stream_tells_the_same_once_though_it_is_stopped(
    spark: SparkSession, tmp_path: Path
) -> None:
    cuts = [number * len(_RAW) // _FILES for number in range(_FILES + 1)]
    for number in range(3):
        _write(spark, tmp_path, number, _RAW[cuts[number] : cuts[number + 1]])
    _run(spark, tmp_path)
    some = _rows(spark.read.parquet(str(tmp_path / "told")))
    for number in range(3, _FILES):
        _write(spark, tmp_path, number, _RAW[cuts[number] : cuts[number + 1]])
    _run(spark, tmp_path)
    _run(spark, tmp_path)
    generations = _rows(spark.read.parquet(str(tmp_path / "told")))
    assert 0 < len(some) < len(generations)
    waiting = [row for row in _EXPECTED if row not in generations]
    assert generations == [row for row in _EXPECTED if row not in waiting]
    # A generation waits only while it is the last of its group.
    last = {row["group_id"]: row for row in _EXPECTED}
    assert all(row == last[row["group_id"]] for row in waiting)


def _write(spark: SparkSession, folder: Path, number: int, rows: list[Any]) -> None:
    """One file, which the stream is to read after those with lower numbers."""
    part = folder / f"part-{number}"
    _frame(spark, rows).coalesce(1).write.parquet(str(part))
    (file,) = part.glob("*.parquet")
    (folder / "log").mkdir(exist_ok=True)
    os.utime(file, (1_800_000_000 + number, 1_800_000_000 + number))
    file.rename(folder / "log" / f"{number}.parquet")


def _run(spark: SparkSession, folder: Path) -> None:
    """Read what is there, a file in each batch, and stop."""
    log = (
        spark.readStream.schema(RECORDS.columns)
        .option("maxFilesPerTrigger", 1)
        .parquet(str(folder / "log"))
    )
    query = (
        rebalances(log)
        .writeStream.format("parquet")
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)
        .start(str(folder / "told"))
    )
    query.awaitTermination()
