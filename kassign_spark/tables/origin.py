"""What results were made of: a folder says it in the mark by which it is ours, a run in its row."""

import json

from pyspark.sql import SparkSession

from kassign_spark.sessions import Py4JJavaError
from kassign_spark.tables import catalog_runs, catalog_writing
from kassign_spark.tables.folder_runs import named_run
from kassign_spark.tables.hadoop import child, explained, located, read_file, write_file
from kassign_spark.tables.ours import MARK
from kassign_spark.tables.places import is_place


def note_snapshot(spark: SparkSession, folder: str, snapshot: str) -> None:
    """Write down, in what ``new_folder`` gave, the snapshot that its tables were made of.

    An address that holds a password is not written down.

    Raises:
        OutputError: the folder cannot be written.
    """
    with explained(folder):
        address = snapshot if is_place(snapshot) else _address(spark, snapshot)
        if is_place(folder):
            catalog_writing.note(folder, address)
        elif address is not None:
            files, target = located(spark, folder)
            noted = json.dumps({"snapshot": address})
            write_file(files.create(child(target, MARK), True), noted)


def noted_snapshot(spark: SparkSession, folder: str, name: str) -> str | None:
    """Give the address of the snapshot that a plan was made of; None where it does not say.

    By its table ``name`` one run of a catalog's tables is chosen.
    """
    if is_place(folder):
        return catalog_runs.noted(spark, folder, name)
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


def _address(spark: SparkSession, folder: str) -> str | None:
    """The whole address of a folder; None where it holds a password."""
    _, qualified = located(spark, folder)
    return None if ":" in (qualified.toUri().getUserInfo() or "") else str(qualified.toString())
