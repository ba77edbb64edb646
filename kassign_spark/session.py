"""The Spark session of the console command; under ``spark-submit`` it is spark-submit's own."""

import os
import sys
from importlib.resources import files

from pyspark.sql import SparkSession

LOCAL_DEFAULTS = {
    "spark.master": "local[*]",
    "spark.driver.memory": "4g",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": str(2 * (os.cpu_count() or 1)),
    "spark.sql.objectHashAggregate.sortBased.fallbackThreshold": "100000",
    "spark.cleaner.periodicGC.interval": "5min",
}
"""What conf/spark-local.conf explains, setting by setting."""


def open_session(*, verbose: bool = False) -> SparkSession:
    """Open the session that a command works with.

    Under ``spark-submit`` master, memory and all else come from its own options; otherwise the
    session is local, with ``LOCAL_DEFAULTS``, quiet unless ``verbose``, and with Spark's progress
    bar when a person is watching.
    """
    builder = SparkSession.Builder().appName("kassign-spark")
    if "PYSPARK_GATEWAY_PORT" in os.environ:
        return builder.getOrCreate()
    for name, value in LOCAL_DEFAULTS.items():
        builder = builder.config(name, value)
    builder = builder.config("spark.ui.showConsoleProgress", str(sys.stderr.isatty()).lower())
    if not verbose:
        log4j2 = files("kassign_spark").joinpath("log4j2.properties")
        builder = builder.config(
            "spark.driver.extraJavaOptions", f"-Dlog4j2.configurationFile={log4j2}"
        )
    return builder.getOrCreate()
