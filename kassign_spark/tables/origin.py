"""What a folder of results was made of, written into the mark by which the folder is ours."""

import json

from pyspark.sql import SparkSession

from kassign_spark.errors import OutputError
from kassign_spark.sessions import Py4JJavaError
from kassign_spark.spark_errors import spark_message
from kassign_spark.tables.hadoop import child, located, read_file, write_file
from kassign_spark.tables.ours import MARK
from kassign_spark.tables.runs import named_run


def note_snapshot(spark: SparkSession, folder: str, snapshot: str) -> None:
    """Write down, in a folder of ``new_folder``, the snapshot that its tables were made of.

    An address that holds a password is not written down.

    Raises:
        OutputError: the folder cannot be written.
    """
    try:
        _, qualified = located(spark, snapshot)
        if ":" in (qualified.toUri().getUserInfo() or ""):
            return
        files, target = located(spark, folder)
        noted = json.dumps({"snapshot": qualified.toString()})
        write_file(files.create(child(target, MARK), True), noted)
    except Py4JJavaError as error:
        raise OutputError(f"output {folder}: {spark_message(error)}") from None


def noted_snapshot(spark: SparkSession, folder: str) -> str | None:
    """Give the address of the snapshot that a folder was made of; None where it does not say."""
    try:
        files, target = located(spark, folder)
        run = named_run(files, target)
        mark = child(child(target, run) if run else target, MARK)
        if not files.exists(mark):
            return None
        noted = json.loads(read_file(files, mark) or "{}")
    except (Py4JJavaError, ValueError):
        return None
    address = noted.get("snapshot") if isinstance(noted, dict) else None
    return address if isinstance(address, str) else None
