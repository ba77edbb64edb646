"""The Spark session of the console command; under ``spark-submit`` it is spark-submit's own."""

import os
import re
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib.resources import as_file, files
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.errors import PySparkRuntimeError
from pyspark.sql import SparkSession

from kassign_spark.errors import KassignError
from kassign_spark.interrupts import cancel_with, deferred
from kassign_spark.launch.java import INSTALL_JAVA, archive_options, check_java
from kassign_spark.launch.remote_session import open_remote
from kassign_spark.launch.small_inputs import are_small
from kassign_spark.launch.warm_up import start_worker
from kassign_spark.spark.local_server import is_served
from kassign_spark.spark.sessions import Py4JError, Py4JJavaError

if TYPE_CHECKING:
    from pyspark import SparkConf, SparkContext

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
"""Settings that conf/spark-local.conf explains one by one."""

SMALL_SQL = {
    # To plan each stage anew costs more than a few rows do.
    "spark.sql.adaptive.enabled": "false",
    # Not one: there may still be tens of thousands of partitions.
    "spark.sql.shuffle.partitions": str(os.cpu_count() or 1),
    # Java compiles what Spark writes for a query more slowly than it reads so few rows without
    # (validate, assign and report of examples/fleet: 37.5 s instead of 43.6 s, on a server that
    # has just started 31.7 s instead of 43.7 s; five million partitions: twice as long).
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
"""Settings of each query of a command whose inputs are small (``small_inputs``).

Without them validate of examples/fleet takes 1.13 times as long, assign 1.19 times.
"""
SMALL_DEFAULTS = SMALL_SQL | {
    # Spark chooses by the memory, and would fill 64 MB with zeros for each hash table (without this
    # assign of examples/fleet takes 1.16 times as long, validate as long as with it).
    "spark.buffer.pageSize": "1m",
}
"""Settings of a command's session when its inputs are small."""
QUICK_JAVA = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m -XX:+UseSerialGC"
"""A short run ends before Java's second compiler or its parallel collector pays (without these
options validate of examples/fleet takes 1.23 times as long, assign 1.44 times). A long run has as
much room for compiled code as with both compilers."""

_JAVA_NOTES = re.compile("incubator|Picked up J[A-Z_]+OPTIONS")
"""Java's remarks before anything is wrong."""

_CLIENT_ALONE = (
    "this environment has PySpark's client of Spark Connect alone, which starts no Spark: name a "
    "server with --remote or SPARK_REMOTE, or pip uninstall pyspark-client and pip install pyspark"
)


@contextmanager
def open_session(
    *inputs: str,
    verbose: bool = False,
    package: str = "",
    settings: Mapping[str, str] | None = None,
    remote: str | None = None,
    core: Mapping[str, str] | None = None,
    java_options: str | None = None,
) -> Iterator[SparkSession]:
    """Open the session that a command works with, and stop it at the end.

    Args:
        *inputs: the files and folders that the command reads; where they are small, the session
            is one for small inputs, with ``SMALL_DEFAULTS``.
        verbose: let Spark talk.
        package: the Maven coordinate of a Spark package that the command needs, which Spark
            fetches when it starts; a session that is there has to have it.
        settings: Spark SQL's, that the command needs.
        remote: the address of a server of Spark Connect, which is used then.
        core: settings of a Spark that is started, beside those for the inputs.
        java_options: of a Java that is started; left out, those with which it takes its classes
            from the archive of ``java``, where there is one.

    A session that is already there is used and left as it is. On a server of Spark Connect the
    settings are the server's own, but for a server of ``kassign-spark serve``. Under
    ``spark-submit`` master, memory and all else come from its own options; otherwise the session is
    local, with ``LOCAL_DEFAULTS``, quiet unless ``verbose``, and with Spark's progress bar when a
    person is watching.

    Raises:
        KassignError: Java is missing or does not start, PySpark is a client of Spark Connect and
            nothing else, the package cannot be had, or as ``open_remote``.
    """
    active = SparkSession.getActiveSession()
    if active is not None:
        yield active
        return
    if remote:
        with open_remote(remote, verbose=verbose) as session:
            small = SMALL_SQL if is_served(session) and are_small(inputs) else {}
            _set(session, {**small, **(settings or {})})
            yield session
        return
    os.environ.pop("SPARK_REMOTE", None)  # PySpark would follow it
    if find_spec("py4j") is None:
        raise KassignError(_CLIENT_ALONE)
    submitted = "PYSPARK_GATEWAY_PORT" in os.environ
    if not submitted:
        _check_spark_home()
        # Python workers are of this environment, not of the first python3 on the path.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        # From a zip the file comes out for as long as Java needs to read it.
        with as_file(files("kassign_spark").joinpath("log4j2.properties")) as log4j2:
            if java_options is None:
                java_options = archive_options()
            of_spark = local_settings(*inputs) | dict(core or {})
            conf = _local_conf(None if verbose else log4j2, of_spark, java_options)
            if package:
                conf.set("spark.jars.packages", package)
            _start_java(conf, verbose)
    with _explained_gateway():
        session = SparkSession.Builder().appName("kassign-spark").getOrCreate()
    _set(session, settings or {})
    cancel_with(session.sparkContext.cancelAllJobs)
    _delete_checkpoints_at_exit(session.sparkContext)
    starting = None if submitted else start_worker(session)
    try:
        yield session
    finally:
        session.stop()
        if starting is not None:
            starting.join()


def _set(session: SparkSession, settings: Mapping[str, str]) -> None:
    for name, value in settings.items():
        session.conf.set(name, value)


def _check_spark_home() -> None:
    """Refuse a ``SPARK_HOME`` that PySpark would start in vain."""
    home = os.environ.get("SPARK_HOME")
    if home is not None and not os.access(f"{home}/bin/spark-submit", os.X_OK):
        raise KassignError(
            f"SPARK_HOME ({home or 'empty'}) holds no Spark: it has no bin/spark-submit; unset it, "
            "and the Spark of PySpark is used, or name the folder of one"
        )


@contextmanager
def _explained_gateway() -> Iterator[None]:
    """Explain that the Java which spark-submit started does not answer."""
    try:
        yield
    except Py4JJavaError:
        raise
    except (ValueError, KeyError, OverflowError, OSError, Py4JError):
        port = os.environ.get("PYSPARK_GATEWAY_PORT")
        if port is None:
            raise
        raise KassignError(
            f"PYSPARK_GATEWAY_PORT ({port or 'empty'}), which spark-submit sets with "
            "PYSPARK_GATEWAY_SECRET: no Spark answers there; unset it to run without spark-submit"
        ) from None


def _delete_checkpoints_at_exit(context: "SparkContext") -> None:
    """Delete the run's folder in ``spark.checkpoint.dir`` at exit: Spark keeps it for ever."""
    folder = context.getCheckpointDir()
    if folder is not None:
        jvm: Any = context._jvm
        path = jvm.org.apache.hadoop.fs.Path(folder)
        path.getFileSystem(context._jsc.hadoopConfiguration()).deleteOnExit(path)


def local_settings(*inputs: str) -> dict[str, str]:
    """Return the session's settings for a command that reads these folders, but for logging."""
    settings = dict(LOCAL_DEFAULTS)
    if are_small(inputs):
        settings |= SMALL_DEFAULTS
        settings["spark.driver.extraJavaOptions"] = QUICK_JAVA
    return settings


def _local_conf(log4j2: Path | None, settings: dict[str, str], java_options: str) -> "SparkConf":
    from pyspark import SparkConf  # a client of Spark Connect does not have it

    option = "spark.driver.extraJavaOptions"
    logging = "" if log4j2 is None else f"-Dlog4j2.configurationFile={log4j2.as_uri()}"
    options = [*filter(None, (logging, settings.get(option), java_options))]
    if options:
        settings[option] = " ".join(options)
    conf = SparkConf(loadDefaults=False).setAppName("kassign-spark")
    conf.setAll(list(settings.items()))
    conf.set("spark.ui.showConsoleProgress", str(sys.stderr.isatty()).lower())
    return conf


def _start_java(conf: "SparkConf", verbose: bool) -> None:
    """Start Spark's JVM with its error stream under control, and Spark in it."""
    check_java()
    if verbose:
        _start_spark(conf, _launch(conf))
        return
    reading, writing = os.pipe()
    starting: list[bytes] = []
    started = threading.Event()
    relay = threading.Thread(target=_relay, args=(reading, starting, started), daemon=True)
    relay.start()
    try:
        gateway = _launch(conf, popen_kwargs={"stdout": writing, "stderr": writing})
    except PySparkRuntimeError:
        os.close(writing)
        relay.join(timeout=5)
        output = b"".join(starting).decode(errors="replace").splitlines()
        package = conf.get("spark.jars.packages")
        if package and any("UNRESOLVED DEPENDENCIES" in line for line in output):
            raise KassignError(
                f"the Spark package {package} cannot be had from the repositories that Spark "
                "asks (Maven Central first); name a version that can with --package, or run "
                "under spark-submit with --jars"
            ) from None
        reason = next(
            (line for line in output if not _JAVA_NOTES.search(line)), "it gave no reason"
        )
        home = os.environ.get("SPARK_HOME")
        of_home = (
            "" if home is None else f"see whether SPARK_HOME ({home}) holds a whole Spark, or "
        )
        raise KassignError(f"Java did not start: {reason}; {of_home}{INSTALL_JAVA}") from None
    os.close(writing)
    started.set()
    _start_spark(conf, gateway)


def _start_spark(conf: "SparkConf", gateway: Any) -> None:
    from pyspark import SparkContext

    context = SparkContext(conf=conf, gateway=gateway)
    cancel_with(context.cancelAllJobs)


def end_java() -> None:
    """End the Java process of a stopped session, and wait until it has ended."""
    from pyspark import SparkContext

    gateway: Any = SparkContext._gateway
    if gateway is None:
        return
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait()
    SparkContext._gateway = SparkContext._jvm = None


def _launch(conf: "SparkConf", **options: Any) -> Any:
    from pyspark.java_gateway import launch_gateway

    # A Java that cannot say where it listens, since nobody waits any more, never ends.
    with deferred():
        return launch_gateway(conf, **options)  # type: ignore[no-untyped-call]


def _relay(reading: int, starting: list[bytes], started: threading.Event) -> None:
    """Keep what the JVM says while it starts, for an error; then pass on its progress bar."""
    with suppress(OSError):
        while chunk := os.read(reading, 65536):
            if started.is_set():
                os.write(sys.stderr.fileno(), chunk)
            else:
                starting.append(chunk)
