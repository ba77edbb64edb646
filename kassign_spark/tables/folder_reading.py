"""Tables in a folder, found and read: by names and endings, and of the run that a marker names."""

from pyspark.sql import DataFrame, SparkSession

from kassign_spark.errors import InputError
from kassign_spark.schemas import Table
from kassign_spark.spark.spark_errors import raised_as
from kassign_spark.tables.files import pattern_of, read_small
from kassign_spark.tables.folder_runs import CURRENT, run_in
from kassign_spark.tables.local_files import local_path
from kassign_spark.tables.locating import locate
from kassign_spark.tables.text import read_csv, read_json

FORMATS = {"parquet": "parquet", "csv": "csv", "json": "json", "jsonl": "json"}
"""File name endings and the format that they stand for."""

_UNFINISHED = "_temporary"
"""Folder in which Spark keeps the parts of an unfinished folder."""


def read(spark: SparkSession, folder: str, table: Table) -> DataFrame:
    """Read one table of a folder, with the columns that are there."""
    place = f"table {table.name} in {folder}"
    with raised_as(InputError, f"{place}: cannot be read"):
        return _read(spark, *_locate(spark, folder, table.name), table, place)


def read_file_of(spark: SparkSession, path: str, table: Table) -> DataFrame | None:
    """Read a table from a path whose ending names its format; None: it names none."""
    table_format = FORMATS.get(path.rstrip("/").rpartition(".")[2])
    if table_format is None:
        return None
    place = f"table {table.name} in {path}"
    with raised_as(InputError, f"{place}: cannot be read"):
        return _read(spark, locate(spark, path)[1], table_format, table, place)


def has(spark: SparkSession, folder: str, name: str) -> bool:
    """Return whether a folder has such a table."""
    return bool(_candidates(spark, folder, name))


def one_run(spark: SparkSession, folder: str) -> str:
    """Name the folder where the tables are: itself or, in an object store, that of a run."""
    return _run_in(spark, _entries(spark, folder), folder) or folder


def _read(
    spark: SparkSession, location: str, table_format: str, table: Table, place: str
) -> DataFrame:
    _refuse_other_files(spark, location, place)
    pattern = pattern_of(location)
    if table_format == "parquet":
        return spark.read.parquet(pattern)
    read = read_csv if table_format == "csv" else read_json
    return read(spark, pattern, table, place)


def _refuse_other_files(spark: SparkSession, location: str, place: str) -> None:
    """Refuse pipes, sockets and devices of this machine, which may have no end."""
    path = local_path(locate(spark, location)[1])
    if path is None:
        return
    for file in [*path.rglob("*")] if path.is_dir() else [path]:
        if file.exists() and not (file.is_file() or file.is_dir()):
            raise InputError(f"{place}: {file.name} is not a regular file")


def _candidates(spark: SparkSession, folder: str, name: str) -> list[tuple[str, str | None]]:
    """Return the folder's paths that hold the table, each with the format in its name, if any."""
    entries = _entries(spark, folder)
    run = _run_in(spark, entries, folder)
    if run is not None:
        entries = _entries(spark, run)
    names = {name: None, **{f"{name}.{ending}": f for ending, f in FORMATS.items()}}
    return [(entries[n], names[n]) for n in names if n in entries]


def _run_in(spark: SparkSession, entries: dict[str, str], folder: str) -> str | None:
    def marker() -> bytes:
        return read_small(*locate(spark, entries[CURRENT])) or b""

    with raised_as(InputError, f"folder {folder}: cannot be read"):
        run = run_in(entries, marker, folder)
    return None if run is None else f"{entries[CURRENT].removesuffix(CURRENT)}{run}"


def _entries(spark: SparkSession, folder: str) -> dict[str, str]:
    """Return the path of everything in a folder, by name."""
    if folder.lower().startswith(("http://", "https://")):
        raise InputError(
            f"folder {folder}: is an address on the web, which has no folders of tables"
        )
    with raised_as(InputError, f"folder {folder}"):
        files, base = locate(spark, folder)
        entries = files.entries(base)
        if not entries and files.is_file(base):
            raise InputError(f"folder {folder}: is a file; name the folder that holds the tables")
        if not entries and not files.exists(base):
            raise InputError(f"folder {folder}: not found")
        return {name: entry.path for name, entry in entries.items()}


def _locate(spark: SparkSession, folder: str, name: str) -> tuple[str, str]:
    candidates = _candidates(spark, folder, name)
    if not candidates:
        endings = ", ".join(f"{name}.{ending}" for ending in FORMATS)
        raise InputError(f"table {name}: not found in {folder}; looked for {name}, {endings}")
    if len(candidates) > 1:
        names = ", ".join(path.rsplit("/", 1)[-1] for path, _ in candidates)
        raise InputError(f"table {name}: {folder} has it more than once ({names})")
    location, table_format = candidates[0]
    return location, table_format or _format_inside(spark, location, f"table {name} in {folder}")


def _format_inside(spark: SparkSession, location: str, place: str) -> str:
    """Return the format of a folder by the names of the files in it."""
    files, path = locate(spark, location)
    names = [*files.entries(path)]
    if _UNFINISHED in names:
        raise InputError(f"{place}: is being written, or the writing of it was cut short")
    shown = sorted(name for name in names if not name.startswith(("_", ".")))
    formats = {FORMATS[part] for name in shown for part in name.split(".")[1:] if part in FORMATS}
    if len(formats) != 1:
        seen = ", ".join(shown[:3]) or "no file at all"
        raise InputError(f"{place}: holds {seen}; needed are files of one of {', '.join(FORMATS)}")
    return formats.pop()
