"""The origin of results: a folder records it in our mark, a run in its row."""

from urllib.parse import urlsplit

from pyspark.sql import SparkSession

from kassign_spark.tables import catalog_runs, catalog_writing
from kassign_spark.tables.catalog_paths import is_catalog_path
from kassign_spark.tables.file_list import read_mark, write_mark
from kassign_spark.tables.files import FILE_ERRORS, child
from kassign_spark.tables.folder_runs import named_run
from kassign_spark.tables.locating import explained, locate


def note_snapshot(spark: SparkSession, folder: str, snapshot: str) -> None:
    """Write down, in what ``new_folder`` gave, the snapshot that its tables were made of.

    An address that holds a password is not written down.

    Raises:
        OutputError: the folder cannot be written.
    """
    with explained(folder):
        address = snapshot if is_catalog_path(snapshot) else _address(spark, snapshot)
        if is_catalog_path(folder):
            catalog_writing.note(folder, address)
        elif address is not None:
            write_mark(*locate(spark, folder), {"snapshot": address})


def noted_snapshot(spark: SparkSession, folder: str, name: str) -> str | None:
    """Return the address of the snapshot that a plan was made of; None if not noted.

    By its table ``name`` one run of a catalog's tables is chosen.
    """
    if is_catalog_path(folder):
        return catalog_runs.read_note(spark, folder, name)
    try:
        files, target = locate(spark, folder)
        run = named_run(files, target)
        noted = read_mark(files, child(target, run) if run else target) or {}
    except FILE_ERRORS:
        return None
    address = noted.get("snapshot")
    return address if isinstance(address, str) else None


def _address(spark: SparkSession, folder: str) -> str | None:
    """Return the whole address of a folder; None where it holds a password."""
    _, path = locate(spark, folder)
    return None if urlsplit(path).password is not None else path
