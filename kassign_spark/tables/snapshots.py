"""The only module that reads and writes tables: snapshots in, plans out.

Each is a folder, or tables of a catalog (``places.py``).
"""

import os
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Any, NamedTuple, Self

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from kassign_spark.conforming import has_cluster_id
from kassign_spark.errors import InputError, OutputError
from kassign_spark.schemas import CLUSTER_ID, MEMBERS, SNAPSHOT_TABLES, TOPICS, Table
from kassign_spark.tables import catalog_runs, catalog_writing, folder_reading, output_folder
from kassign_spark.tables.catalog_paths import is_catalog_path
from kassign_spark.tables.files import child
from kassign_spark.tables.locating import locate
from kassign_spark.tables.text import TIMESTAMPS, write_csv


class _Tables(NamedTuple):
    members: DataFrame
    topics: DataFrame
    owned: DataFrame | None


class Snapshot(_Tables):
    """The state of a cluster, measured or written by hand: the unit that commands pass around.

    It unpacks into its first three tables, which every function takes; the others are None where
    there is no such table.

    Attributes:
        members: ``schemas.MEMBERS``.
        topics: ``schemas.TOPICS``, or one row per partition.
        owned: ``schemas.OWNED``; None where it is not known who owns what.
        target: ``schemas.TARGET``, the last target of groups of group_type `consumer`.
        offsets: ``schemas.OFFSETS``, which ``partition_weights`` takes.
        leaders: ``schemas.LEADERS`` of ``__consumer_offsets``, which ``coordinators`` takes.
        group_settings: ``schemas.GROUP_SETTINGS`` of groups of group_type `consumer`, as far as
            they could be read.
    """

    target: DataFrame | None = None
    offsets: DataFrame | None = None
    leaders: DataFrame | None = None
    group_settings: DataFrame | None = None

    def __new__(
        cls,
        members: DataFrame,
        topics: DataFrame,
        owned: DataFrame | None,
        target: DataFrame | None = None,
        offsets: DataFrame | None = None,
        leaders: DataFrame | None = None,
        group_settings: DataFrame | None = None,
    ) -> Self:
        """Combine the tables."""
        made = super().__new__(cls, members, topics, owned)
        made.target, made.offsets, made.leaders = target, offsets, leaders
        made.group_settings = group_settings
        return made

    def _replace(self, **tables: Any) -> Self:
        """Return the same with some tables changed; a named tuple's own knows the first three."""
        return type(self)(**{**self._all(), **tables})

    def tables(self) -> dict[str, DataFrame]:
        """Return the tables that are there, by name."""
        return {name: frame for name, frame in self._all().items() if frame is not None}

    def _all(self) -> dict[str, Any]:
        return {table.name: getattr(self, table.name) for table in SNAPSHOT_TABLES}


def read_snapshot(path: str | os.PathLike[str], spark: SparkSession) -> Snapshot:
    """Read a snapshot; the values are checked where they are used.

    Args:
        path: a folder with the tables ``members``, ``topics`` and, if known, ``owned``,
            ``target``, ``offsets``, ``leaders`` and ``group_settings``: each a folder or file such
            as ``members``, ``members.parquet``, ``members.csv`` or ``members.jsonl``. CSV has a
            header line; a cell that holds a list is a JSON array or, for plain names, ``t0;t1``.
            Or ``table:CATALOG.SCHEMA``, tables of these names in a catalog: the newest snapshot
            there or, with ``@TIMESTAMP`` behind, the newest that is not later.
        spark: the session.

    Returns:
        The tables with the columns that their files have; all but the first two are None where
        there is no such table.

    Raises:
        InputError: a table does not exist, or a file is not what its name says.
    """
    folder = one_run(spark, os.fspath(path), MEMBERS.name)
    tables: dict[str, Any] = dict.fromkeys(table.name for table in SNAPSHOT_TABLES)
    for table in SNAPSHOT_TABLES:
        if table in (MEMBERS, TOPICS) or has_table(spark, folder, table.name):
            tables[table.name] = read_table(spark, folder, table)
    # JSON lines without a line have no columns, so a cluster_id is unknown too.
    has_clusters = any(has_cluster_id(frame) for frame in tables.values() if frame is not None)
    for table in SNAPSHOT_TABLES:
        if tables[table.name] is not None and not tables[table.name].columns:
            tables[table.name] = empty_table(spark, table, cluster_id=has_clusters)
    return Snapshot(**tables)


