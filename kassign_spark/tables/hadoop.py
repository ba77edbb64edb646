"""Hadoop's file systems as folders and small files of ours need them."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from kassign_spark.errors import InputError, OutputError
from kassign_spark.limits import TEXT_FILE_BYTES
from kassign_spark.spark_errors import raised_as

_RENAMING = frozenset({"file", "hdfs", "webhdfs", "swebhdfs", "viewfs"})
"""Schemes whose rename of a folder is one step."""
_AZURE = frozenset({"abfs", "abfss"})
_HIERARCHICAL = "fs.capability.etags.preserved.in.rename"
"""Azure's property of an account with a hierarchical namespace."""


def located(spark: SparkSession, path: str) -> tuple[Any, Any]:
    """The file system of a path, and the path with its scheme.

    Raises:
        Py4JJavaError: there is no such file system.
        PySparkException: it is not a path.
    """
    hadoop_path = path_class(spark)(path)
    files = hadoop_path.getFileSystem(spark.sparkContext._jsc.hadoopConfiguration())
    return files, files.makeQualified(hadoop_path)


def path_class(spark: SparkSession) -> Any:
    """Hadoop's class of paths."""
    jvm: Any = spark._jvm
    return jvm.org.apache.hadoop.fs.Path


def local_path(path: Any) -> Path | None:
    """The same path for Python; None: it is not of this machine's file system."""
    return Path(path.toUri().getPath()) if str(path.toUri().getScheme()) == "file" else None


def child(path: Any, name: str) -> Any:
    """Return the path of that name in a folder, which is no root."""
    return path.suffix(f"/{name}")


def entries(files: Any, folder: Any) -> dict[str, Any]:
    """The status of everything in a folder, by name; nothing where there is no folder."""
    if not files.exists(folder):
        return {}
    return {status.getPath().getName(): status for status in files.listStatus(folder)}


def renames_at_once(files: Any, path: Any) -> bool:
    """Return whether a folder is renamed in one step there.

    Object stores, and whatever is not known, copy and delete file by file instead.
    """
    scheme = str(path.toUri().getScheme())
    if scheme in _AZURE:
        return bool(files.hasPathCapability(path, _HIERARCHICAL))
    return scheme in _RENAMING


def read_file(files: Any, path: Any) -> bytes:
    """Read a small file.

    Raises:
        InputError: it has more than ``TEXT_FILE_BYTES``, or is a pipe, a socket or a device.
    """
    local = local_path(path)
    if local is not None and local.exists() and not (local.is_file() or local.is_dir()):
        raise InputError(f"file {path} is not a regular file")
    with closing(files.open(path)) as stream:
        content = bytes(stream.readNBytes(TEXT_FILE_BYTES + 1))
    if len(content) > TEXT_FILE_BYTES:
        raise InputError(f"file {path} has more than {TEXT_FILE_BYTES:,} bytes")
    return content


def write_file(stream: Any, text: str) -> None:
    """Write a small text file to a stream of Hadoop's, and close it."""
    with closing(stream):
        stream.write(bytearray(text.encode()))


@contextmanager
def explained(path: str) -> Iterator[None]:
    """Explain in one line what cannot be done with an output."""
    try:
        with raised_as(OutputError, f"output {path}"):
            yield
    except OSError as error:
        raise OutputError(f"output {path}: {error.strerror}") from None
