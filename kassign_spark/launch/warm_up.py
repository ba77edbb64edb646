"""Start the first Python worker while the driver plans the first query.

The worker's imports take a second or two on another core. Without this, validate of
examples/fleet takes 1.10 times as long, assign 1.15 times. It changes no answer, and what fails
here fails again, with a message, where it is needed.
"""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from threading import Thread

import pyarrow as pa
from pyspark.sql import SparkSession


def start_worker(session: SparkSession) -> Thread:
    """Run a task of Python, in which the kernels are imported; it ends with the session."""
    thread = Thread(target=_run_task, args=(session,), daemon=True)
    thread.start()
    return thread


def _run_task(session: SparkSession) -> None:
    with suppress(Exception):
        session.range(1, numPartitions=1).mapInArrow(_import_kernels, "id bigint").collect()


def _import_kernels(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    from kassign_spark.assignors import in_tasks  # noqa: F401

    yield from batches
