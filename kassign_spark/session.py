"""The Spark session of the console command; under ``spark-submit`` it is spark-submit's own."""

import os
import re
import shutil
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkRuntimeError
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from kassign_spark.errors import KassignError

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

_JAVA_NEEDED = 17
_INSTALL_JAVA = (
    f"install Java {_JAVA_NEEDED} or later "
    f"(Debian and Ubuntu: apt-get install openjdk-{_JAVA_NEEDED}-jre-headless) or set JAVA_HOME"
)


@contextmanager
def open_session(*, verbose: bool = False) -> Iterator[SparkSession]:
    """Open the session that a command works with, and stop it at the end.

    A session that is already there is used and left as it is. Under ``spark-submit`` master, memory
    and all else come from its own options; otherwise the session is local, with
    ``LOCAL_DEFAULTS``, quiet unless ``verbose``, and with Spark's progress bar when a person is
    watching.

    Raises:
        KassignError: Java is missing or does not start.
    """
    active = SparkSession.getActiveSession()
    if active is not None:
        yield active
        return
    submitted = "PYSPARK_GATEWAY_PORT" in os.environ
    if not submitted:
        # Python workers are of this environment, not of the first python3 on the path.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        # From a zip the file comes out for as long as Java needs to read it.
        with as_file(files("kassign_spark").joinpath("log4j2.properties")) as log4j2:
            _start_java(_local_conf(None if verbose else log4j2), verbose)
    session = SparkSession.Builder().appName("kassign-spark").getOrCreate()
    _cancel_jobs_on_interrupt(session.sparkContext)
    _delete_checkpoints_at_exit(session.sparkContext)
    try:
        yield session
    finally:
        session.stop()


def _cancel_jobs_on_interrupt(context: SparkContext) -> None:
    """Take the place of PySpark's handler, which calls Java on a connection that is in use.

    SIGTERM, which Python has no handler for, is an interrupt too: what was begun is tidied up.
    """
    if threading.current_thread() is not threading.main_thread():
        return

    def cancel() -> None:
        with suppress(Py4JError):  # already stopping
            context.cancelAllJobs()

    def interrupt(signal_number: int, frame: object) -> None:
        threading.Thread(target=cancel, daemon=True).start()
        raise KeyboardInterrupt(signal_number)

    signal.signal(signal.SIGINT, interrupt)
    signal.signal(signal.SIGTERM, interrupt)


def _delete_checkpoints_at_exit(context: SparkContext) -> None:
    """Spark keeps them for ever: a folder of its own in ``spark.checkpoint.dir`` for each run."""
    folder = context.getCheckpointDir()
    if folder is not None:
        jvm: Any = context._jvm
        path = jvm.org.apache.hadoop.fs.Path(folder)
        path.getFileSystem(context._jsc.hadoopConfiguration()).deleteOnExit(path)


def _local_conf(log4j2: Path | None) -> SparkConf:
    conf = SparkConf(loadDefaults=False).setAppName("kassign-spark")
    conf.setAll(list(LOCAL_DEFAULTS.items()))
    conf.set("spark.ui.showConsoleProgress", str(sys.stderr.isatty()).lower())
    if log4j2 is not None:
        conf.set("spark.driver.extraJavaOptions", f"-Dlog4j2.configurationFile={log4j2.as_uri()}")
    return conf


def _start_java(conf: SparkConf, verbose: bool) -> None:
    """Start Spark's JVM with its error stream under control, and Spark in it."""
    _check_java()
    if verbose:
        SparkContext(conf=conf, gateway=_launch(conf))
        return
    reading, writing = os.pipe()
    starting: list[bytes] = []
    started = threading.Event()
    relay = threading.Thread(target=_relay, args=(reading, starting, started), daemon=True)
    relay.start()
    try:
        gateway = _launch(conf, popen_kwargs={"stderr": writing})
    except PySparkRuntimeError:
        os.close(writing)
        relay.join(timeout=5)
        said = b"".join(starting).decode(errors="replace").splitlines()
        reason = next((line for line in said if "incubator" not in line), "it gave no reason")
        raise KassignError(f"Java did not start: {reason}; {_INSTALL_JAVA}") from None
    os.close(writing)
    started.set()
    SparkContext(conf=conf, gateway=gateway)


def _launch(conf: SparkConf, **options: Any) -> Any:
    return launch_gateway(conf, **options)  # type: ignore[no-untyped-call]


def _relay(reading: int, starting: list[bytes], started: threading.Event) -> None:
    """Keep what the JVM says while it starts, for an error; then pass on its progress bar."""
    with suppress(OSError):
        while chunk := os.read(reading, 65536):
            if started.is_set():
                os.write(sys.stderr.fileno(), chunk)
            else:
                starting.append(chunk)


def _check_java() -> None:
    """Refuse a missing or old Java by what lies on the disk, before a shell script complains.

    Raises:
        KassignError: it says what to install.
    """
    home = os.environ.get("JAVA_HOME")
    java = shutil.which("java", path=f"{home}/bin") if home else shutil.which("java")
    if java is None:
        where = f"in JAVA_HOME ({home})" if home else "on the PATH"
        raise KassignError(f"Java was not found {where}: {_INSTALL_JAVA}")
    release = Path(java).resolve().parent.parent / "release"
    if release.is_file():
        version = re.search(r'^JAVA_VERSION="(?:1\.)?(\d+)', release.read_text(), re.MULTILINE)
        if version and int(version[1]) < _JAVA_NEEDED:
            raise KassignError(f"Java {version[1]} ({java}) is too old: {_INSTALL_JAVA}")
