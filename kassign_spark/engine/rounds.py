"""The engine over a DataFrame: a row a block, and a job over all blocks for each superstep.

The blocks stay with the executors that have them. Between rounds only vectors travel: with the
commands to all tasks, and back with the answers.
"""

import pickle
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, Protocol

import pyarrow as pa
from pyspark.sql import DataFrame

from kassign_spark.engine.commands import Answer, Command, run
from kassign_spark.spark.archives import forgetting_archives
from kassign_spark.spark.iteration import Budget, materialize

BLOCKS = "block string, fixed binary, state binary"
"""The columns of blocks: a name, by which they are in order; what does not change; a ``Block``."""
_STATES = "block string, state binary, answer binary"
_PURPOSES = {
    "label": "components",
    "sum_up": "quotas",
    "cut": "quotas",
    "relax": "distances",
    "push": "transfers",
    "owns": "claims",
    "keep": "quotas",
    "take": "transfers",
}
"""The purpose of each kind of superstep."""


class Block(Protocol):
    """A row: it runs commands and knows its own progress."""

    @property
    def open_count(self) -> int:
        """Return the number of partitions without a place."""

    @property
    def unsettled_count(self) -> int:
        """Return the number of rows that are not settled yet."""


class Rounds:
    """Blocks in a DataFrame."""

    def __init__(self, blocks: DataFrame, budget: Budget) -> None:
        """Make the blocks; runs a job.

        Args:
            blocks: the columns ``BLOCKS``, the last two as ``block_row`` makes them.
            budget: counts the supersteps.
        """
        table = materialize(blocks).frame
        self._fixed = table.select("block", "fixed")
        self._states = table.select("block", "state")
        names = sorted(row["block"] for row in table.select("block").collect())
        self._numbers = {name: number for number, name in enumerate(names)}
        self._budget = budget

    def step(self, commands: list[Command]) -> list[Answer]:
        """Run the commands on every block: one round.

        Raises:
            NotConvergedError: the budget ended first.
        """
        began = time.monotonic()
        kernel = forgetting_archives(partial(_run, commands, self._numbers))
        frame = materialize(self._states.select("block", "state").mapInArrow(kernel, _STATES)).frame
        rows = {row["block"]: row["answer"] for row in frame.select("block", "answer").collect()}
        self._states = frame
        replies = [pickle.loads(rows[name]) for name in self._numbers]
        left = sum(unsettled for _, _, unsettled in replies)
        measures = {
            "open partitions": sum(open_count for _, open_count, _ in replies),
            "seconds": round(time.monotonic() - began, 1),
        }
        self._budget.spend(_PURPOSES[commands[-1].name], measures, left)
        return [answer for answer, _, _ in replies]

    def results(self, result: Callable[[Any, Any], pa.RecordBatch], schema: str) -> DataFrame:
        """Make rows of each block, once it is settled; runs no job.

        ``result`` is given what does not change of a block, and the block.
        """
        # Estimates know nothing of blocks: these are not to be broadcast.
        both = self._states.select("block", "state").hint("merge").join(self._fixed, on="block")
        return both.mapInArrow(forgetting_archives(partial(_results, result)), schema)


def block_row(name: str, **values: Any) -> pa.RecordBatch:
    """Return a row of the block of that name, with values pickled."""
    pickled = {
        column: pa.array([pickle.dumps(value, protocol=5)], pa.binary())
        for column, value in values.items()
    }
    return pa.RecordBatch.from_pydict({"block": pa.array([name], pa.string()), **pickled})


def _run(
    commands: list[Command], numbers: dict[str, int], batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    for name, block in _rows(batches, "state"):
        answer = run(block, commands, numbers[name])
        answered = answer, block.open_count, block.unsettled_count
        yield block_row(name, state=block, answer=answered)


def _results(
    result: Callable[[Any, Any], pa.RecordBatch], batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    for _, fixed, block in _rows(batches, "fixed", "state"):
        yield result(fixed, block)


def _rows(batches: Iterable[pa.RecordBatch], *columns: str) -> Iterator[tuple[Any, ...]]:
    for batch in batches:
        for row in range(len(batch)):
            values = (pickle.loads(batch[column][row].as_buffer()) for column in columns)
            yield batch["block"][row].as_py(), *values
