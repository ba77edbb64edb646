"""Spark's errors as one line: what failed, and the cause at the bottom of the chain."""

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import unquote

from pyspark.errors import PySparkException

from kassign_spark.display import without_login
from kassign_spark.errors import KassignError
from kassign_spark.spark.sessions import Py4JError, java_causes, rpc_message
from kassign_spark.spark.workers import import_advice

NO_PARQUET = "is no Parquet file"
SparkError = (PySparkException, Py4JError)
"""Whatever PySpark raises when Spark, or its Java process, does not do what it was asked to."""

_SQL_STATE = re.compile(r"\s*SQLSTATE: \w+$")
_LOST_CHECKPOINT = "CHECKPOINT_RDD_BLOCK_ID_NOT_FOUND"
_SURVIVE = (
    "an executor was lost, and with it a local checkpoint; run again, with spark.checkpoint.dir "
    "set to a folder that all executors see, which survives that"
)
_NO_ADDRESS = "is not a path, and no address that Spark knows: what stands before ':' is its kind"
_NO_S3 = "S3AFileSystem not found"
_NEEDS_S3 = (
    "Spark has no file system for S3; give it the package org.apache.hadoop:hadoop-aws in the "
    "version of its own Hadoop (spark-submit --packages)"
)
_NO_FILES = "[UNABLE_TO_INFER_SCHEMA]"
"""PySpark 4.2 and later pass over Parquet files without a byte; so here all are."""
_IMPORT = re.compile(
    r"^\S*(?:ModuleNotFoundError:|ImportError:|Error: \[PYTHON_VERSION_MISMATCH\]) *(.*)",
    re.MULTILINE,
)
"""A worker's message, below its trace, that it cannot import or is of another version."""
_UNREAD_FILE = re.compile(
    r"(?:\[(?:FAILED_READ_FILE\.)?(\w+)\] )?"
    r"(?:Encountered error while reading|Could not read footer for) file:? (\S+?)\.\s"
)
_ENVELOPE = re.compile("Job aborted due to stage failure|Exception thrown in awaitResult")
"""What Spark 3.5 puts around an error without a word about it."""
_IS_AWAY = re.compile("denied|not found|no such file|does not exist", re.IGNORECASE)
_GONE = "Spark's Java process has ended; --verbose shows its log"


def spark_message(error: PySparkException | Py4JError) -> str:
    """Return Spark's message in one line."""
    try:
        message = _java_message(java_causes(error))
        if message is None:
            message = _own_message(str(error)) if isinstance(error, PySparkException) else _GONE
        return without_login(message)
    except (Py4JError, ConnectionError):
        return _GONE


@contextmanager
def raised_as(kind: type[KassignError], place: str) -> Iterator[None]:
    """Raise as ``kind``, in one line that begins with ``where``, what Spark refuses."""
    try:
        yield
    except SparkError as error:
        raise kind(f"{place}: {spark_message(error)}") from None


def _java_message(causes: Iterable[Any]) -> str | None:
    lines, unread = [], None
    for thrown in causes:
        text = thrown.getMessage() or thrown.getClass().getSimpleName()
        if _LOST_CHECKPOINT in text:
            return _SURVIVE
        if _NO_S3 in text:
            return _NEEDS_S3
        if _NO_FILES in text:
            return "all its files are empty"
        if "URISyntaxException" in text:
            return _NO_ADDRESS
        if _IMPORT.search(text):
            return _own_message(text)
        unread = unread or _UNREAD_FILE.search(f"{text} ")
        lines.append(_first_line(text))
    if not lines:
        return None
    lines = [text for text in lines if not _ENVELOPE.match(text)] or lines
    first, cause = lines[0], lines[-1]
    if unread is not None and not _IS_AWAY.search(cause):
        condition, file = unread[1], unquote(unread[2])
        if file.endswith(".parquet"):
            return f"the Parquet file {file} is damaged ({cause})"
        if condition == "CANNOT_READ_FILE_FOOTER":
            return f"{file} {NO_PARQUET} ({cause})"
    return first if cause in first else f"{first} ({cause})"


def _own_message(text: str) -> str:
    of_call = rpc_message(text)
    if of_call is not None:
        return _first_line(of_call)
    unimportable = _IMPORT.search(text)
    return import_advice(unimportable[1]) if unimportable else _first_line(text)


def _first_line(text: str) -> str:
    lines = text.strip().splitlines()
    return _SQL_STATE.sub("", lines[0]) if lines else ""
