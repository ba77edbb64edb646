"""Edges as rows of a DataFrame: cut into blocks, and read back when they are settled."""

from collections.abc import Iterable, Iterator
from functools import partial

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame

from kassign_spark.engine.block import Block
from kassign_spark.engine.costs import MOVE, rack_costs
from kassign_spark.engine.edges import Edges, compact_edges
from kassign_spark.engine.rounds import BLOCKS, Rounds, block_row
from kassign_spark.engine.segments import Longs
from kassign_spark.spark.archives import forgetting_archives

_NUMBERS = ("class", "turn", "member", "supply", "owned")
_SETTLED = ("class", "member", "owned", "assigned")


def cut_edges(edges: DataFrame, count: int, racks_before_moves: bool = False) -> DataFrame:
    """Cut edges into blocks, each a range of classes; runs a job that looks at the classes.

    Args:
        edges: class bigint (a number that no two groups share, ascending by group), turn bigint
            (its number within its group), member bigint (dense from 0), supply bigint (of the
            class), owned bigint, and where racks count is_cross boolean. One row per class and
            member, in any order.
        count: how many blocks there are at most.
        racks_before_moves: whether a partition where ``is_cross`` costs more than a move.

    Returns:
        the columns ``rounds.BLOCKS``.
    """
    columns = [name for name in (*_NUMBERS, "is_cross") if name in edges.columns]
    ranges = edges.select(*columns).repartitionByRange(count, "class")
    return ranges.mapInArrow(forgetting_archives(partial(_cut, racks_before_moves)), BLOCKS)


def settled_edges(rounds: Rounds) -> DataFrame:
    """Return how many partitions of each class members get once all is settled; runs no job.

    Returns:
        class bigint, member bigint, owned bigint, assigned bigint > 0.
    """
    return rounds.results(_name_settled, ", ".join(f"{name} bigint" for name in _SETTLED))


def _cut(racks_before_moves: bool, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Make a block of the edges of a partition, which has all edges of a range of classes."""
    table = pa.Table.from_batches(rows) if (rows := list(batches)) else None
    if table is None or not len(table):
        return
    class_, turn, member, supply, owned = (table[name].to_numpy() for name in _NUMBERS)
    order = np.lexsort((member, class_))
    surcharge, move = None, MOVE
    if "is_cross" in table.column_names:
        crossing, move = rack_costs(racks_before_moves)
        surcharge = table["is_cross"].to_numpy()[order] * np.int64(crossing)
    del rows, table
    class_, member, owned = class_[order], member[order], owned[order]
    first = np.flatnonzero(np.diff(class_, prepend=-1))
    class_of = np.repeat(np.arange(len(first)), np.diff(first, append=len(class_)))
    edges = compact_edges(
        class_of, member, owned, supply[order][first], turn[order][first], surcharge
    )
    # A class has at most 19 digits: names are in the order of classes.
    yield block_row(f"{class_[0]:019}", fixed=(class_[first], edges), state=Block(edges, move))


def _name_settled(fixed: tuple[Longs, Edges], block: Block) -> pa.RecordBatch:
    class_, edges = fixed
    rows = np.flatnonzero(block.result)
    columns = (
        class_[edges.class_of[rows]],
        edges.member_of[rows],
        edges.owned[rows],
        block.result[rows],
    )
    arrays = [pa.array(column.astype(np.int64)) for column in columns]
    return pa.RecordBatch.from_arrays(arrays, list(_SETTLED))
