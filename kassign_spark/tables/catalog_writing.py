"""Runs in the tables of a catalog, written: rows with their run, a row in ``runs`` last.

An append to several tables is no transaction. So every row says which run it is of, and readers
go by the table ``runs``: what a run that ended in the middle has left is never read.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime

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

from kassign_spark.errors import OutputError
from kassign_spark.interrupts import note_written
from kassign_spark.schemas import SNAPSHOT_TABLES
from kassign_spark.spark.spark_errors import SparkError, raised_as
from kassign_spark.tables.catalog_paths import CatalogPath, is_catalog_path, quote_identifier
from kassign_spark.tables.catalog_runs import (
    RUN_AT,
    RUN_ID,
    RUNS,
    Run,
    run_id_at,
    time_of,
    writing,
)

_STAMP = [StructField(RUN_ID, StringType()), StructField(RUN_AT, TimestampType())]
_RUNS = StructType(
    [
        *_STAMP,
        StructField("tables", MapType(StringType(), ArrayType(StringType()))),
        StructField("made_from", StringType()),
        StructField("made_from_at", TimestampType()),
    ]
)
"""A row a complete run; tables: the columns that it wrote, by table."""
_DELETING = ("delta", "iceberg")
_OWN_CATALOG = "spark_catalog"
_ATTEMPTS, _SECONDS_BETWEEN = 3, 1.0
_DECLARED = {table.name: table.columns for table in SNAPSHOT_TABLES}


@contextmanager
def new_run(spark: SparkSession, text: str, *, at: datetime | None = None) -> Iterator[str]:
    """Return a place to append tables to, which readers see when all went well.

    Missing tables are made. A time of the run (default: now) without a time zone is this machine's.

    Raises:
        OutputError: there is no such schema, a table in it is somebody else's, or it cannot be
            written.
    """
    place = CatalogPath.of(text)
    if place.when is not None:
        raise OutputError(f"output {text}: rows are appended with their own time; leave @... out")
    run_id = run_id_at(at or datetime.now(UTC))
    with raised_as(OutputError, f"output {text}"):
        if not spark.catalog.databaseExists(place.schema()):
            raise OutputError(f"output {text}: there is no such schema; {_advice(spark, place)}")
        if spark.catalog.tableExists(place.table(RUNS)):
            _refuse_foreign(spark.table(place.table(RUNS)).columns, text, RUNS)
    run = writing[run_id] = Run(run_id)
    try:
        yield place.at(run_id)
        with raised_as(OutputError, f"output {text}"):
            marker = _marker(spark, run)
            _insert(marker, place, run_id, RUNS, _ready(marker, place, RUNS, _RUNS))
        note_written(text)
    except BaseException:
        _take_back(spark, place, run_id)
        raise
    finally:
        del writing[run_id]


def append(frame: DataFrame, text: str, name: str) -> None:
    """Append a table to a place of ``new_run``; missing columns of the catalog's table are added.

    Raises:
        OutputError: the catalog's table is somebody else's, or cannot be made or altered.
    """
    place = CatalogPath.of(text)
    run_id = place.run_id or ""
    existing = _ready(frame, place, name, _DECLARED.get(name, StructType()))
    writing[run_id].tables[name] = frame.columns
    _insert(frame, place, run_id, name, existing)


def note(text: str, made_from: str | None) -> None:
    """Note what a run of ``new_run`` is made from."""
    writing[CatalogPath.of(text).run_id or ""].made_from = made_from


def _advice(spark: SparkSession, place: CatalogPath) -> str:
    catalog = spark.conf.get(f"spark.sql.catalog.{place.parts[0]}", None)
    is_builtin = catalog in (None, "builtin")
    if is_builtin and spark.conf.get("spark.sql.catalogImplementation") == "in-memory":
        return (
            "Spark's own catalog is in memory here and ends with the session; name one that lasts, "
            "which spark-submit --conf, or spark-defaults.conf in SPARK_CONF_DIR, makes known"
        )
    return f"CREATE SCHEMA {place.schema()} makes it"


def _ready(frame: DataFrame, place: CatalogPath, name: str, declared: StructType) -> StructType:
    """Make the catalog's table, or give it the columns that it lacks; its columns then."""
    spark = frame.sparkSession
    full = place.table(name)
    fields = [*_STAMP, *_type_columns(frame.schema, declared)]
    with raised_as(OutputError, f"output {place.schema()}, table {name}"):
        if not spark.catalog.tableExists(full):
            _create(spark, full, fields, _using(spark, place))
        existing = spark.table(full).schema
        _refuse_foreign(existing.names, place.schema(), name)
        column_names = {column.lower() for column in existing.names}
        missing = [f for f in fields if f.name.lower() not in column_names]
        if missing:
            spark.sql(f"ALTER TABLE {full} ADD COLUMNS ({_columns(missing)})")
            existing = spark.table(full).schema
    return existing


