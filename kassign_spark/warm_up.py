"""Start what every command waits for once on another core: Java's classes and a Python worker.

Spark starts on one core and its driver plans on one, while the first query needs some thousand
classes that Java has to read, and the first task a worker that has to import. Nothing of it
changes an answer, and what fails here fails again, with a message, where it is needed.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from threading import Thread
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

_ANY_PLAN = "SELECT a, count(*) FROM b GROUP BY a"
_ANY_COLUMNS = "a string, b int, c array<string>"
_FUNCTIONS = "org.apache.spark.sql.catalyst.analysis.FunctionRegistry$"


def load_classes(gateway: Any) -> Thread:
    """Load what Spark SQL parses, resolves and compiles with, while Spark itself starts.

    Join it before the session is made: of two threads that initialise the same classes, each may
    wait for the other.
    """
    return _begun(_load_classes, gateway.jvm)


def start_worker(session: SparkSession) -> Thread:
    """Run a task of Python, in which the kernels are imported; it ends with the session."""
    return _begun(_start_worker, session)


def _begun(work: Callable[[Any], None], argument: Any) -> Thread:
    def whole_or_not() -> None:
        with suppress(Exception):
            work(argument)

    thread = Thread(target=whole_or_not, daemon=True)
    thread.start()
    return thread


def _load_classes(jvm: Any) -> None:
    catalyst = jvm.org.apache.spark.sql.catalyst
    parser = getattr(getattr(catalyst.parser, "CatalystSqlParser$"), "MODULE$")
    parser.parsePlan(_ANY_PLAN)
    jvm.java.lang.Class.forName(_FUNCTIONS)
    columns = jvm.org.apache.spark.sql.types.StructType.fromDDL(_ANY_COLUMNS)
    catalyst.expressions.UnsafeProjection.create(columns)


def _start_worker(session: SparkSession) -> None:
    session.range(1, numPartitions=1).mapInArrow(_kernels_imported, "id bigint").collect()


def _kernels_imported(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    from kassign_spark.assignors import in_tasks  # noqa: F401
    from kassign_spark.groups.archives import forget_archives

    yield from batches
    forget_archives()
