"""What results were made of: a folder says it in the mark by which it is ours, a run in its row."""

import json
from typing import Any

from pyspark.sql import SparkSession

from kassign_spark.errors import OutputError
from kassign_spark.sessions import Py4JJavaError
from kassign_spark.spark_errors import spark_message
from kassign_spark.tables import run_writing, runs
from kassign_spark.tables.output_folder import MARK
from kassign_spark.tables.places import is_place


def note_snapshot(spark: SparkSession, folder: str, snapshot: str) -> None:
    """Write down, in what ``new_folder`` gave, the snapshot that its tables were made of.

    An address that holds a password is not written down.

    Raises:
        OutputError: the folder cannot be written.
    """
    try:
        address = snapshot if is_place(snapshot) else _address(spark, snapshot)
        if is_place(folder):
            run_writing.note(folder, address)
        elif address is not None:
            hadoop, files = _files(spark, folder)
            stream = files.create(hadoop.Path(folder, MARK), True)
            try:
                stream.write(bytearray(json.dumps({"snapshot": address}), "utf-8"))
            finally:
                stream.close()
    except Py4JJavaError as error:
        raise OutputError(f"output {folder}: {spark_message(error)}") from None


def noted_snapshot(spark: SparkSession, folder: str, name: str) -> str | None:
    """Give the address of the snapshot that a plan was made of; None where it does not say.

    Args:
        spark: the session.
        folder: of the plan.
        name: a table of the plan, by which one run of a catalog's tables is chosen.
    """
    if is_place(folder):
        return runs.noted(spark, folder, name)
    hadoop, files = _files(spark, folder)
    try:
        mark = hadoop.Path(folder, MARK)
        if not files.exists(mark):
            return None
        stream = files.open(mark)
        try:
            text = bytes(stream.readAllBytes()).decode()
        finally:
            stream.close()
        noted = json.loads(text or "{}")
    except (Py4JJavaError, ValueError):
        return None
    address = noted.get("snapshot") if isinstance(noted, dict) else None
    return address if isinstance(address, str) else None


def _address(spark: SparkSession, folder: str) -> str | None:
    """The whole address of a folder; None where it holds a password."""
    hadoop, files = _files(spark, folder)
    address = files.makeQualified(hadoop.Path(folder))
    return None if ":" in (address.toUri().getUserInfo() or "") else str(address.toString())


def _files(spark: SparkSession, folder: str) -> tuple[Any, Any]:
    jvm: Any = spark._jvm
    hadoop = jvm.org.apache.hadoop.fs
    configuration = spark.sparkContext._jsc.hadoopConfiguration()
    return hadoop, hadoop.Path(folder).getFileSystem(configuration)
