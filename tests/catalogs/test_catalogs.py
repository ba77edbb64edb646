"""The same in catalogs of their own: Iceberg's and Delta Lake's, whose jars come from Maven.

In a process of its own each: extensions are a session's from its start.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark import __version__ as pyspark_version

from tests.docs.reader import ROOT
from tests.kafka.jars import class_path

_SECONDS = 900
_SPARK = "4.1"
_CATALOGS = {
    "iceberg": (
        f"org.apache.iceberg:iceberg-spark-runtime-{_SPARK}_2.13:1.12.0",
        {
            "spark.sql.extensions": (
                "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
            ),
            "spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog",
            "spark.sql.catalog.lake.type": "hadoop",
            "spark.sql.catalog.lake.warehouse": "{scratch}/lake",
        },
        "table:lake.`our kafka`",
    ),
    "delta": (
        f"io.delta:delta-spark_{_SPARK}_2.13:4.4.0",
        {
            "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
            "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
            "spark.sql.sources.default": "delta",
            "spark.databricks.delta.snapshotPartitions": "1",  # of a log of a few lines
        },
        "table:spark_catalog.kafka",
    ),
}


@pytest.mark.slow
@pytest.mark.usefixtures("own_processes")
@pytest.mark.parametrize(
    ("kind", "session"), [("iceberg", "classic"), ("iceberg", "connect"), ("delta", "classic")]
)
def test_tables_of_a_catalog(kind: str, session: str, tmp_path: Path) -> None:
    coordinate, settings, place = _CATALOGS[kind]
    if not pyspark_version.startswith(f"{_SPARK}."):
        pytest.skip(f"{coordinate} is for Spark {_SPARK}, and this is {pyspark_version}")
    configuration = {name: value.format(scratch=tmp_path) for name, value in settings.items()}
    configuration["spark.jars"] = ",".join(map(str, class_path((coordinate,))))
    arguments = [f"{name}={value}" for name, value in configuration.items()]
    ran = subprocess.run(
        [sys.executable, "-m", "tests.catalogs.ask", session, str(tmp_path), place, *arguments],
        cwd=ROOT,
        env=os.environ | {"PYSPARK_PYTHON": sys.executable, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=_SECONDS,
    )
    assert ran.returncode == 0, ran.stdout[-3000:] + ran.stderr[-3000:]
    assert ran.stdout.splitlines()[-1] == f"{kind} all done"
