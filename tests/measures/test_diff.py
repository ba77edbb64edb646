"""Diff, many cases in one frame, a group each."""

import pytest
from chispa import assert_df_equality
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from kassign_spark.errors import SchemaError
from kassign_spark.plans.diff import diff
from tests import builders
from tests.builders import owner_rows

_COLUMNS = "group_id string, topic string, partition int, from_member string, to_member string"

# group: before, after, (topic, partition, from, to, change)
_CASES = {
    "kept": ("C0: t0p0", "C0: t0p0", [("t0", 0, "C0", "C0", "kept")]),
    "moved": ("C0: t0p0", "C1: t0p0", [("t0", 0, "C0", "C1", "moved")]),
    "new": ("", "C0: t0p0", [("t0", 0, None, "C0", "new")]),
    "dropped": ("C0: t0p0", "", [("t0", 0, "C0", None, "dropped")]),
    "swapped": (
        "C0: t0p0; C1: t0p1",
        "C1: t0p0; C0: t0p1",
        [("t0", 0, "C0", "C1", "moved"), ("t0", 1, "C1", "C0", "moved")],
    ),
    "same partition of other topics": (
        "C0: t0p0",
        "C0: t1p0",
        [("t0", 0, "C0", None, "dropped"), ("t1", 0, None, "C0", "new")],
    ),
    "disputed and kept": ("C0: t0p0; C1: t0p0", "C1: t0p0", [("t0", 0, "C1", "C1", "kept")]),
    "disputed and moved": ("C1: t0p0; C0: t0p0", "C2: t0p0", [("t0", 0, "C0", "C2", "moved")]),
    "claimed twice by one": ("C0: t0p0 t0p0", "C0: t0p0", [("t0", 0, "C0", "C0", "kept")]),
}


@pytest.fixture(scope="module")
def frames(spark: SparkSession) -> tuple[DataFrame, DataFrame]:
    before = [owner_rows(case[0], group) for group, case in _CASES.items()]
    after = [owner_rows(case[1], group) for group, case in _CASES.items()]
    return builders.assignment(spark, *before), builders.assignment(spark, *after)


def _expected(spark: SparkSession) -> DataFrame:
    rows = [(group, *row) for group, (_, _, changes) in _CASES.items() for row in changes]
    return spark.createDataFrame(rows, f"{_COLUMNS}, change string")


def test_each_change(spark: SparkSession, frames: tuple[DataFrame, DataFrame]) -> None:
    assert_df_equality(diff(*frames), _expected(spark), ignore_row_order=True, ignore_nullable=True)


def test_clusters_do_not_mix(spark: SparkSession) -> None:
    before = builders.assignment(spark, owner_rows("C0: t0p0", "g", cluster_id="east"))
    after = builders.assignment(spark, owner_rows("C0: t0p0", "g", cluster_id="west"))
    expected = spark.createDataFrame(
        [
            ("east", "g", "t0", 0, "C0", None, "dropped"),
            ("west", "g", "t0", 0, None, "C0", "new"),
        ],
        f"cluster_id string, {_COLUMNS}, change string",
    )
    assert_df_equality(diff(before, after), expected, ignore_row_order=True, ignore_nullable=True)


def test_cluster_id_on_one_side_only(frames: tuple[DataFrame, DataFrame]) -> None:
    before, after = frames
    with pytest.raises(SchemaError, match="column cluster_id"):
        diff(before, after.withColumn("cluster_id", F.lit("east")))
