"""Public functions give the same rows behind Spark Connect as in a session of this process."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from kafka.partitioner.default import murmur2 as kafka_python_murmur2
from pyspark.sql import SparkSession

from kassign_spark import read_snapshot
from kassign_spark.producer.murmur2 import murmur2_of
from tests.around.test_murmur2 import VECTORS
from tests.benchmarks.queries import CALLS, ExampleTables, read_example_tables
from tests.connect.answers import FURTHER, REFUSAL, answers
from tests.docs.reader import ROOT
from tests.docs.results import columns
from tests.public import FUNCTIONS

_SECONDS = 1200
_NOT_ASKED = {
    "load_settings",  # no frame
    "coordinator_partition",  # plain columns, as coordinators has them
    "parse_sweep",  # no frame
    "partition_for_key",  # columns, as place_records has them
    "partition_traffic",  # within member_traffic
    "write_snapshot",  # see below
}


@pytest.mark.slow
def test_spark_connect_gives_the_same_rows(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "given"
    folder.mkdir()
    read_example_tables(spark, folder)
    expected = answers(spark, folder)
    asked = subprocess.run(
        [sys.executable, "-m", "tests.connect.answers", str(folder), str(tmp_path / "found")],
        env=os.environ | {"PYSPARK_PYTHON": sys.executable, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=_SECONDS,
    )
    assert asked.returncode == 0, asked.stderr[-3000:]
    result = json.loads((tmp_path / "found").read_text())
    refusal = result.pop(REFUSAL)
    assert [name for name in expected if expected[name] != result.get(name)] == []
    assert len(result) == len(expected)
    assert len(refusal) == 1
    assert "exists, and Spark Connect cannot remove what is there" in refusal[0]
    original = read_snapshot(ROOT / "examples" / "fleet", spark).tables()
    written = read_snapshot(tmp_path / "found-snapshot", spark).tables()
    assert {name: sorted(map(str, frame.collect())) for name, frame in written.items()} == {
        name: sorted(map(str, frame.collect())) for name, frame in original.items()
    }


@pytest.mark.slow
def test_results_have_the_columns_that_are_declared(spark: SparkSession, tmp_path: Path) -> None:
    read_example_tables(spark, tmp_path)
    example = ExampleTables(
        *(spark.read.parquet(f"{tmp_path}/{name}") for name in ExampleTables._fields)
    )
    declared = columns()
    wrong = []
    for name, call in (CALLS | FURTHER).items():
        function = name.split()[0]
        if function in {"place_records", "read_snapshot"}:  # whose columns are as given
            continue
        parts = [dict(of) for key, of in declared.items() if key.partition(".")[0] == function]
        for frame in call(example):
            of = {field.name: field.dataType.simpleString() for field in frame.schema}
            if of not in [{k: v for k, v in part.items() if k != "cluster_id"} for part in parts]:
                wrong.append(name)
    assert wrong == []


def test_no_public_function_is_left_out() -> None:
    functions = set(FUNCTIONS)
    asked = {name.split()[0] for name in (*CALLS, *FURTHER)}
    assert functions - asked - _NOT_ASKED == set()


def test_keys_hashed_without_java() -> None:
    keys = [None, *VECTORS, *(bytes([255]) * length for length in range(40)), None]
    array = pa.array(keys, pa.binary())
    expected = [None if key is None else kafka_python_murmur2(key) % 2**32 for key in keys]
    assert murmur2_of(array).to_pylist() == expected
    assert murmur2_of(array.slice(3, 20)).to_pylist() == expected[3:23]
    assert murmur2_of(array.slice(0, 0)).to_pylist() == []
