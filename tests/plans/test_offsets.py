"""Weights from offsets of one moment or two."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from kassign_spark import partition_weights
from kassign_spark.errors import InputError, SettingsError
from kassign_spark.schemas import OFFSETS
from tests import builders

NOW = datetime(2026, 3, 1, 12, 0, 0)


def offsets(spark: SparkSession, rows: list[tuple[Any, ...]], at: datetime) -> DataFrame:
    names = ("group_id", "topic", "partition", "begin_offset", "end_offset", "committed_offset")
    offset_rows = [{**dict(zip(names, row, strict=True)), "as_of": at} for row in rows]
    return builders.table(spark, OFFSETS, offset_rows)


def test_lag_and_rate_in_one_unit(spark: SparkSession) -> None:
    before = offsets(
        spark,
        [
            (None, "t", 0, 0, 1_000, None),
            (None, "t", 1, 0, 5_000, None),
            (None, "u", 0, 0, 9, None),
        ],
        NOW - timedelta(seconds=600),
    )
    now = offsets(
        spark,
        [
            ("g", "t", 0, 0, 7_000, 3_400),
            ("g", "t", 1, 100, 700, None),
            ("g", "u", 0, 0, 9, 12),
            ("g", "v", 0, 0, 50, 50),
            # Retention has overtaken the commit: 360 records are there to be read.
            ("g", "w", 0, 640, 1_000, 100),
            (None, "t", 0, 0, 7_000, None),
        ],
        NOW,
    )
    result = {
        (r.group_id, r.topic, r.partition): (r.weight, r.lag, r.rate, r.note)
        for r in partition_weights(now, before, horizon="2h").collect()
    }
    assert result == {
        ("g", "t", 0): (10.5, 3_600, 10.0, None),
        ("g", "t", 1): (1.0, 0, 1.0, "recreated"),
        ("g", "u", 0): (0.0, 0, 0.0, "lag_negative"),
        ("g", "v", 0): (0.0, 0, None, "no_earlier_offsets"),
        ("g", "w", 0): (0.05, 360, None, "no_earlier_offsets"),
        (None, "t", 0): (10.0, None, 10.0, None),
    }
    alone = partition_weights(now, auto_offset_reset="earliest").where("topic = 't'")
    lags = {(r.group_id, r.partition): (r.lag, r.rate) for r in alone.collect()}
    assert lags == {("g", 0): (3_600, None), ("g", 1): (600, None), (None, 0): (None, None)}


def test_bad_offsets_are_one_line(spark: SparkSession) -> None:
    now = offsets(spark, [("g", "t", 0, 0, -4, None), ("g", "t", 1, 0, 4, None)], NOW)
    with pytest.raises(InputError) as raised:
        partition_weights(now, now, auto_offset_reset="none")
    text = str(raised.value)
    assert 'end_offset: -4 (at group_id="g" topic="t" partition=0)' in text
    assert "must be later than that of the offsets before" in text
    assert "auto_offset_reset is none" in text
    with pytest.raises(SettingsError, match="horizon '5 parsecs'"):
        partition_weights(now, horizon="5 parsecs")
