"""Runs in the tables of a catalog: rows appended with their run, a row in ``runs`` written last.

An append to several tables is no transaction. So every row says which run it is of, and readers
go by the table ``runs``: what a run that ended in the middle has left is never read.
"""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, NamedTuple
from uuid import uuid4

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    DataType,
    MapType,
    NullType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from kassign_spark.errors import InputError, OutputError
from kassign_spark.schemas import SNAPSHOT_TABLES
from kassign_spark.spark_errors import SparkError, spark_message
from kassign_spark.tables.places import Place

RUN_ID, RUN_AT = "run_id", "run_at"
_STAMP = [StructField(RUN_ID, StringType()), StructField(RUN_AT, TimestampType())]
RUNS = "runs"
_RUNS = StructType(
    [
        *_STAMP,
        StructField("tables", MapType(StringType(), ArrayType(StringType()))),
        StructField("made_from", StringType()),
        StructField("made_from_at", TimestampType()),
    ]
)
"""A row a complete run; tables: the columns that it wrote, by table."""
_ID_TIME = "%Y%m%dT%H%M%S%fZ"
_DELETING = ("delta", "iceberg")
_DECLARED = {table.name: table.columns for table in SNAPSHOT_TABLES}


@dataclass
class _Writing:
    at: datetime
    tables: dict[str, list[str]] = field(default_factory=dict)
    made_from: str | None = None


_writing: dict[str, _Writing] = {}
"""The runs that this process is writing, by id: no table knows of them yet."""


class _Run(NamedTuple):
    run_id: str
    tables: dict[str, list[str]]
    made_from: str | None


@contextmanager
def new_run(spark: SparkSession, text: str, *, at: datetime | None = None) -> Iterator[str]:
    """Give a place to append tables to, which readers see when all went well.

    Args:
        spark: the session.
        text: ``table:CATALOG.SCHEMA``; the tables are made where they are missing.
        at: the time of the run (default: now); one without a time zone is of this machine's.

    Raises:
        OutputError: there is no such schema, a table in it is somebody else's, or it cannot be
            written.
    """
    place = Place.of(text)
    if place.when is not None:
        raise OutputError(f"output {text}: rows are appended with their own time; leave @... out")
    begun = datetime.now(UTC) if at is None else at.astimezone(UTC)
    run_id = f"{begun:{_ID_TIME}}-{uuid4().hex[:8]}"
    with _explained(f"output {text}"):
        if not spark.catalog.databaseExists(place.schema()):
            raise OutputError(
                f"output {text}: there is no such schema; CREATE SCHEMA {place.schema()} makes it"
            )
        if spark.catalog.tableExists(place.table(RUNS)):
            _refuse_foreign(spark.table(place.table(RUNS)).columns, text, RUNS)
    run = _writing[run_id] = _Writing(begun)
    try:
        yield place.at(run_id)
        with _explained(f"output {text}"):
            marker = _marker(spark, run)
            _insert(marker, place, run_id, RUNS, _ready(marker, place, RUNS, _RUNS))
    except BaseException:
        _take_back(spark, place, run_id)
        raise
    finally:
        del _writing[run_id]


def append(frame: DataFrame, text: str, name: str) -> None:
    """Append a table to a place of ``new_run``; missing columns of the catalog's table are added.

    Raises:
        OutputError: the catalog's table is somebody else's, or cannot be made or altered.
    """
    place = Place.of(text)
    run_id = place.run_id or ""
    there = _ready(frame, place, name, _DECLARED.get(name, StructType()))
    _writing[run_id].tables[name] = frame.columns
    _insert(frame, place, run_id, name, there)


def note(text: str, made_from: str | None) -> None:
    """Note what a run of ``new_run`` is made from."""
    _writing[Place.of(text).run_id or ""].made_from = made_from


def noted(spark: SparkSession, text: str, name: str) -> str | None:
    """Give what the run is made from that the table ``name`` is read from; None: not said."""
    place = Place.of(text)
    with _readable(text):
        run = _run_of(spark, place, name) if _of_runs(spark, place, name) else None
    return None if run is None else run.made_from


def has(spark: SparkSession, text: str, name: str) -> bool:
    """Whether a place has such a table, of the run that it names or of any.

    Raises:
        InputError: there is no such schema.
    """
    place = Place.of(text)
    with _readable(text):
        if not _exists(spark, place, name):
            return False
        return not _of_runs(spark, place, name) or _run_of(spark, place, name) is not None


