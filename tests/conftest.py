"""One Spark session for the whole run; its JVM also holds the real Kafka client (the oracle)."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.kafka import jars
from tests.kafka.broker import Broker, running_broker

_LOG4J2 = """
rootLogger.level = error
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = %d{HH:mm:ss} %p %c{1}: %m%n%ex
"""


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    # Workers are of this environment, not of the first python3 on the path.
    os.environ["PYSPARK_PYTHON"] = sys.executable
    scratch: Path = tmp_path_factory.mktemp("spark")
    log4j2 = scratch / "log4j2.properties"
    log4j2.write_text(_LOG4J2)
    session = (
        SparkSession.builder.master("local[2]")
        .appName("kassign-spark tests")
        # Small frames: more partitions than cores would only cost time.
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.default.parallelism", "2")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.memory", "2g")
        .config("spark.sql.warehouse.dir", str(scratch / "warehouse"))
        .config("spark.local.dir", str(scratch / "local"))
        .config("spark.driver.extraJavaOptions", f"-Dlog4j2.configurationFile={log4j2.as_uri()}")
        # On the JVM's own class path, not in spark.jars: py4j finds classes of that one only.
        # Alone, without what it depends on: Spark has its own SLF4J, LZ4 and so on.
        .config("spark.driver.extraClassPath", str(jars.clients_jar()))
        .getOrCreate()
    )
    yield session
    session.stop()


@pytest.fixture(autouse=True)
def _no_cached_frames(request: pytest.FixtureRequest) -> Iterator[None]:
    """No test leaves cached frames to the next one."""
    yield
    if "spark" in request.fixturenames:
        request.getfixturevalue("spark").catalog.clearCache()


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """The one real broker of the run; tests that ask for it have the marker ``broker``."""
    with running_broker(tmp_path_factory.mktemp("broker")) as running:
        yield running
