"""The Spark session of the tests, whose JVM also holds the real Kafka client."""

import os
import sys
from pathlib import Path

from pyspark.sql import SparkSession

from tests.kafka import jars

_LOG4J2 = """
rootLogger.level = error
rootLogger.appenderRef.stderr.ref = stderr
# The assignors under test call disputed claims errors; here they are made on purpose.
logger.kafka.name = org.apache.kafka
logger.kafka.level = off
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = %d{HH:mm:ss} %p %c{1}: %m%n%ex
"""


_FEW_TASKS = {"spark.sql.shuffle.partitions": "2", "spark.default.parallelism": "2"}
"""Small frames: more partitions than cores would only cost time."""

UNCOMPILED = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
"""To compile code for a few rows takes longer than to do without."""

QUICK_WORKERS = {"spark.python.daemon.module": "tests.quick_daemon"}
"""Of workers that find this checkout."""


def start_session(
    scratch: Path,
    memory: str = "2g",
    java_options: str = "",
    *,
    master: str = "local[2]",
    settings: dict[str, str] | None = None,
    plain: bool = False,
) -> SparkSession:
    """A small quiet session on loopback that leaves nothing outside ``scratch``.

    Executors of another ``master`` have one core and as much memory as the driver. A ``plain`` one
    has as many tasks as Spark gives to who sets nothing.
    """
    # Workers are of this environment, not of the first python3 on the path.
    os.environ["PYSPARK_PYTHON"] = sys.executable
    log4j2 = scratch / "log4j2.properties"
    log4j2.write_text(_LOG4J2)
    return (
        SparkSession.builder.master(master)
        .appName("kassign-spark tests")
        .config(map={} if plain else _FEW_TASKS)
        .config(map=settings or {})
        .config("spark.ui.enabled", "false")
        # More than any test counts; all are listed, an element at a time, to count the last.
        .config("spark.ui.retainedJobs", "2000")
        .config("spark.ui.retainedStages", "10000")
        .config("spark.sql.ui.retainedExecutions", "2000")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.memory", memory)
        .config("spark.executor.memory", memory)
        .config("spark.executor.cores", "1")
        .config("spark.sql.warehouse.dir", str(scratch / "warehouse"))
        .config("spark.local.dir", str(scratch / "local"))
        .config(
            "spark.driver.extraJavaOptions",
            f"-Dlog4j2.configurationFile={log4j2.as_uri()} {java_options}",
        )
        # On the JVM's own class path, not in spark.jars: py4j finds classes of that one only.
        # Alone, without what it depends on: Spark has its own SLF4J, LZ4 and so on.
        .config(
            "spark.driver.extraClassPath",
            os.pathsep.join(
                str(jar)
                for jar in [
                    jars.clients_jar(),
                    *jars.coordinator_jars(),
                    *jars.graphframes_jars(),
                ]
            ),
        )
        .getOrCreate()
    )
