"""Shared by the commands: the session, reading, writing, and the first rows to show."""

import argparse
import os
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, NamedTuple

from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from kassign_spark.conforming import has_cluster_id, restore_cluster_id
from kassign_spark.display import group_name, lay_out_rows, not_shown, plural
from kassign_spark.errors import InputError, OutputError
from kassign_spark.groups.paths import Paths
from kassign_spark.inputs.problem_rows import refuse_broken_rows
from kassign_spark.launch.command_session import open_session
from kassign_spark.schemas import ASSIGNMENT, GROUP_KEY, MEMBERS, OWNED
from kassign_spark.spark.iteration import materialize
from kassign_spark.tables.catalog_paths import CatalogPath, is_catalog_path
from kassign_spark.tables.output_folder import check_new_folder, same_or_inside
from kassign_spark.tables.snapshots import (
    empty_table,
    has_table,
    new_folder,
    one_run,
    read_table,
    write_table,
)

_LONG_SECONDS = 10
"""Work that takes longer is announced."""

Facts = dict[str, Any]


class Outcome(NamedTuple):
    """The result of a command: the same facts for programs and for people."""

    exit_code: int
    facts: Facts
    lines: list[str]


@contextmanager
def session_reading(
    args: argparse.Namespace,
    activity: str,
    *inputs: str,
    package: str = "",
    settings: Mapping[str, str] | None = None,
) -> Iterator[SparkSession]:
    """Open the session of a command that reads ``inputs``, and say what it does when that is long.

    ``package`` and ``settings`` are those of ``open_session``. Where ``args.snapshot`` names tables
    of a catalog, it names from now on one run of them: all the command reads is of one moment.

    Raises:
        KassignError: Java is missing or does not start.
        InputError: the catalog's tables have no such run.
        OutputError: the output is an input folder, lies in one, or holds one, or is not to be
            replaced.
    """
    with (
        open_session(
            *inputs, verbose=args.verbose, package=package, settings=settings, remote=args.remote
        ) as spark,
        announced(activity),
    ):
        refuse_output_over_input(spark, args.output, *inputs)
        if _writes_folder(args):
            check_new_folder(spark, args.output, overwrite=args.overwrite)
        if getattr(args, "snapshot", None) is not None:
            snapshot = _snapshot_at(args.snapshot, getattr(args, "as_of", None))
            args.snapshot = one_run(spark, snapshot, MEMBERS.name)
        yield spark


def _writes_folder(args: argparse.Namespace) -> bool:
    """Return whether the output is a new folder: ``report`` writes a file, ``--follow`` adds."""
    is_folder = (
        args.output is not None and not is_catalog_path(args.output) and hasattr(args, "format")
    )
    return is_folder and not getattr(args, "follow", False)


def _snapshot_at(snapshot: str, as_of: str | None) -> str:
    if as_of is None:
        return snapshot
    if not is_catalog_path(snapshot):
        raise InputError(f"--as-of: {snapshot} is a folder, which holds one snapshot")
    place = CatalogPath.of(snapshot)
    if place.when is not None:
        raise InputError(f"--as-of: {snapshot} has a time already")
    return place.at(as_of)


def refuse_output_over_input(spark: SparkSession, output: str | None, *inputs: str) -> None:
    """Keep a command from replacing what it reads.

    Raises:
        OutputError: the output is an input folder, lies in one, or holds one.
    """
    if output is None or is_catalog_path(output):  # what is appended replaces nothing
        return
    for path in inputs:
        if is_catalog_path(path):
            continue
        if same_or_inside(spark, str(output), path) or same_or_inside(spark, path, str(output)):
            raise OutputError(f"output {output}: would replace the input {path}; name a new folder")


def read_assigned(spark: SparkSession, *folders: str, cluster_id: bool = False) -> list[DataFrame]:
    """Read who has what: the table assignment of a plan, or the table owned of a snapshot.

    JSON lines without a line have no columns: their table has a cluster_id if it is asked
    for, or if another folder has one.

    Raises:
        InputError: a folder has neither table, or its rows have no meaning.
    """
    frames = [_read_assigned(spark, folder) for folder in folders]
    has_clusters = cluster_id or any(has_cluster_id(frame) for frame in frames)
    return [
        frame if frame.columns else empty_table(spark, ASSIGNMENT, cluster_id=has_clusters)
        for frame in frames
    ]


