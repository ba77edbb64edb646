"""The only module that iterates: it materialises a frame, cuts its lineage, counts, stops, frees.

A frame that is built from the one before it, round after round, has a plan that grows without end,
and a checkpoint alone does not help: the checkpointed frame keeps the size estimate of the plan it
came from (SPARK-39834), and estimates multiply at every join until they have thousands of digits.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from pyspark.sql import Column, DataFrame

from kassign_spark.errors import NotConvergedError
from kassign_spark.spark.sessions import checkpoint
from kassign_spark.spark.spark_versions import for_checkpoint


class Materialized(NamedTuple):
    """A materialised frame, and what was measured while it was made."""

    frame: DataFrame
    measured: dict[str, Any]


class Round(NamedTuple):
    """A round that has just ended, as ``converge`` reports it."""

    number: int
    kind: str
    measured: dict[str, Any]


OnRound = Callable[[Round], None]


def settle(frame: DataFrame, measures: Mapping[str, Column] | None = None) -> Materialized:
    """Compute ``frame`` once and hold it, with a plan of one line and its real size.

    The data goes into the cache, so that the checkpoint takes over the cache's true size, and
    the cache is freed; the checkpoint itself goes when the last reference to the frame does (one
    in a checkpoint folder, with ``spark.cleaner.referenceTracking.cleanCheckpoints``). Measures are
    aggregates over it, by name; they ride on the same job.
    """
    return _with_ids_of_its_own(_settle(frame, measures))


def materialize(frame: DataFrame, measures: Mapping[str, Column] | None = None) -> Materialized:
    """Compute ``frame`` once and hold it, for frames that no loop builds upon.

    Cheaper than ``settle``, but the frame keeps the size estimate of the plan that it came from.
    """
    return _with_ids_of_its_own(Materialized(*checkpoint(for_checkpoint(frame), measures)))


def _settle(frame: DataFrame, measures: Mapping[str, Column] | None) -> Materialized:
    cached = frame.persist()
    try:
        cached.count()
        return Materialized(*checkpoint(for_checkpoint(cached), measures))
    finally:
        cached.unpersist()


def _with_ids_of_its_own(settled: Materialized) -> Materialized:
    """Replace the ids of columns, and keep their names.

    A checkpoint has the ids of the frame that it is of. Spark does not always distinguish the two
    where they are joined: without adaptive execution such a join may be an internal error.
    """
    return Materialized(settled.frame.toDF(*settled.frame.columns), settled.measured)


class Budget:
    """The rounds that are left, shared by loops that follow each other."""

    def __init__(self, limit: int, on_round: OnRound | None = None) -> None:
        self.limit = limit
        self.counts: Counter[str] = Counter()
        self._on_round = on_round

    @property
    def used(self) -> int:
        """Return the number of rounds so far."""
        return self.counts.total()

    def spend(self, kind: str, measured: dict[str, Any], left: int) -> None:
        """Count a round of the loop ``kind``, which has ``left`` rows to do.

        Raises:
            NotConvergedError: it was the last, and there is something left.
        """
        self.counts[kind] += 1
        if self._on_round:
            self._on_round(Round(self.used, kind, measured))
        if left and self.used >= self.limit:
            raise NotConvergedError(
                f"not finished after {self.limit} rounds: {left} rows of the {kind} are still "
                "changing; raise the setting max_rounds"
            )


def converge(
    frame: DataFrame,
    step: Callable[[DataFrame], DataFrame],
    unfinished: Column,
    *,
    kind: str,
    budget: Budget,
    measures: Mapping[str, Column] | None = None,
) -> DataFrame:
    """Repeat ``step``, which keeps the columns, until ``unfinished`` sums up to nothing.

    That is an aggregate over the columns, as the further ``measures`` are, which are reported with
    each round. ``kind`` names the loop, for progress and errors.

    Raises:
        NotConvergedError: the budget ended first.
    """
    measured_columns = {"unfinished": unfinished, **(measures or {})}
    while True:
        settled = _settle(step(frame), measured_columns)
        frame, measured = settled
        left = measured["unfinished"] or 0
        budget.spend(kind, measured, left)
        if not left:
            return _with_ids_of_its_own(settled).frame
