"""Check that Spark's Python workers can run our code, before a task fails.

Without ``PYSPARK_PYTHON`` PySpark starts workers with the first ``python3`` on the path. In a
virtual environment that is not active that is another interpreter, without our packages.
"""

import functools
import os
import shutil
import subprocess
import sys
from weakref import WeakKeyDictionary

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from kassign_spark.errors import SessionError, WorkerError
from kassign_spark.spark.sessions import (
    columns_are_of_connect,
    is_connect,
    rpc_message,
    starts_workers_here,
    worker_python,
)

VARIABLE = "PYSPARK_PYTHON"
_NEEDED = ("numpy", "pyarrow")
_SECONDS = 60
_VERSION = "{}.{}".format(*sys.version_info[:2])
_answered: WeakKeyDictionary[SparkSession, str] = WeakKeyDictionary()
"""By session, the version of its server, which has answered."""

# Looks for packages without importing them, as numpy and pyarrow take a second.
_LOOK = """
import importlib.util, sys
print("%d.%d" % sys.version_info[:2], *(n for n in sys.argv[1:] if not importlib.util.find_spec(n)))
"""


def check_workers(spark: SparkSession) -> None:
    """Refuse a session whose Python workers cannot run our code; runs no job.

    Only where workers are started on this machine: an interpreter elsewhere cannot be looked at.
    Each interpreter is looked at once, and the one that this program runs itself never. A server
    of Spark Connect is asked once a session whether it is there.

    Raises:
        SessionError: the server of Spark Connect does not answer.
        WorkerError: it names both interpreters and the variable to set.
    """
    if is_connect(spark):
        _check_server(spark)
        return
    python = worker_python() if starts_workers_here(spark) else None
    problem = None if python is None else _problem(python)
    if problem:
        raise WorkerError(problem)


def _check_server(spark: SparkSession) -> None:
    if spark not in _answered:
        try:
            _answered[spark] = spark.version
        except PySparkException as error:
            raise SessionError(rpc_message(str(error)) or str(error)) from None


@functools.cache
def _problem(worker: str) -> str | None:
    """Return the problem with the workers' interpreter; None: nothing."""
    path = shutil.which(worker)
    if path is None:
        return _advice(f"{worker}, which does not exist")
    if os.path.abspath(path) == os.path.abspath(sys.executable):
        return None
    try:
        looked = subprocess.run(
            [path, "-c", _LOOK, *_NEEDED], capture_output=True, text=True, timeout=_SECONDS
        )
    except (OSError, subprocess.TimeoutExpired):
        return None  # Spark will say what is the matter with it
    if looked.returncode:
        return None
    version, *missing = looked.stdout.split()
    if missing:
        return _advice(f"{path}, which has no {' and no '.join(missing)}")
    if version != _VERSION:
        return _advice(f"{path}, which is Python {version}")
    return None


def import_advice(reason: str) -> str:
    """Explain in one line why a worker could not begin: its imports, or its version."""
    problem = (
        "is of another version" if "different version" in reason else "cannot import what it needs"
    )
    if columns_are_of_connect():
        return (
            f"the interpreter of the server's Python workers {problem} ({reason}): it must be "
            f"Python {_VERSION}, as here, and have {' and '.join(_NEEDED)}; the server's "
            f"{VARIABLE} names it"
        )
    worker = worker_python() or "another interpreter"
    return _advice(f"{worker}, and that {problem} ({reason})")


def _advice(worker: str) -> str:
    return (
        f"Spark's Python workers run {worker}; this program runs {sys.executable} (Python "
        f"{_VERSION}): before the session starts, set {VARIABLE} to an interpreter that has the "
        f"packages of this one, on this machine {VARIABLE}={sys.executable}"
    )
