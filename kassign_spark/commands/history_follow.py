"""``kassign-spark history --follow``: rebalances as they happen, each written once."""

import argparse
import sys
from datetime import UTC
from pathlib import Path
from typing import Any

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame

from kassign_spark.commands.common import Facts, Outcome
from kassign_spark.commands.documents import record
from kassign_spark.commands.unread import of_unread
from kassign_spark.display import plural, printable
from kassign_spark.errors import InputError, OutputError
from kassign_spark.history.rebalance_columns import REASONS, REBALANCES
from kassign_spark.interrupts import note_written
from kassign_spark.tables.catalog_paths import is_catalog_path

_CHECKPOINT = "checkpoint"
_REPORTED_TOO_EARLY = '"scala.Option.get()" is null'
"""Error with which Spark 4.1's Kafka source ends a query after it repeated a batch that an earlier
run had begun (SPARK-57438). The batch is complete, only its report is missing."""

DOCUMENT = record("output string, rebalance_count int, unread_count int")
"""The JSON document of ``--follow``."""


def run(history: DataFrame, args: argparse.Namespace) -> Outcome:
    """Write rows to the output folder, a part for each batch, and print them, until it is stopped.

    A batch that is done again after a failure writes over its own part, so each row is there once.

    Raises:
        InputError: the output is to be replaced, of another format than Parquet, or no folder.
        OutputError: the output folder is there, and no run of this kind left it.
    """
    if args.overwrite or args.format != "parquet":
        raise InputError("--follow adds to its --output, in Parquet: no --overwrite, no --format")
    folder = str(args.output)
    if is_catalog_path(folder):
        raise InputError(f"--follow writes files, so --output {folder} cannot be: name a folder")
    output = Path(folder)
    if output.is_dir() and any(output.iterdir()) and not (output / _CHECKPOINT).is_dir():
        raise OutputError(f"output {folder}: is not a folder of history --follow; name a new one")
    count = done = unread_count = 0

    def write(rows: DataFrame, batch: int) -> None:
        nonlocal count, done, unread_count
        both = rows.persist()
        try:
            rebalances = both.where("unread_count IS NULL").select(*REBALANCES.columns.names)
            rebalances.write.mode("overwrite").parquet(f"{folder}/rebalances/batch={batch}")
            if not args.json:
                for row in rebalances.orderBy("at", "group_id").collect():
                    print(_line(row.asDict()), flush=True)
            count += rebalances.count()
            for row in of_unread(both).collect():
                unread_count += row["count"]
                print(_unread_line(row.asDict()), file=sys.stderr, flush=True)
            done += 1
            note_written(folder)
        finally:
            both.unpersist()

    writer = (
        history.writeStream.foreachBatch(write)
        .option("checkpointLocation", f"{folder}/{_CHECKPOINT}")
        .trigger(
            **({"availableNow": True} if args.available_now else {"processingTime": "1 second"})
        )
    )
    ended = False
    while not ended:
        before = done
        query = writer.start()
        try:
            query.awaitTermination()
            ended = True
        except StreamingQueryException as error:
            if done == before or _REPORTED_TOO_EARLY not in str(error):
                raise
        finally:
            query.stop()
    facts: Facts = {"output": folder, "rebalance_count": count, "unread_count": unread_count}
    sentence = (
        f"{plural(count, 'rebalance')} more; the history is in {printable(folder)}: rebalances"
    )
    if unread_count:
        sentence += f"; {plural(unread_count, 'record')} of the log cannot be read"
    return Outcome(1 if unread_count else 0, facts, [sentence])


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
