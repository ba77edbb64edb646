"""The general pass in rounds over a DataFrame gives what it gives inside one process."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.benchmarks.engine import SHAPES
from tests.benchmarks.rounds import checksum, settle_edges, write_edges


@pytest.mark.slow
def test_ten_million_edges(spark: SparkSession, tmp_path: Path) -> None:
    here = write_edges(tmp_path / "edges.parquet", SHAPES["1e7"], "join")
    rounds, settled = settle_edges(spark, tmp_path / "edges.parquet")
    assert here is not None
    assert checksum(settled) == here.checksum
    # As many as of a tenth or a hundredth of the edges.
    assert sum(map(len, rounds.seconds.values())) < 60
