"""What a folder of results was made of, written into the mark by which the folder is ours."""

import json
from typing import Any

from pyspark.sql import SparkSession

from kassign_spark.errors import OutputError
from kassign_spark.sessions import Py4JJavaError
from kassign_spark.spark_errors import spark_message
from kassign_spark.tables.output_folder import MARK


def note_snapshot(spark: SparkSession, folder: str, snapshot: str) -> None:
    """Write down, in a folder of ``new_folder``, the snapshot that its tables were made of.

    An address that holds a password is not written down.

    Raises:
        OutputError: the folder cannot be written.
    """
    hadoop, files = _files(spark, folder)
    try:
        given = hadoop.Path(snapshot)
        named = given.getFileSystem(spark.sparkContext._jsc.hadoopConfiguration())
        address = named.makeQualified(given)
        if ":" in (address.toUri().getUserInfo() or ""):
            return
        stream = files.create(hadoop.Path(folder, MARK), True)
        try:
            stream.write(bytearray(json.dumps({"snapshot": address.toString()}), "utf-8"))
        finally:
            stream.close()
    except Py4JJavaError as error:
        raise OutputError(f"output {folder}: {spark_message(error)}") from None


def noted_snapshot(spark: SparkSession, folder: str) -> str | None:
    """Give the address of the snapshot that a folder was made of; None where it does not say."""
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


def _files(spark: SparkSession, folder: str) -> tuple[Any, Any]:
    jvm: Any = spark._jvm
    hadoop = jvm.org.apache.hadoop.fs
    configuration = spark.sparkContext._jsc.hadoopConfiguration()
    return hadoop, hadoop.Path(folder).getFileSystem(configuration)
