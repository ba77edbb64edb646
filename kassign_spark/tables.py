"""The only module that reads and writes tables: snapshots in, plans out.

A folder appears whole or not at all: everything is written beside its place under a hidden name,
which is then renamed.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple
from uuid import uuid4

from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, IntegerType, StringType, StructField

from kassign_spark.errors import InputError, OutputError
from kassign_spark.schemas import MEMBERS, OWNED, TOPIC_PARTITIONS, TOPICS, Table

FORMATS = {"parquet": "parquet", "csv": "csv", "json": "json", "jsonl": "json"}
"""File name endings and the format that Spark reads them with."""

TABLE_NAMES = {"members", "topics", "owned", "assignment", "balance", "violations", "problems"}
TABLE_NAMES |= {"diff", "steps", "listener", "summary"}


class Snapshot(NamedTuple):
    """What a cluster said, or what somebody wrote by hand: the unit that commands pass around."""

    members: DataFrame
    topics: DataFrame
    owned: DataFrame | None


def read_snapshot(path: str, spark: SparkSession) -> Snapshot:
    """Read a snapshot folder; the values are checked where they are used.

    Args:
        path: a folder with the tables ``members``, ``topics`` and, if known, ``owned``: each a
            folder or file such as ``members``, ``members.parquet``, ``members.csv`` or
            ``members.jsonl``. CSV has a header line; a cell that holds a list is a JSON array
            or, for plain names, ``t0;t1``.
        spark: the session.

    Raises:
        InputError: a table is not there, or a file is not what its name says.
    """
    return Snapshot(
        read_table(spark, path, MEMBERS),
        read_table(spark, path, TOPICS),
        read_table(spark, path, OWNED) if has_table(spark, path, OWNED.name) else None,
    )


def write_snapshot(
    snapshot: Snapshot, path: str, *, table_format: str = "parquet", overwrite: bool = False
) -> None:
    """Write a snapshot folder, whole or not at all.

    Args:
        snapshot: its tables are written as they are.
        path: the folder.
        table_format: `parquet`, `csv` or `json` (JSON lines).
        overwrite: replace a folder that this package wrote.

    Raises:
        OutputError: the folder exists, or cannot be written.
    """
    spark = snapshot.members.sparkSession
    with new_folder(spark, path, overwrite=overwrite) as folder:
        for table, frame in zip((MEMBERS, TOPICS, OWNED), snapshot, strict=True):
            if frame is not None:
                write_table(frame, folder, table.name, table_format)


def read_table(spark: SparkSession, folder: str, table: Table) -> DataFrame:
    """Read one table of a folder, with its declared columns as far as they are there.

    Raises:
        InputError: it is not there, cannot be read, or holds text that is no value of its column.
    """
    location, table_format = _locate(spark, folder, table.name)
    where = f"table {table.name} in {folder}"
    try:
        if table_format == "parquet":
            return spark.read.parquet(location)
        if table_format == "csv":
            return _parsed(spark.read.csv(location, header=True), table, where)
        return _read_json(spark, location, table, where)
    except AnalysisException as error:
        raise InputError(f"{where}: cannot be read: {_first_line(error)}") from None


def has_table(spark: SparkSession, folder: str, name: str) -> bool:
    """Whether the folder has such a table."""
    return bool(_candidates(spark, folder, name))


def write_table(frame: DataFrame, folder: str, name: str, table_format: str = "parquet") -> None:
    """Write one table into a folder of ``new_folder``."""
    if table_format == "csv":
        lists = [f.name for f in frame.schema if isinstance(f.dataType, ArrayType)]
        frame = frame.withColumns({column: F.to_json(column) for column in lists})
        frame.write.csv(f"{folder}/{name}", header=True)
    elif table_format == "json":
        frame.write.json(f"{folder}/{name}")
    else:
        frame.write.parquet(f"{folder}/{name}")


@contextmanager
def new_folder(spark: SparkSession, path: str, *, overwrite: bool = False) -> Iterator[str]:
    """Give a folder to write into, which becomes ``path`` when all went well.

    Raises:
        OutputError: ``path`` exists (or, with ``overwrite``, is not a folder that this package
            wrote), or another run took it in the meantime.
    """
    jvm: Any = spark._jvm
    target = jvm.org.apache.hadoop.fs.Path(path)
    files = _file_system(spark, target)
    _check_target(files, target, path, overwrite)
    name = target.getName()
    writing = jvm.org.apache.hadoop.fs.Path(target.getParent(), f".{name}.{uuid4().hex}.writing")
    try:
        yield writing.toString()
        _replace(spark, files, writing, target, path, overwrite)
    except Py4JJavaError as error:
        raise OutputError(f"output {path}: {_first_line(error.java_exception)}") from None
    finally:
        files.delete(writing, True)


def _check_target(files: Any, target: Any, path: str, overwrite: bool) -> None:
    if not files.exists(target):
        return
    if not overwrite:
        raise OutputError(f"output {path}: exists; name a new folder, or say --overwrite")
    names = [status.getPath().getName() for status in files.listStatus(target)]
    strange = sorted({name.split(".")[0] for name in names} - TABLE_NAMES - {"_SUCCESS", ""})
    if strange or files.getFileStatus(target).isFile():
        raise OutputError(
            f"output {path}: holds more than tables of ours ({', '.join(strange) or 'a file'}), "
            "so it is not overwritten; name another folder"
        )


def _replace(
    spark: SparkSession, files: Any, writing: Any, target: Any, path: str, overwrite: bool
) -> None:
    """Rename; unlike FileSystem.rename, FileContext's refuses a target that exists."""
    jvm: Any = spark._jvm
    context = jvm.org.apache.hadoop.fs.FileContext.getFileContext(files.getUri(), files.getConf())
    no_options = spark.sparkContext._gateway.new_array(  # type: ignore[union-attr]
        jvm.org.apache.hadoop.fs.Options.Rename, 0
    )
    replaced = None
    if overwrite and files.exists(target):
        replaced = jvm.org.apache.hadoop.fs.Path(
            target.getParent(), f".{target.getName()}.{uuid4().hex}.replaced"
        )
        context.rename(target, replaced, no_options)
    try:
        context.rename(writing, target, no_options)
    except Py4JJavaError as error:
        if files.exists(target):
            raise OutputError(
                f"output {path}: another run has written it meanwhile; this run's result is dropped"
            ) from None
        raise OutputError(f"output {path}: {_first_line(error.java_exception)}") from None
    if replaced is not None:
        files.delete(replaced, True)