def _using(spark: SparkSession, place: CatalogPath) -> str:
    """Return the clause of a new table's source, where Spark 3.5 would make a table of Hive's."""
    catalog = place.parts[0] if len(place.parts) > 1 else spark.catalog.currentCatalog()
    return f"USING {spark.conf.get('spark.sql.sources.default')}" if catalog == _OWN_CATALOG else ""


def _create(spark: SparkSession, full: str, fields: list[StructField], using: str) -> None:
    """Make a table unless it is there; another run may be making it.

    Delta Lake says of that only that its table has changed, so it is asked again.
    """
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            spark.sql(f"CREATE TABLE IF NOT EXISTS {full} ({_columns(fields)}) {using}")
        except SparkError:
            if attempt == _ATTEMPTS:
                raise
            time.sleep(_SECONDS_BETWEEN)
        else:
            return


def _insert(
    frame: DataFrame, place: CatalogPath, run_id: str, name: str, existing: StructType
) -> None:
    stamp = {RUN_ID: F.lit(run_id), RUN_AT: F.lit(time_of(run_id))}
    values = stamp | {column.lower(): F.col(quote_identifier(column)) for column in frame.columns}
    absent = F.lit(None)
    columns = [values.get(f.name.lower(), absent.cast(f.dataType)).alias(f.name) for f in existing]
    # By position, which every kind of table takes; what would lose digits Spark refuses.
    frame.select(*columns).write.insertInto(place.table(name))


def _type_columns(actual: StructType, declared: StructType) -> list[StructField]:
    """Return the declared columns and what else a frame has; a column of nulls gets a type."""
    types: dict[str, DataType] = {f.name: f.dataType for f in declared}
    for f in actual:
        types.setdefault(f.name, StringType() if isinstance(f.dataType, NullType) else f.dataType)
    stamp = {f.name for f in _STAMP}
    return [StructField(name, data_type) for name, data_type in types.items() if name not in stamp]


def _columns(fields: list[StructField]) -> str:
    return ", ".join(f"{quote_identifier(f.name)} {f.dataType.simpleString()}" for f in fields)


def _refuse_foreign(columns: list[str], place: str, name: str) -> None:
    if RUN_ID not in columns or RUN_AT not in columns:
        raise OutputError(
            f"output {place}: the table {name} there has no columns {RUN_ID} and {RUN_AT}, so it "
            "is not kassign-spark's; name another schema"
        )


def _marker(spark: SparkSession, run: Run) -> DataFrame:
    made_from = run.made_from or ""
    source = CatalogPath.of(made_from).run_id if is_catalog_path(made_from) else None
    made_at = None if source is None else time_of(source)
    row = (run.tables, run.made_from, made_at)
    return spark.createDataFrame([row], StructType(list(_RUNS)[len(_STAMP) :]))


def _take_back(spark: SparkSession, place: CatalogPath, run_id: str) -> None:
    """Delete what a run has appended, where tables can do that; nobody reads it anyway."""
    for name in writing[run_id].tables:
        full = place.table(name)
        with suppress(*SparkError):
            provider = spark.sql(f"DESCRIBE TABLE EXTENDED {full}").where("col_name = 'Provider'")
            if any(row.data_type.lower() in _DELETING for row in provider.collect()):
                spark.sql(f"DELETE FROM {full} WHERE {RUN_ID} = '{run_id}'")