def write_snapshot(
    snapshot: Snapshot,
    path: str | os.PathLike[str],
    *,
    table_format: str = "parquet",
    overwrite: bool = False,
    as_of: datetime | None = None,
) -> None:
    """Write a snapshot, whole or not at all.

    Args:
        snapshot: its tables are written as they are.
        path: a new folder; or ``table:CATALOG.SCHEMA``, whose tables it is appended to.
        table_format: `parquet`, `csv` or `json` (JSON lines), of a folder.
        overwrite: replace a folder that this package wrote.
        as_of: with ``table:``, the time that the snapshot is of (default: now).

    Raises:
        InputError: ``as_of`` is given with a folder.
        OutputError: the folder exists, or cannot be written.
    """
    spark = snapshot.members.sparkSession
    with new_folder(spark, os.fspath(path), overwrite=overwrite, as_of=as_of) as folder:
        for name, frame in snapshot.tables().items():
            write_table(frame, folder, name, table_format)


def new_folder(
    spark: SparkSession, path: str, *, overwrite: bool = False, as_of: datetime | None = None
) -> AbstractContextManager[str]:
    """Open a new folder, or with ``table:...`` a run of tables, for ``write_table``.

    Args:
        spark: the session.
        path: where it appears when all went well.
        overwrite: replace a folder that this package wrote; runs of tables replace nothing.
        as_of: the time of a run (default: now).

    Raises:
        InputError: ``as_of`` is given with a folder.
        OutputError: as ``output_folder.new_folder`` and ``catalog_writing.new_run``.
    """
    if not is_catalog_path(path):
        if as_of is not None:
            raise InputError(f"as_of: {path} is a folder, which holds one snapshot")
        return output_folder.new_folder(spark, path, overwrite=overwrite)
    if overwrite:
        raise OutputError(f"output {path}: rows are appended; there is nothing to overwrite")
    return catalog_writing.new_run(spark, path, at=as_of)


def one_run(spark: SparkSession, folder: str, name: str) -> str:
    """Name what a table is read from now, so that others are read from the same.

    Returns:
        The folder; in an object store that of the run that it names; of tables with many runs, the
        one that ``read_table`` would take.

    Raises:
        InputError: there is no such folder or schema, or no whole run.
    """
    if is_catalog_path(folder):
        return catalog_runs.one_run(spark, folder, name)
    return folder_reading.one_run(spark, folder)


def read_table(spark: SparkSession, folder: str, table: Table) -> DataFrame:
    """Read one table of a folder, with the columns that are there.

    Returns:
        The columns of the files; of JSON lines without a single line none.

    Raises:
        InputError: it does not exist, cannot be read, or holds text that is no value of its column.
    """
    if is_catalog_path(folder):
        return catalog_runs.read(spark, folder, table.name)
    return folder_reading.read(spark, folder, table)


def read_named_table(spark: SparkSession, path: str, table: Table) -> DataFrame:
    """Read a table that somebody names: a folder that has it, or itself by its ending.

    Such as ``weights.csv`` or ``table:CATALOG.SCHEMA.TABLE``, or where ``read_table`` finds it.
    """
    if is_catalog_path(path):
        return catalog_runs.read_named(spark, path, table.name)
    folder = folder_reading.read_file_of(spark, path, table)
    return read_table(spark, path, table) if folder is None else folder


def write_table(frame: DataFrame, folder: str, name: str, table_format: str = "parquet") -> None:
    """Write one table to what ``new_folder`` gave.

    Raises:
        OutputError: a format is named for a table of a catalog, or that cannot be written.
    """
    if is_catalog_path(folder):
        if table_format != "parquet":
            raise OutputError(
                f"{folder}: the catalog chooses the format, so it cannot be {table_format}"
            )
        catalog_writing.append(frame, folder, name)
        return
    path = f"{folder}/{name}"
    if table_format == "csv":
        write_csv(frame, path)
    elif table_format == "json":
        frame.write.json(path, timestampFormat=TIMESTAMPS)
    else:
        frame.write.parquet(path)


def write_text(spark: SparkSession, text: str, folder: str, name: str) -> None:
    """Write one small text file, one of ``FILE_NAMES``, into a folder of ``new_folder``.

    Raises:
        OutputError: tables of a catalog are no place for it.
    """
    if is_catalog_path(folder):
        raise OutputError(f"{folder}: {name} is a file, which no catalog takes; name a folder")
    files, path = locate(spark, folder)
    files.write(child(path, name), text)


def has_table(spark: SparkSession, folder: str, name: str) -> bool:
    """Return whether the folder has such a table.

    Raises:
        InputError: the folder does not exist.
    """
    if is_catalog_path(folder):
        return catalog_runs.has(spark, folder, name)
    return folder_reading.has(spark, folder, name)


def empty_table(spark: SparkSession, table: Table, *, cluster_id: bool) -> DataFrame:
    """Make a table without rows, with or without the column ``cluster_id``."""
    fields = [f for f in table.columns if cluster_id or f.name != CLUSTER_ID]
    return spark.createDataFrame([], StructType(fields))
