"""The raw records of the group log in tasks: of each group all of them, some groups at once."""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Protocol

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from kassign_spark.log.decode import Decoded, decode
from kassign_spark.sessions import cores

NAME = "group_name"
COLUMNS = ("key", "value", "timestamp", "partition", "offset")
_MOST_BYTES = 1 << 25
"""Of keys and values whose groups are read at once."""
_TASKS_A_CORE = 2


class HasRecords(Protocol):
    """What ``read_group_log`` gives."""

    @property
    def records(self) -> DataFrame:
        """The raw records."""


def with_group(records: DataFrame) -> DataFrame:
    """Give raw records the bytes of their groups' names: ``NAME`` and ``COLUMNS``."""
    return records.select(group_of(F.col("key")).alias(NAME), *COLUMNS)


def by_whole_groups(
    records: DataFrame, kernel: Callable[[pa.Table], pa.Table], schema: StructType
) -> DataFrame:
    """Call ``kernel`` with all records of some groups, each group's as the log has them.

    Args:
        records: of a batch.
        kernel: from ``NAME`` and ``COLUMNS`` to rows of ``schema``; what it is given at once is
            bounded, but for one group.
        schema: of what it answers.
    """
    tasks = _TASKS_A_CORE * cores(records.sparkSession)
    whole = with_group(records).repartition(tasks, NAME)
    sorted_ = whole.sortWithinPartitions(NAME, "partition", "offset")
    return sorted_.mapInArrow(partial(_by_whole_groups, kernel, _MOST_BYTES), schema)


def decode_table(table: pa.Table, *, owned: bool = False) -> Decoded:
    """Decode raw records."""
    return decode(*(table[name] for name in COLUMNS), owned=owned)


def group_of(key: Column) -> Column:
    """The bytes of the group's name in a key: all begin with a version and the name's length."""
    length = F.conv(F.hex(F.substring(key, 3, 2)), 16, 10).cast("int")
    return F.coalesce(F.substring(key, F.lit(5), length), F.lit(b""))


def _by_whole_groups(
    kernel: Callable[[pa.Table], pa.Table], most_bytes: int, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Read the groups of a task, some at once; the rows come by group."""
    waiting: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        names = batch.column(NAME)
        waiting.append(batch)
        size += batch.nbytes
        if size > most_bytes:
            last = names[-1]
            begins = pc.index(names, last).as_py()
            if begins or (waiting[:-1] and waiting[-2].column(NAME)[-1] != last):
                whole = [*waiting[:-1], batch.slice(0, begins)]
                yield from kernel(pa.Table.from_batches(whole)).to_batches()
                waiting = [batch.slice(begins)]
                size = waiting[0].nbytes
    if waiting:
        yield from kernel(pa.Table.from_batches(waiting)).to_batches()
