"""``kassign-spark history --follow``: rebalances as they happen, each written once."""

import argparse
import sys
from collections.abc import Callable, Iterator
from datetime import UTC
from typing import TYPE_CHECKING, Any, NamedTuple

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

from kassign_spark.commands.common import Facts, Outcome
from kassign_spark.commands.documents import record
from kassign_spark.commands.unread import IS_UNREAD, UNREAD_COLUMNS
from kassign_spark.display import plural, printable
from kassign_spark.errors import InputError, OutputError
from kassign_spark.history.rebalance_columns import REASONS, REBALANCES
from kassign_spark.interrupts import note_written
from kassign_spark.tables.catalog_paths import is_catalog_path
from kassign_spark.tables.files import Files, child
from kassign_spark.tables.locating import locate

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

_CHECKPOINT, _REBALANCES, _UNREAD = "checkpoint", "rebalances", "unread"
_COMMITS = f"{_CHECKPOINT}/commits"
"""Where Spark keeps a file for each batch that is done, which has its number as its name."""
_LOOK_SECONDS = 1
_REPORTED_TOO_EARLY = '"scala.Option.get()" is null'
"""Error with which Spark 4.1's Kafka source ends a query after it repeated a batch that an earlier
run had begun (SPARK-57438). The batch is complete, only its report is missing."""

DOCUMENT = record("output string, rebalance_count int, unread_count int")
"""The JSON document of ``--follow``."""


class _Output(NamedTuple):
    """The output folder, and where it is."""

    files: Files
    path: str

    def last_batch(self) -> int:
        """Return the number of the last batch that is done; -1: none is."""
        commits = self.files.entries(child(self.path, _COMMITS))
        return max((int(name) for name in commits if name.isdigit()), default=-1)

    def part(self, table: str, batch: int) -> str:
        """Return the folder of a batch's rows."""
        return child(self.path, f"{table}/batch={batch}")


def run(history: DataFrame, args: argparse.Namespace) -> Outcome:
    """Write rows to the output folder, a part for each batch, and print them, until it is stopped.

    A batch that is done again after a failure writes over its own part, so each row is there once.
    On a server of Spark Connect the batches are written there; what is printed is read back.

    Raises:
        InputError: the output is to be replaced, of another format than Parquet, or no folder.
        OutputError: the output folder is there, and no run of this kind left it.
    """
    spark = history.sparkSession
    output = _open(spark, args)
    writer = (
        history.writeStream.foreachBatch(_writer(output))
        .option("checkpointLocation", child(output.path, _CHECKPOINT))
        .trigger(
            **({"availableNow": True} if args.available_now else {"processingTime": "1 second"})
        )
    )
    counts = {"rebalance_count": 0, "unread_count": 0}
    reported, ended = output.last_batch(), False
    while not ended:
        before = reported
        query = writer.start()
        note_written(args.output)
        try:
            for batch in _batches(query, output, reported):
                _report(spark, output, batch, counts, is_printed=not args.json)
                reported = batch
            ended = True
        except StreamingQueryException as error:
            if reported == before or _REPORTED_TOO_EARLY not in str(error):
                raise
        finally:
            query.stop()
    facts: Facts = {"output": args.output, **counts}
    sentence = (
        f"{plural(counts['rebalance_count'], 'rebalance')} more; the history is in "
        f"{printable(args.output)}: rebalances"
    )
    if counts["unread_count"]:
        sentence += f"; {plural(counts['unread_count'], 'record')} of the log cannot be read"
    return Outcome(1 if counts["unread_count"] else 0, facts, [sentence])


def _open(spark: SparkSession, args: argparse.Namespace) -> _Output:
    """Find the output folder, and refuse one that is of something else."""
    if args.overwrite or args.format != "parquet":
        raise InputError("--follow adds to its --output, in Parquet: no --overwrite, no --format")
    if is_catalog_path(args.output):
        raise InputError(
            f"--follow writes files, so --output {args.output} cannot be: name a folder"
        )
    output = _Output(*locate(spark, args.output))
    entries = output.files.entries(output.path)
    if entries and _CHECKPOINT not in entries:
        raise OutputError(
            f"output {args.output}: is not a folder of history --follow; name a new one"
        )
    return output


def _writer(output: _Output) -> Callable[[DataFrame, int], None]:
    """Return a function that writes a batch, and needs nothing of this process: a server calls it.

    ``rows`` are those of ``rebalances_and_unread``.
    """
    path = output.path
    tables = {
        _UNREAD: (IS_UNREAD, list(UNREAD_COLUMNS)),
        _REBALANCES: (f"NOT ({IS_UNREAD})", list(REBALANCES.columns.names)),
    }

    def write(rows: DataFrame, batch: int) -> None:
        both = rows.persist()
        try:
            for table, (condition, columns) in tables.items():
                part = both.where(condition).selectExpr(*columns)
                part.write.mode("overwrite").parquet(f"{path}/{table}/batch={batch}")
        finally:
            both.unpersist()

    return write


def _batches(query: "StreamingQuery", output: _Output, last: int) -> Iterator[int]:
    """Yield the number of each batch behind ``last`` that is done, until the query ends.

    Raises:
        StreamingQueryException: the query failed; what was done before is yielded first.
    """
    progress, failure, ended = None, None, False
    while not ended:
        try:
            ended = bool(query.awaitTermination(_LOOK_SECONDS))
        except StreamingQueryException as error:
            ended, failure = True, error
        # To look into the folder of a server takes a query.
        if ended or query.lastProgress != progress:
            progress = query.lastProgress
            newest = output.last_batch()
            yield from range(last + 1, newest + 1)
            last = newest
    if failure is not None:
        raise failure


def _report(
    spark: SparkSession, output: _Output, batch: int, counts: dict[str, int], *, is_printed: bool
) -> None:
    """Print a batch's rebalances and what of the log cannot be read, and count both."""
    rebalances = spark.read.schema(REBALANCES.columns).parquet(output.part(_REBALANCES, batch))
    if is_printed:
        rows = rebalances.orderBy("at", "group_id").collect()
        for row in rows:
            print(_line(row.asDict()), flush=True)
        counts["rebalance_count"] += len(rows)
    else:
        counts["rebalance_count"] += rebalances.count()
    for row in spark.read.parquet(output.part(_UNREAD, batch)).collect():
        counts["unread_count"] += row["count"]
        print(_unread_line(row.asDict()), file=sys.stderr, flush=True)


def _unread_line(row: dict[str, Any]) -> str:
    group = "a group that its key does not name" if row["group_id"] is None else row["group_id"]
    count = plural(row["count"], f"{row['kind']} record")
    return printable(f"{count} of {group} cannot be read: {row['reason']}")


def _line(row: dict[str, Any]) -> str:
    time = row["at"].astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S")
    detail = f": {row['reason_detail']}" if row["reason_detail"] else ""
    return printable(
        f"{time} {row['group_id']} generation {row['generation']}: {REASONS[row['reason']]}{detail}"
    )
