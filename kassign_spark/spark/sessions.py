"""The kind of a Spark session: in this process (classic), or behind Spark Connect.

This module alone knows the difference, and the package imports without py4j: a client of Spark
Connect has neither Java nor a ``SparkContext``.
"""

import math
import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import pyspark
from pyspark.errors import PySparkNotImplementedError
from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql.utils import is_remote

from kassign_spark.errors import SessionError

if TYPE_CHECKING:
    from py4j.protocol import Py4JError as Py4JError
    from py4j.protocol import Py4JJavaError as Py4JJavaError
else:
    try:
        from py4j.protocol import Py4JError, Py4JJavaError
    except ImportError:

        class Py4JError(Exception):
            """Never raised: there is no py4j."""

        class Py4JJavaError(Py4JError):
            """Never raised: there is no py4j."""


_RPC = re.compile(r"of RPC that terminated with:\s+status = StatusCode\.(\w+)\s+details = \"(.*)\"")
NO_CHECKPOINTS = (
    f"Spark Connect of PySpark {pyspark.__version__} has no checkpoints, which this needs: take "
    "PySpark 4.0 or later, or a session without Spark Connect"
)
_UNITS = {name: 1 << 10 * power for power, name in enumerate(("B", "KiB", "MiB"))}


def is_connect(session: SparkSession) -> bool:
    """Return whether the session reaches Spark by Spark Connect."""
    return type(session).__module__.startswith("pyspark.sql.connect")


def columns_are_of_connect() -> bool:
    """Return whether columns that this process makes are for sessions of Spark Connect."""
    return bool(is_remote())


def cores(session: SparkSession) -> int:
    """Return the number of tasks that the session runs at the same time."""
    if not is_connect(session):
        return int(session.sparkContext.defaultParallelism)
    # A server hides its default parallelism, but cuts a range by it; an explain runs no job.
    splits = re.search(r"splits=(?:Some\()?(\d+)", _explain_plan(session.range(1), "simple"))
    return int(splits[1]) if splits else 1


def starts_workers_here(session: SparkSession) -> bool:
    """Return whether the session's Python workers are certain to start on this machine."""
    return not is_connect(session) and (session.sparkContext.master or "").startswith("local")


def worker_python() -> str | None:
    """Return the interpreter with which this process starts Python workers; None: others decide."""
    if is_remote():
        return None
    from pyspark import SparkContext  # a client of Spark Connect need not have it

    context = SparkContext._active_spark_context
    return None if context is None else str(context.pythonExec)


def checkpoint(
    frame: DataFrame, measures: Mapping[str, Column] | None = None
) -> tuple[DataFrame, dict[str, Any]]:
    """Compute a frame and cut its lineage, in the checkpoint folder if the session has one.

    Without one it is kept on the executors: then it is lost with its executor, and what was cut
    cannot be computed again. Measures are aggregates, by name; they ride on the same job, where the
    session can observe one.
    """
    aggregates = [column.alias(name) for name, column in (measures or {}).items()]
    session = frame.sparkSession
    if is_connect(session):
        has_folder = session.conf.get("spark.checkpoint.dir", None) is not None
        try:
            kept = frame.checkpoint() if has_folder else frame.localCheckpoint()
        except PySparkNotImplementedError:
            raise SessionError(NO_CHECKPOINTS) from None
        # A server does not send what was observed while it made a checkpoint.
        row = kept.agg(*aggregates).first() if aggregates else None
        return kept, {} if row is None else row.asDict()
    observed = Observation()
    if aggregates:
        frame = frame.observe(observed, *aggregates)
    has_folder = session.sparkContext.getCheckpointDir() is not None
    kept = frame.checkpoint() if has_folder else frame.localCheckpoint()
    return kept, dict(observed.get) if aggregates else {}


def estimated_bytes(frame: DataFrame) -> float:
    """Return the optimizer's estimate of a frame's size; infinite if it has none."""
    if is_connect(frame.sparkSession):
        explained = _explain_plan(frame, "cost")
    else:
        # As text: estimates of joins have more digits than a long, in which py4j would cut them.
        plan: Any = frame._jdf.queryExecution().optimizedPlan()
        explained = plan.stats().simpleString()
    size = re.search(r"sizeInBytes=(\S+) (\w+)", explained)
    if size is None or size[2] not in _UNITS:
        return math.inf
    return float(size[1]) * _UNITS[size[2]]


def java_causes(error: Exception) -> Iterable[Any]:
    """Return the Java exceptions behind an error, outermost first; none behind Spark Connect."""
    thrown = error.java_exception if isinstance(error, Py4JJavaError) else None
    thrown = thrown or getattr(error, "_origin", None)
    while thrown is not None:
        yield thrown
        thrown = thrown.getCause()


def rpc_message(text: str) -> str | None:
    """Return in one line how a call of Spark Connect ended; None: the text is not about one."""
    status = _RPC.search(text)
    if status is None:
        return None
    if status[1] == "UNAVAILABLE":
        return f"the server of Spark Connect does not answer: {status[2]}"
    if status[1] == "UNIMPLEMENTED":
        return (
            f"the server of Spark Connect does not know this call ({status[2]}): this client is "
            f"PySpark {pyspark.__version__}, and the server must be of that version or later"
        )
    return f"Spark Connect: {status[2]} ({status[1]})"


def _explain_plan(frame: DataFrame, mode: str) -> str:
    described: Any = frame
    return str(described._explain_string(mode=mode))
