"""Ask what holds of tables of a catalog, in a session of its own.

python -m tests.catalogs.ask classic|connect SCRATCH PLACE SETTING=VALUE ...
"""

import sys
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from kassign_spark import read_snapshot
from tests import catalog_runs
from tests.docs.reader import ROOT
from tests.java import SHORT_LIVED
from tests.spark_session import QUICK_WORKERS, UNCOMPILED


def _session(kind: str, scratch: str, settings: dict[str, str]) -> SparkSession:
    builder: Any = SparkSession.builder
    builder = builder.remote("local[2]") if kind == "connect" else builder.master("local[2]")
    fixed = {
        "spark.sql.shuffle.partitions": "2",
        "spark.ui.enabled": "false",
        "spark.driver.extraJavaOptions": SHORT_LIVED,
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.sql.warehouse.dir": f"{scratch}/warehouse",
        "spark.local.dir": scratch,
    }
    for name, value in (UNCOMPILED | QUICK_WORKERS | fixed | settings).items():
        builder = builder.config(name, value)
    session: SparkSession = builder.getOrCreate()
    return session


def main(kind: str, scratch: str, place: str, *settings: str) -> None:
    """Ask in a schema a question."""
    spark = _session(kind, scratch, dict(setting.split("=", 1) for setting in settings))
    fleet = read_snapshot(ROOT / "examples" / "fleet", spark)
    schema = place.removeprefix("table:")
    try:
        spark.sql(f"CREATE SCHEMA {schema}")
        catalog_runs.snapshots_over_time(spark, place, fleet)
        if kind == "classic":
            catalog_runs.plans_of_runs(spark, place, catalog_runs.in_process)
            together = f"{schema.split('.')[0]}.together"
            spark.sql(f"CREATE SCHEMA {together}")
            catalog_runs.two_writers_at_once(spark, f"table:{together}", fleet)
        failing = f"{schema.split('.')[0]}.failing"
        spark.sql(f"CREATE SCHEMA {failing}")
        catalog_runs.unfinished_runs_are_not_read(spark, f"table:{failing}", fleet)
        left = spark.table(f"{failing}.members").select("run_id").distinct().count()
        assert left == 1, f"{left} runs: what a failed one has left is there"
        provider = spark.sql(f"DESCRIBE EXTENDED {schema}.members").where("col_name = 'Provider'")
        (row,) = provider.collect()
        print(f"{row.data_type} all done")
    finally:
        spark.stop()


if __name__ == "__main__":
    assert Path(sys.argv[2]).is_dir()
    main(*sys.argv[1:])
