"""The raw records of the group log in tasks: of each group all of them, some groups at once."""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, NamedTuple, Protocol, cast

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from kassign_spark.log.records import COLUMNS
from kassign_spark.spark.archives import forgetting_archives
from kassign_spark.spark.sessions import cores

NAME = "group_name"
_MOST_BYTES = 1 << 25
"""Bytes of keys and values of groups that are read together."""
_TASKS_A_CORE = 2


class HasRecords(Protocol):
    """An object such as ``read_group_log`` returns."""

    @property
    def records(self) -> DataFrame:
        """Return the raw records."""


def records_of(log: HasRecords | DataFrame) -> DataFrame:
    """Return the raw records themselves."""
    return log.records if isinstance(log, tuple) else cast(DataFrame, log)


def with_group(records: DataFrame) -> DataFrame:
    """Return raw records with the bytes of their groups' names: ``NAME`` and ``COLUMNS``."""
    # All keys begin with a version and the name's length.
    length = F.conv(F.hex(F.substring("key", 3, 2)), 16, 10).cast("int")
    name = F.coalesce(F.substr("key", F.lit(5), length), F.lit(b""))
    return records.select(name.alias(NAME), *COLUMNS)


class InPieces(NamedTuple):
    """The way to read a group in pieces when its records do not fit in memory together.

    Attributes:
        follow: from what was kept (None: nothing yet) and the next records, to rows and what to
            keep.
        rest: from what was kept at the end, to the last rows.
    """

    follow: Callable[[Any, pa.Table], tuple[pa.Table, Any]]
    rest: Callable[[Any], pa.Table]


def run_by_whole_groups(
    records: DataFrame,
    kernel: Callable[[pa.Table], pa.Table],
    schema: StructType,
    in_pieces: InPieces | None = None,
) -> DataFrame:
    """Call ``kernel`` with all records of some groups, each group's as the log has them.

    Args:
        records: of a batch.
        kernel: from ``NAME`` and ``COLUMNS`` to rows of ``schema``; what it is given at once is
            bounded, but for one group where there is no ``in_pieces``.
        schema: of what it answers.
        in_pieces: how a group is read that is above that bound.
    """
    tasks = _TASKS_A_CORE * cores(records.sparkSession)
    whole = with_group(records).repartition(tasks, NAME)
    sorted_ = whole.sortWithinPartitions(NAME, "partition", "offset")
    task = partial(_call_by_whole_groups, kernel, in_pieces, _MOST_BYTES)
    return sorted_.mapInArrow(forgetting_archives(task), schema)


def _call_by_whole_groups(
    kernel: Callable[[pa.Table], pa.Table],
    in_pieces: InPieces | None,
    most_bytes: int,
    batches: Iterable[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    """Read the groups of a task, some at once; the rows come by group."""
    name = kept = None  # of a group whose records go on
    for portion, ends in _portions(most_bytes, batches, cut_groups=in_pieces is not None):
        table = portion
        if kept is not None and in_pieces is not None:
            mine = pc.index(pc.equal(table[NAME], name), False).as_py()
            mine = len(table) if mine < 0 else mine
            if mine:
                rows, kept = in_pieces.follow(kept, table.slice(0, mine))
                yield from rows.to_batches()
            table = table.slice(mine)
            if len(table):
                yield from in_pieces.rest(kept).to_batches()
                kept = None
        if not len(table):
            continue
        if ends or in_pieces is None:
            yield from kernel(table).to_batches()
        else:
            name = table[NAME][0]
            rows, kept = in_pieces.follow(None, table)
            yield from rows.to_batches()
    if kept is not None and in_pieces is not None:
        yield from in_pieces.rest(kept).to_batches()


def _portions(
    most_bytes: int, batches: Iterable[pa.RecordBatch], *, cut_groups: bool
) -> Iterator[tuple[pa.Table, bool]]:
    """Combine batches into whole groups or, with ``cut_groups``, into portions of a large one.

    Yields:
        records, and whether their last group ends with them.
    """
    waiting: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        waiting.append(batch)
        size += batch.nbytes
        if size <= most_bytes:
            continue
        table = pa.Table.from_batches(waiting)
        begins = pc.index(table[NAME], table[NAME][-1]).as_py()
        if begins:
            yield table.slice(0, begins), True
            waiting = table.slice(begins).to_batches()
            size = sum(piece.nbytes for piece in waiting)
        elif cut_groups:
            yield table, False
            waiting, size = [], 0
    if waiting:
        yield pa.Table.from_batches(waiting), True
