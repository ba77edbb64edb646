"""What commands begin ahead works in this version of Spark; where it fails, nothing is said."""

from typing import Any

import pytest
from pyspark.sql import SparkSession

from kassign_spark import ahead


def test_what_is_loaded_ahead_is_there_in_this_spark(spark: SparkSession) -> None:
    """Elsewhere a class that has moved is passed over, so this alone tells of it."""
    jvm: Any = spark.sparkContext._jvm
    ahead._load_classes(jvm)


def test_a_worker_is_started_ahead(spark: SparkSession) -> None:
    ahead._start_worker(spark)


def test_what_fails_ahead_is_told_by_no_one(capsys: pytest.CaptureFixture[str]) -> None:
    class Gateway:
        jvm = None

    ahead.load_classes(Gateway()).join()
    assert capsys.readouterr() == ("", "")
