"""What ``history --follow`` does when its query ends by itself; Spark is played."""

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest
from pyspark.errors import StreamingQueryException

from kassign_spark.commands import history_follow

_TOO_EARLY = (
    "[STREAM_FAILED] Query [id = 1, runId = 2] terminated with exception: Cannot invoke "
    '"scala.collection.IterableOps.map(scala.Function1)" because the return value of '
    '"scala.Option.get()" is null'
)

Run = tuple[int, str | None]
"""How many batches a run of the query does, and what it fails with."""


class _Played:
    """A stream whose query does what it is told, run after run."""

    def __init__(self, runs: list[Run]) -> None:
        self.runs, self.started = runs, 0
        self.writeStream = self

    def foreachBatch(self, write: Callable[[Any, int], None]) -> "_Played":  # noqa: N802
        self.write = write
        return self

    def option(self, *_: str) -> "_Played":
        return self

    def trigger(self, **_: Any) -> "_Played":
        return self

    def start(self) -> "_Played":
        self.batches, self.failure = self.runs[self.started]
        self.started += 1
        return self

    def awaitTermination(self) -> None:  # noqa: N802
        for batch in range(self.batches):
            rows = MagicMock()
            held = rows.persist.return_value.where.return_value
            held.select.return_value.count.return_value = 2
            self.write(rows, batch)
        if self.failure:
            raise StreamingQueryException(self.failure)

    def stop(self) -> None:
        pass


def _told(tmp_path: Path, *runs: Run) -> int:
    args = argparse.Namespace(
        output=tmp_path, overwrite=False, format="parquet", json=True, available_now=True
    )
    played: Any = _Played(list(runs))
    count: int = history_follow.run(played, args).facts["rebalance_count"]
    assert played.started == len(runs)
    return count


def test_a_batch_that_was_done_but_not_reported_is_no_end(tmp_path: Path) -> None:
    assert _told(tmp_path, (3, None)) == 6
    assert _told(tmp_path, (1, _TOO_EARLY), (2, None)) == 6


@pytest.mark.parametrize("run", [(0, _TOO_EARLY), (1, "the disk is full")])
def test_other_failures_are_told(tmp_path: Path, run: Run) -> None:
    with pytest.raises(StreamingQueryException):
        _told(tmp_path, run)
    with pytest.raises(StreamingQueryException):
        _told(tmp_path, (1, _TOO_EARLY), run)
