"""The engine over a DataFrame: a row a block, and a job over all blocks for each superstep.

The blocks stay with the executors that have them. Between rounds only vectors of one number a
member travel: with the commands to all tasks, and back with the answers.
"""

import pickle
import time
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame

from kassign_spark.engine.block import Answer, Block, Command
from kassign_spark.engine.edges import compact_edges
from kassign_spark.rounds import Budget, hold

NUMBERED = ("class", "turn", "member", "supply", "owned")
"""The columns of edges in numbers, all bigint."""
WHAT = {
    "label": "components",
    "sum_up": "quotas",
    "cut": "quotas",
    "relax": "distances",
    "push": "transfers",
}
"""What each kind of superstep is for."""

_BLOCKS = "block bigint, edges binary, state binary"
_STEPPED = "block bigint, state binary, answer binary"
_SETTLED = "class bigint, member bigint, owned bigint, assigned bigint"


class Rounds:
    """Blocks in a DataFrame; the first class names a block."""

    def __init__(self, edges: DataFrame, blocks: int, budget: Budget) -> None:
        """Cut edges into blocks; runs jobs.

        Args:
            edges: the columns ``NUMBERED``: class (a number that no two groups share, ascending
                by group), turn (its number within its group), member (dense from 0), supply (of
                the class), owned. One row a class and member, in any order.
            blocks: how many blocks there are at most.
            budget: counts the supersteps.
        """
        cut = edges.select(*NUMBERED).repartitionByRange(blocks, "class")
        held = hold(cut.mapInArrow(_cut, _BLOCKS)).frame
        self._edges = held.select("block", "edges")
        self._states = held.select("block", "state")
        names = sorted(row["block"] for row in held.select("block").collect())
        self._numbers = {name: number for number, name in enumerate(names)}
        self._budget = budget

    def step(self, commands: list[Command]) -> list[Answer]:
        """Have every block do the commands: one round.

        Raises:
            NotConvergedError: the budget ended first.
        """
        began = time.monotonic()
        run = partial(_run, commands, self._numbers)
        frame = hold(self._states.select("block", "state").mapInArrow(run, _STEPPED)).frame
        rows = sorted(frame.select("block", "answer").collect(), key=lambda row: row["block"])
        self._states = frame
        answers, opens, lefts = zip(*(pickle.loads(row["answer"]) for row in rows), strict=True)
        measured = {"open partitions": sum(opens), "seconds": round(time.monotonic() - began, 1)}
        self._budget.spend(WHAT[commands[-1].name], measured, sum(lefts))
        return list(answers)

    def settled(self) -> DataFrame:
        """What members get of each class, once everything is settled; runs no job.

        Returns:
            class bigint, member bigint, owned bigint, assigned bigint > 0.
        """
        # Estimates say nothing of blocks: they are not for a broadcast.
        both = self._states.select("block", "state").hint("merge").join(self._edges, on="block")
        return both.mapInArrow(_results, _SETTLED)


def _cut(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Make a block of the edges of a partition, which has all edges of a range of classes."""
    columns: dict[str, Any] = {name: [] for name in NUMBERED}
    for batch in batches:
        for name in NUMBERED:
            columns[name].append(batch[name].to_numpy())
    if not columns["class"]:
        return
    class_, turn, member, supply, owned = (np.concatenate(of) for of in columns.values())
    del columns
    order = np.lexsort((member, class_))
    class_, member, owned = class_[order], member[order], owned[order]
    first = np.flatnonzero(np.diff(class_, prepend=-1))
    class_of = np.repeat(np.arange(len(first)), np.diff(first, append=len(class_)))
    edges = compact_edges(class_of, member, owned, supply[order][first], turn[order][first])
    named = class_[first], edges
    yield _row(int(class_[0]), edges=named, state=Block(edges))


def _run(
    commands: list[Command], numbers: dict[int, int], batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    for name, state in _rows(batches, "state"):
        block: Block = pickle.loads(state.as_buffer())
        answer = block.run(commands, numbers[name])
        yield _row(name, state=block, answer=(answer, block.open_count, block.unsettled_count))


def _results(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for _, state, named in _rows(batches, "state", "edges"):
        block: Block = pickle.loads(state.as_buffer())
        class_, edges = pickle.loads(named.as_buffer())
        rows = np.flatnonzero(block.result)
        columns = (
            class_[edges.class_of[rows]],
            edges.member_of[rows],
            edges.owned[rows],
            block.result[rows],
        )
        names = ("class", "member", "owned", "assigned")
        arrays = [pa.array(column.astype(np.int64)) for column in columns]
        yield pa.RecordBatch.from_arrays(arrays, list(names))


def _rows(batches: Iterable[pa.RecordBatch], *names: str) -> Iterator[tuple[Any, ...]]:
    for batch in batches:
        for row in range(len(batch)):
            yield batch["block"][row].as_py(), *(batch[name][row] for name in names)


def _row(name: int, **values: Any) -> pa.RecordBatch:
    """A row of the block of that name, with values pickled."""
    pickled = {
        column: pa.array([pickle.dumps(value, protocol=5)], pa.binary())
        for column, value in values.items()
    }
    return pa.RecordBatch.from_pydict({"block": pa.array([name], pa.int64()), **pickled})
