"""Whether the inputs of a command are small: to start Spark costs more than the work then."""

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa

from kassign_spark.schemas import TOPICS

SMALL_BYTES = 1 << 20
SMALL_PARTITIONS = 100_000


def are_small(inputs: Sequence[str]) -> bool:
    """Return whether the inputs, if any, are local and small.

    In total they have ``SMALL_BYTES`` at most, and tables of topics ``SMALL_PARTITIONS`` partitions
    at most: a short list of topics may have millions.
    """
    if not inputs or not all(Path(input_path).exists() for input_path in inputs):
        return False
    bytes_left = SMALL_BYTES
    files = []
    try:
        for input_path in map(Path, inputs):
            for path in [input_path] if input_path.is_file() else input_path.rglob("*"):
                if path.is_file():
                    files.append(path)
                    bytes_left -= path.stat().st_size
                if bytes_left < 0:
                    return False
        return sum(map(_partition_count, files)) <= SMALL_PARTITIONS
    except OSError:  # what cannot be read is refused later, by its name
        return False


def _partition_count(path: Path) -> int:
    """Return the number of partitions of a file of topics; 0 if it is another, or a damaged one."""
    if not any(name.split(".")[0] == TOPICS.name for name in (path.name, path.parent.name)):
        return 0
    try:
        table = _table_of(path)
        return 0 if table is None else sum(filter(None, table["num_partitions"].to_pylist()))
    except (pa.ArrowException, KeyError, TypeError, ValueError):
        return 0


def _table_of(path: Path) -> pa.Table | None:
    # A command reads one of the three, and each takes its time to import.
    if path.suffix == ".parquet":
        from pyarrow.parquet import ParquetFile

        return ParquetFile(path).read(["num_partitions"])
    if path.suffix == ".csv":
        from pyarrow.csv import read_csv

        return read_csv(path)
    if path.suffix in (".json", ".jsonl"):
        from pyarrow.json import read_json

        return read_json(path)
    return None