def one_run(spark: SparkSession, text: str, name: str) -> str:
    """Name the one run that the table ``name`` is read from now, so that others come from it too.

    Returns:
        ``table:CATALOG.SCHEMA@RUN_ID``; the place itself where that table is not of runs.

    Raises:
        InputError: there is no such schema, or no such run.
    """
    place = Place.of(text)
    with _readable(text):
        if place.run_id or not _exists(spark, place, name) or not _of_runs(spark, place, name):
            return text
        return place.at(_found(spark, place, name, text).run_id)


def read(spark: SparkSession, text: str, name: str) -> DataFrame:
    """Read a table of a place: what the run wrote that is meant, or all of a table without runs.

    Raises:
        InputError: it is not there, or no complete run has it.
    """
    place = Place.of(text)
    with _readable(text):
        if not _exists(spark, place, name):
            raise InputError(f"table {name}: not found in {text}; looked for {place.table(name)}")
        frame = spark.table(place.table(name))
        if not _of_runs(spark, place, name):
            if place.when is not None:
                raise InputError(
                    f"table {name} in {text}: has no column {RUN_ID}, so no times to choose from"
                )
            return frame
        run = _found(spark, place, name, text)
        columns = [F.col(_quoted(column)) for column in run.tables[name]]
        at = F.lit(datetime.strptime(run.run_id.split("-")[0], _ID_TIME).replace(tzinfo=UTC))
        # The time as well: formats keep the least and the greatest value of files.
        return frame.where((F.col(RUN_ID) == run.run_id) & (F.col(RUN_AT) == at)).select(*columns)


def read_given(spark: SparkSession, text: str, name: str) -> DataFrame:
    """Read a table that a place names itself, or else the table ``name`` of the place.

    Raises:
        InputError: as ``read``.
    """
    place = Place.of(text)
    with _readable(text):
        itself = spark.catalog.tableExists(place.schema())
    if not itself:
        return read(spark, text, name)
    *schema, last = place.parts
    return read(spark, str(Place(tuple(schema), place.when)), last)


def _found(spark: SparkSession, place: Place, name: str, text: str) -> _Run:
    run = _run_of(spark, place, name)
    if run is None:
        raise InputError(f"table {name}: no complete run in {text} has it")
    return run


def _run_of(spark: SparkSession, place: Place, name: str) -> _Run | None:
    """The newest complete run that has a table, not later than the place says.

    Raises:
        InputError: the place names a time that is none, or one before all runs.
    """
    open_run = _writing.get(place.run_id or "")
    if open_run is not None:
        tables = open_run.tables
        return _Run(place.run_id or "", tables, open_run.made_from) if name in tables else None
    if not _exists(spark, place, RUNS):
        raise InputError(f"{place.schema()}: has no table {RUNS}, which says what is complete")
    if place.when is None:
        meant = F.lit(True)
    elif place.run_id is not None:
        meant = F.col(RUN_ID) == place.run_id
    else:
        meant = F.col(RUN_AT) <= F.lit(place.when).try_cast("timestamp")
    chosen = F.struct(RUN_ID, "tables", "made_from")
    row: Any = (
        spark.table(place.table(RUNS))
        .where(F.map_contains_key("tables", name))
        .agg(
            F.max_by(F.when(meant, chosen), F.when(meant, F.struct(RUN_AT, RUN_ID))).alias("run"),
            F.date_format(F.min(RUN_AT), "yyyy-MM-dd HH:mm:ss.SSSSSSxxx").alias("earliest"),
            F.lit(place.when).try_cast("timestamp").isNull().alias("no_time"),
        )
        .first()
    )
    if row.run is not None:
        return _Run(row.run.run_id, row.run.tables, row.run.made_from)
    if place.when is not None and place.run_id is None:
        if row.no_time:
            raise InputError(f"{place.when} is no time; write it as 2026-01-31T08:00:00Z")
        if row.earliest is not None:
            raise InputError(
                f"table {name} in {place.schema()}: no run is as old as {place.when}; "
                f"the earliest is of {row.earliest}"
            )
    return None


