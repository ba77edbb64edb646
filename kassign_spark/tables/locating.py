"""Which file system a path belongs to: this machine's, one of Hadoop's, or a server's."""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import SparkSession

from kassign_spark.errors import OutputError
from kassign_spark.spark.local_server import is_served
from kassign_spark.spark.sessions import is_connect
from kassign_spark.spark.spark_errors import raised_as
from kassign_spark.tables.files import Files
from kassign_spark.tables.hadoop import HadoopFiles
from kassign_spark.tables.local_files import SCHEME, LocalFiles
from kassign_spark.tables.server_files import ServerFiles

_HAS_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")


def locate(spark: SparkSession, path: str) -> tuple[Files, str]:
    """Return the file system of a path, and the path with its scheme.

    Behind Spark Connect paths are the server's; where it is this user's own on this machine, a
    path without a scheme is this process's.

    Raises:
        Py4JJavaError: there is no such file system, or it is not a path.
    """
    if not is_connect(spark):
        hadoop = HadoopFiles(spark, path)
        is_local = hadoop.path.startswith(SCHEME)
        return LocalFiles(hadoop) if is_local else hadoop, hadoop.path
    if is_served(spark) and (path.startswith(SCHEME) or not _HAS_SCHEME.match(path)):
        return LocalFiles(), SCHEME + os.path.abspath(re.sub(r"^file:/*", "/", path))
    return ServerFiles(spark), path.rstrip("/")


@contextmanager
def explained(path: str) -> Iterator[None]:
    """Explain in one line what cannot be done with an output."""
    try:
        with raised_as(OutputError, f"output {path}"):
            yield
    except OSError as error:
        raise OutputError(f"output {path}: {error.strerror}") from None
