"""What ``history --follow`` does when its query ends by itself; Spark is played."""

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock, patch

import pytest
from pyspark.errors import StreamingQueryException

from kassign_spark.commands import history_follow
from kassign_spark.tables.local_files import LocalFiles

_TOO_EARLY = (
    "[STREAM_FAILED] Query [id = 1, runId = 2] terminated with exception: Cannot invoke "
    '"scala.collection.IterableOps.map(scala.Function1)" because the return value of '
    '"scala.Option.get()" is null'
)

Run = tuple[int, str | None]
"""How many batches a run of the query does, and what it fails with."""


class _Played:
    """A stream whose query does what it is told, run after run, and notes its commits as Spark."""

    def __init__(self, output: Path, runs: list[Run]) -> None:
        self.runs, self.started, self.done = runs, 0, 0
        self.commits = output / "checkpoint" / "commits"
        self.commits.mkdir(parents=True)
        self.writeStream = self
        self.sparkSession = MagicMock()
        read = self.sparkSession.read
        read.schema.return_value.parquet.return_value.count.return_value = 2
        read.parquet.return_value.collect.return_value = []

    def foreachBatch(self, _: Callable[[Any, int], None]) -> "_Played":  # noqa: N802
        return self

    def option(self, *_: str) -> "_Played":
        return self

    def trigger(self, **_: Any) -> "_Played":
        return self

    def start(self) -> "_Played":
        self.batches, self.failure = self.runs[self.started]
        self.started += 1
        return self

    @property
    def lastProgress(self) -> dict[str, int]:  # noqa: N802
        return {"batchId": self.done - 1}

    def awaitTermination(self, timeout: int) -> bool:  # noqa: N802
        assert timeout > 0
        if self.batches:
            (self.commits / str(self.done)).touch()
            self.batches, self.done = self.batches - 1, self.done + 1
            return False
        if self.failure:
            raise StreamingQueryException(self.failure)
        return True

    def stop(self) -> None:
        pass


def _rebalance_count(output: Path, *runs: Run) -> int:
    args = argparse.Namespace(
        output=str(output), overwrite=False, format="parquet", json=True, available_now=True
    )
    played: Any = _Played(output, list(runs))
    with patch.object(history_follow, "locate", lambda _, path: (LocalFiles(), f"file:{path}")):
        count: int = history_follow.run(played, args).facts["rebalance_count"]
    assert played.started == len(runs)
    return count


def test_a_batch_that_was_done_but_not_reported_is_no_end(tmp_path: Path) -> None:
    assert _rebalance_count(tmp_path / "one", (3, None)) == 6
    assert _rebalance_count(tmp_path / "two", (1, _TOO_EARLY), (2, None)) == 6


@pytest.mark.parametrize("run", [(0, _TOO_EARLY), (1, "the disk is full")])
def test_other_failures_are_told(tmp_path: Path, run: Run) -> None:
    with pytest.raises(StreamingQueryException):
        _rebalance_count(tmp_path / "one", run)
    with pytest.raises(StreamingQueryException):
        _rebalance_count(tmp_path / "two", (1, _TOO_EARLY), run)