def _read_assigned(spark: SparkSession, folder: str) -> DataFrame:
    for table in (ASSIGNMENT, OWNED):
        if has_table(spark, folder, table.name):
            frame = read_table(spark, folder, table)
            if frame.columns:
                refuse_broken_rows(frame, table)
            return frame
    raise InputError(f"folder {folder}: has neither the table assignment nor the table owned")


def write_tables(spark: SparkSession, args: argparse.Namespace, **tables: DataFrame) -> None:
    """Write tables to the output, if the arguments name one.

    Raises:
        OutputError: as ``new_folder``.
    """
    with open_output(spark, args) as folder:
        write_to(folder, args, **tables)


def open_output(
    spark: SparkSession, args: argparse.Namespace
) -> AbstractContextManager[str | None]:
    """Open the output, if the arguments name one; else nothing is written.

    Raises:
        OutputError: as ``new_folder``.
    """
    if args.output is None:
        return nullcontext()
    return new_folder(spark, args.output, overwrite=args.overwrite)


def write_to(folder: str | None, args: argparse.Namespace, **tables: DataFrame) -> None:
    """Write tables to what ``open_output`` gave.

    Raises:
        OutputError: as ``write_table``.
    """
    if folder is not None:
        for name, frame in tables.items():
            write_table(frame, folder, name, args.format)


def first_rows(frame: DataFrame, order: Sequence[str | Column], count: int) -> list[Facts]:
    """Collect the first rows by ``order``; names that the frame does not have are passed over."""
    keys = [by for by in order if not isinstance(by, str) or by in frame.columns]
    return [row.asDict(recursive=True) for row in frame.orderBy(*keys).limit(count).collect()]


def place_in(values: Iterable[str], column: str) -> Column:
    """Return from 1 on where the value of a column stands among ``values``; 0 for no such value."""
    listed_values = ", ".join(f"'{value}'" for value in values)
    return F.expr(f"array_position(array({listed_values}), {column})")


def topic_facts(topics: Iterable[Row]) -> list[Facts]:
    """Return topics with ranges of partitions as ``TOPIC_RANGES`` has them."""
    return [
        {
            "topic": topic.topic,
            "partition_count": topic.partition_count,
            "ranges": [[span.first, span.last] for span in topic.ranges],
        }
        for topic in topics
    ]


def misled_facts(paths: Paths, limit: int, *, cluster_id: bool) -> Facts:
    """Count and collect groups whose claims mislead Kafka's client; a query where there may be."""
    if paths.misled is None:
        return {"misled_count": 0, "misled": []}
    misled, totals = materialize(
        restore_cluster_id(paths.misled, cluster_id), {"groups": F.count(F.lit(1))}
    )
    shown = first_rows(misled, list(GROUP_KEY), limit)
    return {"misled_count": totals["groups"], "misled": shown}


def misled_lines(facts: Facts) -> list[str]:
    """Return the lines about groups that Kafka's client answers otherwise, and why."""
    count = facts["misled_count"]
    if not count:
        return []
    lines = [
        "",
        f"of {plural(count, 'group')} Kafka's own client makes something else: members claim "
        "partitions that do not exist",
        *lay_out_rows(
            facts["misled"], {"group": group_name, "verdict": "verdict", "why": "detail"}
        )[1:],
    ]
    return lines + not_shown(count - len(facts["misled"]), "group", shown=count)


def one_stream() -> bool:
    """Return whether output and errors share a stream, as under ``spark-submit``."""
    return "PYSPARK_GATEWAY_PORT" in os.environ


def has_other_spark() -> bool:
    """Return whether there is a Spark that a command did not start: so it can start none."""
    return one_stream() or SparkSession.getActiveSession() is not None


@contextmanager
def announced(activity: str) -> Iterator[None]:
    """Print on the error stream what is being done when it takes long."""
    if one_stream():
        yield
        return
    timer = threading.Timer(_LONG_SECONDS, lambda: print(f"{activity} ...", file=sys.stderr))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
