"""The file systems of a server of Spark Connect, by Spark's own reading and writing of files.

It hides names that begin with ``_`` or a dot, and can neither rename nor delete. What stands for a
small file may be a folder with one file in it, as Spark writes text.
"""

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from kassign_spark.spark.spark_versions import error_condition
from kassign_spark.tables.files import Entry, child, pattern_of


class ServerFiles:
    """``Files`` of a server, as far as Spark Connect reaches."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    def exists(self, path: str) -> bool:
        return bool(self._sizes(path))

    def is_file(self, path: str) -> bool:
        sizes = self._sizes(path)
        return len(sizes) == 1 and next(iter(sizes)).endswith(path)

    def entries(self, folder: str) -> dict[str, Entry]:
        start = child(folder, "")
        entries = {}
        for path, size in self._sizes(folder).items():
            # The server's paths have a scheme, and the folder may have none.
            before, is_below, below = path.rpartition(start)
            if not is_below:
                continue
            name, is_folder, _ = below.partition("/")
            entries[name] = Entry(
                f"{before}{start}{name}", bool(is_folder), 0 if is_folder else size
            )
        return entries

    def read(self, path: str, count: int) -> bytes:
        rows = self._spark.read.text(pattern_of(path), wholetext=True).collect()
        return b"".join(row.value.encode()[:count] for row in rows)

    def write_new(self, path: str, text: str) -> None:
        frame = self._spark.createDataFrame([(text,)], "value string")
        frame.coalesce(1).write.text(path, lineSep="\n")

    write = write_new

    def make_folder(self, path: str) -> bool:
        return True

    def rename(self, path: str, target: str) -> None:
        raise NotImplementedError

    def renames_at_once(self, path: str) -> bool:
        return False

    def delete(self, path: str, *, whole: bool = True) -> bool:
        return False

    def delete_at_exit(self, path: str) -> None:
        pass

    def keep_at_exit(self, path: str) -> None:
        pass

    def _sizes(self, path: str) -> dict[str, int]:
        """Return the size of every file below a path, or of the file itself."""
        reader = self._spark.read.format("binaryFile").option("recursiveFileLookup", True)
        try:
            rows = reader.load(pattern_of(path)).select("path", "length").collect()
        except PySparkException as error:
            if error_condition(error) == "PATH_NOT_FOUND":
                return {}
            raise
        return {row.path: row.length for row in rows}
