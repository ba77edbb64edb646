"""Runs in the tables of a catalog, read: the one that a place means, by the table ``runs``."""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from kassign_spark.errors import InputError
from kassign_spark.spark.spark_errors import raised_as
from kassign_spark.tables.catalog_paths import CatalogPath, quote_identifier

RUN_ID, RUN_AT = "run_id", "run_at"
"""Columns of each row: the run that wrote it, and the time of that run."""
RUNS = "runs"
_ID_TIME = "%Y%m%dT%H%M%S%fZ"
"""The beginning of a run's id; ``-`` and eight hexadecimal digits follow."""


@dataclass
class Run:
    """A run: the columns of each table, of one at work those so far, and what it is made from."""

    run_id: str
    tables: dict[str, list[str]] = field(default_factory=dict)
    made_from: str | None = None


writing: dict[str, Run] = {}
"""The runs that this process is writing, by id: no table knows of them yet."""


def run_id_at(moment: datetime) -> str:
    """Make the id of a run, which begins with its time in UTC."""
    return f"{moment.astimezone(UTC):{_ID_TIME}}-{uuid4().hex[:8]}"


def time_of(run_id: str) -> datetime:
    """Return the time that a run's id begins with."""
    return datetime.strptime(run_id.split("-")[0], _ID_TIME).replace(tzinfo=UTC)


def read_note(spark: SparkSession, text: str, name: str) -> str | None:
    """Return what the run of table ``name`` was made from; None: not noted."""
    place = CatalogPath.of(text)
    with raised_as(InputError, f"{text}: cannot be read"):
        is_there = spark.catalog.tableExists(place.table(name))
        is_of_runs = is_there and _has_runs(spark, place, name)
        run = _find_run(spark, place, name)[0] if is_of_runs else None
    return None if run is None else run.made_from


def has(spark: SparkSession, text: str, name: str) -> bool:
    """Return whether a place has such a table, of the run that it names or of any."""
    place = CatalogPath.of(text)
    with raised_as(InputError, f"{text}: cannot be read"):
        if not _exists(spark, place, name):
            return False
        return not _has_runs(spark, place, name) or _find_run(spark, place, name)[0] is not None


def one_run(spark: SparkSession, text: str, name: str) -> str:
    """Name the one run that the table ``name`` is read from now, so that others come from it too.

    Returns:
        ``table:CATALOG.SCHEMA@RUN_ID``; the place itself where that table is not of runs.
    """
    place = CatalogPath.of(text)
    with raised_as(InputError, f"{text}: cannot be read"):
        if place.run_id or not _exists(spark, place, name) or not _has_runs(spark, place, name):
            return text
        return place.at(_known_run(spark, place, name, text).run_id)


def read(spark: SparkSession, text: str, name: str) -> DataFrame:
    """Read a table of a place: what the run wrote that is meant, or all of a table without runs."""
    place = CatalogPath.of(text)
    with raised_as(InputError, f"{text}: cannot be read"):
        if not _exists(spark, place, name):
            raise InputError(f"table {name}: not found in {text}; looked for {place.table(name)}")
        frame = spark.table(place.table(name))
        if RUN_ID not in frame.columns:
            if place.when is not None:
                raise InputError(
                    f"table {name} in {text}: has no column {RUN_ID}, so no times to choose from"
                )
            return frame
        run = _known_run(spark, place, name, text)
        columns = [F.col(quote_identifier(column)) for column in run.tables[name]]
        # The time as well: formats keep the least and the greatest value of files.
        is_of_run = (F.col(RUN_ID) == run.run_id) & (F.col(RUN_AT) == F.lit(time_of(run.run_id)))
        return frame.where(is_of_run).select(*columns)


def read_named(spark: SparkSession, text: str, name: str) -> DataFrame:
    """Read a table that a place names itself, or else the table ``name`` of the place."""
    place = CatalogPath.of(text)
    with raised_as(InputError, f"{text}: cannot be read"):
        itself = spark.catalog.tableExists(place.schema())
    if not itself:
        return read(spark, text, name)
    *schema, last = place.parts
    return read(spark, str(CatalogPath(tuple(schema), place.when)), last)


def _known_run(spark: SparkSession, place: CatalogPath, name: str, text: str) -> Run:
    run, earliest = _find_run(spark, place, name)
    if run is None:
        none = f"no run is as old as {place.when}; the earliest is of {earliest}"
        raise InputError(
            f"table {name} in {text}: {none if earliest else 'no complete run has it'}"
        )
    return run


def _find_run(spark: SparkSession, place: CatalogPath, name: str) -> tuple[Run | None, str | None]:
    """Find the newest complete run that has a table, not later than the place says.

    Returns:
        the run; or since when there are others that have the table.
    """
    run_id = place.run_id
    open_run = writing.get(run_id or "")
    if open_run is not None:
        return open_run if name in open_run.tables else None, None
    if not _exists(spark, place, RUNS):
        raise InputError(f"{place.schema()}: has no table {RUNS}, which says what is complete")
    moment = F.try_to_timestamp(F.lit(place.when))
    if place.when is None:
        meant = F.lit(True)
    else:
        meant = F.col(RUN_AT) <= moment if run_id is None else F.col(RUN_ID) == run_id
    chosen = F.struct(RUN_ID, "tables", "made_from")
    row: Any = (
        spark.table(place.table(RUNS))
        .where(F.map_contains_key("tables", name))
        .agg(
            F.max_by(F.when(meant, chosen), F.when(meant, F.struct(RUN_AT, RUN_ID))).alias("run"),
            F.date_format(F.min(RUN_AT), "yyyy-MM-dd HH:mm:ss.SSSSSSxxx").alias("earliest"),
            F.first(moment).isNull().alias("no_time"),
        )
        .first()
    )
    if row.run is not None:
        return Run(*row.run), None
    if place.when is None or run_id is not None:
        return None, None
    if row.earliest is not None and row.no_time:
        raise InputError(f"{place.when} is not a time; write it as 2026-01-31T08:00:00Z")
    return None, row.earliest


def _exists(spark: SparkSession, place: CatalogPath, name: str) -> bool:
    full = place.table(name)
    if not spark.catalog.tableExists(full):
        if not spark.catalog.databaseExists(place.schema()):
            raise InputError(f"schema {place.schema()}: not found")
        return False
    spark.sql(f"REFRESH TABLE {full}")  # a session may know it as it was before others appended
    return True


def _has_runs(spark: SparkSession, place: CatalogPath, name: str) -> bool:
    return RUN_ID in spark.table(place.table(name)).columns