def _exists(spark: SparkSession, place: Place, name: str) -> bool:
    full = place.table(name)
    if not spark.catalog.tableExists(full):
        if not spark.catalog.databaseExists(place.schema()):
            raise InputError(f"schema {place.schema()}: not found")
        return False
    spark.sql(f"REFRESH TABLE {full}")  # a session may know it as it was before others appended
    return True


def _of_runs(spark: SparkSession, place: Place, name: str) -> bool:
    full = place.table(name)
    return spark.catalog.tableExists(full) and RUN_ID in spark.table(full).columns


def _ready(frame: DataFrame, place: Place, name: str, declared: StructType) -> StructType:
    """Make the catalog's table, or give it the columns that it lacks; its columns then."""
    spark = frame.sparkSession
    full = place.table(name)
    fields = [*_STAMP, *_typed(frame.schema, declared)]
    with _explained(f"output {place.schema()}, table {name}"):
        if not spark.catalog.tableExists(full):
            spark.sql(f"CREATE TABLE IF NOT EXISTS {full} ({_columns(fields)})")
        there = spark.table(full).schema
        _refuse_foreign(there.names, place.schema(), name)
        known = {column.lower() for column in there.names}
        missing = [f for f in fields if f.name.lower() not in known]
        if missing:
            spark.sql(f"ALTER TABLE {full} ADD COLUMNS ({_columns(missing)})")
            there = spark.table(full).schema
    return there


def _insert(frame: DataFrame, place: Place, run_id: str, name: str, there: StructType) -> None:
    stamp = {RUN_ID: F.lit(run_id), RUN_AT: F.lit(_writing[run_id].at)}
    given = stamp | {column.lower(): F.col(_quoted(column)) for column in frame.columns}
    # By position, which every kind of table takes.
    frame.select(
        *(given.get(f.name.lower(), F.lit(None)).cast(f.dataType).alias(f.name) for f in there)
    ).write.insertInto(place.table(name))


def _typed(given: StructType, declared: StructType) -> list[StructField]:
    """The declared columns and what else a frame has; a column of nulls gets a type."""
    types: dict[str, DataType] = {f.name: f.dataType for f in declared}
    for f in given:
        if f.name not in types:
            types[f.name] = StringType() if isinstance(f.dataType, NullType) else f.dataType
    stamp = {f.name for f in _STAMP}
    return [StructField(name, data_type) for name, data_type in types.items() if name not in stamp]


def _columns(fields: list[StructField]) -> str:
    return ", ".join(f"{_quoted(f.name)} {f.dataType.simpleString()}" for f in fields)


def _refuse_foreign(columns: list[str], where: str, name: str) -> None:
    if RUN_ID not in columns or RUN_AT not in columns:
        raise OutputError(
            f"output {where}: the table {name} there has no columns {RUN_ID} and {RUN_AT}, so it "
            "is not kassign-spark's; name another schema"
        )


def _marker(spark: SparkSession, run: _Writing) -> DataFrame:
    place = None if run.made_from is None else run.made_from.rpartition("@")[2]
    made_at = None
    with suppress(ValueError):
        made_at = datetime.strptime((place or "").split("-")[0], _ID_TIME).replace(tzinfo=UTC)
    row = (run.tables, run.made_from, made_at)
    return spark.createDataFrame([row], StructType(list(_RUNS)[len(_STAMP) :]))


def _take_back(spark: SparkSession, place: Place, run_id: str) -> None:
    """Delete what a run has appended, where tables can do that; nobody reads it anyway."""
    for name in _writing[run_id].tables:
        full = place.table(name)
        with suppress(*SparkError):
            told = spark.sql(f"DESCRIBE TABLE EXTENDED {full}").where("col_name = 'Provider'")
            if any(row.data_type.lower() in _DELETING for row in told.collect()):
                spark.sql(f"DELETE FROM {full} WHERE {RUN_ID} = '{run_id}'")


@contextmanager
def _explained(where: str) -> Iterator[None]:
    try:
        yield
    except SparkError as error:
        raise OutputError(f"{where}: {spark_message(error)}") from None


@contextmanager
def _readable(text: str) -> Iterator[None]:
    try:
        yield
    except SparkError as error:
        raise InputError(f"{text}: cannot be read: {spark_message(error)}") from None


def _quoted(name: str) -> str:
    return "`{}`".format(name.replace("`", "``"))
