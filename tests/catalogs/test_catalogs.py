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
_CATALOGS = {
    "iceberg": (
        "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0",
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
        "io.delta:delta-spark_4.1_2.13:4.4.0",
        {
            "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
            "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
            "spark.sql.sources.default": "delta",
        },
        "table:spark_catalog.kafka",
    ),
}


@pytest.mark.slow
@pytest.mark.usefixtures("own_processes")
@pytest.mark.parametrize("kind", _CATALOGS)
@pytest.mark.parametrize("session", ["classic", "connect"])
def test_tables_of_a_catalog(kind: str, session: str, tmp_path: Path) -> None:
    coordinate, settings, place = _CATALOGS[kind]
    wanted = coordinate.split(":")[1].split("_")[0].rsplit("-", 1)[-1]
    if not pyspark_version.startswith(f"{'4.1' if wanted == 'spark' else wanted}."):
        pytest.skip(f"{coordinate} is for another Spark than {pyspark_version}")
    given = {name: value.format(scratch=tmp_path) for name, value in settings.items()}
    given["spark.jars"] = ",".join(map(str, class_path((coordinate,))))
    arguments = [f"{name}={value}" for name, value in given.items()]
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