def _file_system(spark: SparkSession, path: Any) -> Any:
    return path.getFileSystem(spark.sparkContext._jsc.hadoopConfiguration())


def _candidates(spark: SparkSession, folder: str, name: str) -> list[tuple[str, str | None]]:
    """Paths in the folder that hold the table, each with the format its name tells, if it does."""
    jvm: Any = spark._jvm
    base = jvm.org.apache.hadoop.fs.Path(folder)
    files = _file_system(spark, base)
    found = []
    for ending in (None, *FORMATS):
        path = jvm.org.apache.hadoop.fs.Path(base, f"{name}.{ending}" if ending else name)
        if files.exists(path):
            found.append((path.toString(), FORMATS[ending] if ending else None))
    return found


def _locate(spark: SparkSession, folder: str, name: str) -> tuple[str, str]:
    found = _candidates(spark, folder, name)
    if not found:
        endings = ", ".join(f"{name}.{ending}" for ending in FORMATS)
        raise InputError(f"table {name}: not found in {folder}; looked for {name}, {endings}")
    if len(found) > 1:
        raise InputError(
            f"table {name}: {folder} has it more than once ({', '.join(p for p, _ in found)})"
        )
    location, table_format = found[0]
    return location, table_format or _format_inside(spark, location, f"table {name} in {folder}")


def _format_inside(spark: SparkSession, location: str, where: str) -> str:
    """Tell the format of a folder by the names of the files in it."""
    path = spark._jvm.org.apache.hadoop.fs.Path(location)  # type: ignore[union-attr]
    names = [s.getPath().getName() for s in _file_system(spark, path).listStatus(path)]
    endings = {name.split(".", 1)[-1] for name in names if not name.startswith(("_", "."))}
    formats = {FORMATS[part] for e in endings for part in e.split(".") if part in FORMATS}
    if len(formats) != 1:
        seen = ", ".join(sorted(endings)) or "no file at all"
        raise InputError(f"{where}: holds {seen}, not files of one of {', '.join(FORMATS)}")
    return formats.pop()


def _read_json(spark: SparkSession, location: str, table: Table, where: str) -> DataFrame:
    named = set(spark.read.json(location).columns)
    present = [f for f in _all_fields(table) if f.name in named]
    declared = ", ".join(f"`{f.name}` {_read_type(f)}" for f in present)
    corrupt = "_corrupt_record"
    frame = spark.read.schema(f"{declared}, {corrupt} STRING" if declared else corrupt).json(
        location, columnNameOfCorruptRecord=corrupt
    )
    bad = frame.where(F.col(corrupt).isNotNull()).limit(1).collect()
    if bad:
        types = ", ".join(f"{f.name} {f.dataType.simpleString()}" for f in present)
        raise InputError(f"{where}: not a record of ({types}): {bad[0][corrupt]}")
    return frame.drop(corrupt)


def _all_fields(table: Table) -> list[StructField]:
    """The columns of a table, for topics those of both forms."""
    fields = list(table.columns)
    if table is TOPICS:
        fields += [f for f in TOPIC_PARTITIONS.columns if f.name == "partition"]
    return fields


def _read_type(field: StructField) -> str:
    integer = isinstance(field.dataType, IntegerType)
    return "BIGINT" if integer else field.dataType.simpleString()


def _parsed(text: DataFrame, table: Table, where: str) -> DataFrame:
    """Give the cells of a CSV file their types; text that does not fit is an error, not a null."""
    columns, unreadable = [], []
    for field in _all_fields(table):
        if field.name in text.columns:
            cell = F.col(f"`{field.name}`")
            value = _parse(cell, field)
            columns.append(value.alias(field.name))
            unreadable.append(
                F.when(
                    cell.isNotNull() & value.isNull(),
                    F.concat(F.lit(f"column {field.name}: "), cell, F.lit(" is no ")),
                )
            )
    if columns:
        shown = F.coalesce(*unreadable, F.lit(None).cast("string")).alias("shown")
        bad = text.select(shown).where("shown IS NOT NULL").limit(1).collect()
        if bad:
            column = bad[0].shown.split(":")[0].removeprefix("column ")
            (field,) = (f for f in _all_fields(table) if f.name == column)
            raise InputError(f"{where}, {bad[0].shown}{field.dataType.simpleString()}")
    return text.select(*columns)


def _parse(cell: Column, field: StructField) -> Column:
    if isinstance(field.dataType, IntegerType):
        return F.expr(f"try_cast(`{field.name}` AS BIGINT)")
    if not isinstance(field.dataType, ArrayType):
        return cell
    as_json = F.from_json(cell, field.dataType, {"mode": "PERMISSIVE"})
    if not isinstance(field.dataType.elementType, StringType):
        return as_json
    return F.when(cell.startswith("["), as_json).otherwise(F.split(cell, ";"))


def _first_line(error: object) -> str:
    text = error.getMessage() if hasattr(error, "getMessage") else str(error)
    return str(text or error).strip().splitlines()[0]
