"""Hadoop's file systems, by the Java of a session in this process."""

from contextlib import closing
from typing import Any

from pyspark.sql import SparkSession

from kassign_spark.tables.files import Entry

_RENAMING = frozenset({"file", "hdfs", "webhdfs", "swebhdfs", "viewfs"})
"""Schemes whose rename of a folder is one step."""
_AZURE = frozenset({"abfs", "abfss"})
_HIERARCHICAL = "fs.capability.etags.preserved.in.rename"
"""Azure's property of an account with a hierarchical namespace."""
_IF_ABSENT = "fs.option.create.conditional.overwrite"
"""S3's conditional PUT, where Hadoop (3.4.2 and later) and the store have it."""


class HadoopFiles:
    """``Files`` of any path for which the session has a file system.

    Args:
        spark: the session.
        path: one of the file system.

    Raises:
        Py4JJavaError: there is no such file system, or it is not a path.
    """

    def __init__(self, spark: SparkSession, path: str) -> None:
        gateway: Any = spark.sparkContext._gateway
        self._gateway = gateway
        self._hadoop = gateway.jvm.org.apache.hadoop.fs
        hadoop_path = self._hadoop.Path(path)
        self._files = hadoop_path.getFileSystem(spark.sparkContext._jsc.hadoopConfiguration())
        self.path = str(self._files.makeQualified(hadoop_path).toString())
        """The path with its scheme."""

    def exists(self, path: str) -> bool:
        return bool(self._files.exists(self._hadoop.Path(path)))

    def is_file(self, path: str) -> bool:
        hadoop_path = self._hadoop.Path(path)
        return bool(
            self._files.exists(hadoop_path) and self._files.getFileStatus(hadoop_path).isFile()
        )

    def entries(self, folder: str) -> dict[str, Entry]:
        hadoop_path = self._hadoop.Path(folder)
        if not self._files.exists(hadoop_path):
            return {}
        return {
            status.getPath().getName(): Entry(
                str(status.getPath().toString()), bool(status.isDirectory()), int(status.getLen())
            )
            for status in self._files.listStatus(hadoop_path)
        }

    def read(self, path: str, count: int) -> bytes:
        with closing(self._files.open(self._hadoop.Path(path))) as stream:
            return bytes(stream.readNBytes(count))

    def write(self, path: str, text: str) -> None:
        _write(self._files.create(self._hadoop.Path(path), True), text)

    def write_new(self, path: str, text: str) -> None:
        hadoop_path = self._hadoop.Path(path)
        if not self._files.hasPathCapability(hadoop_path, _IF_ABSENT):
            _write(self._files.create(hadoop_path, False), text)
            return
        builder = self._files.createFile(hadoop_path)
        builder.must(_IF_ABSENT, "true")
        _write(builder.build(), text)

    def make_folder(self, path: str) -> bool:
        return bool(self._files.mkdirs(self._hadoop.Path(path)))

    def rename(self, path: str, target: str) -> None:
        context = self._hadoop.FileContext.getFileContext(
            self._files.getUri(), self._files.getConf()
        )
        # Without options this refuses a target that exists; FileSystem's own does not.
        no_options = self._gateway.new_array(self._hadoop.Options.Rename, 0)
        context.rename(self._hadoop.Path(path), self._hadoop.Path(target), no_options)

    def renames_at_once(self, path: str) -> bool:
        """Return whether a rename is at once; object stores copy and delete file by file."""
        scheme = path.partition(":")[0]
        if scheme in _AZURE:
            return bool(self._files.hasPathCapability(self._hadoop.Path(path), _HIERARCHICAL))
        return scheme in _RENAMING

    def delete(self, path: str, *, whole: bool = True) -> bool:
        return bool(self._files.delete(self._hadoop.Path(path), whole))

    def delete_at_exit(self, path: str) -> None:
        self._files.deleteOnExit(self._hadoop.Path(path))

    def keep_at_exit(self, path: str) -> None:
        self._files.cancelDeleteOnExit(self._hadoop.Path(path))


def _write(stream: Any, text: str) -> None:
    with closing(stream):
        stream.write(bytearray(text.encode()))
