"""What the commands share: options, what they give back, and a few rows of a frame to show."""

import argparse
import os
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from pyspark.sql import Column, DataFrame, SparkSession

from kassign_spark.commands.documents import PrintSchema, Schema, as_document
from kassign_spark.errors import InputError, OutputError
from kassign_spark.inputs.checks import refuse_broken_rows
from kassign_spark.schemas import ASSIGNMENT, MEMBERS, OWNED
from kassign_spark.session import open_session
from kassign_spark.settings.computing import Settings, load_settings
from kassign_spark.tables.output_folder import same_or_inside
from kassign_spark.tables.places import Place, is_place
from kassign_spark.tables.snapshots import has_table, one_run, read_table

FORMATS = ("parquet", "csv", "json")
_LONG_SECONDS = 10
"""Work that takes longer is announced."""

Facts = dict[str, Any]
Rows = list[dict[str, Any]]


class Outcome(NamedTuple):
    """What a command has found: the same facts for programs and for people."""

    exit_code: int
    facts: Facts
    lines: list[str]


def new_parser(
    commands: Any,
    name: str,
    *,
    summary: str,
    description: str,
    document: Schema,
    example: str,
    finds: str = "",
) -> argparse.ArgumentParser:
    """Add a command, with the options that all have.

    Args:
        commands: what the parser of all commands gives for those.
        name: of the command.
        summary: a line for the list of commands.
        description: what it does; its exit codes are said behind.
        document: what it prints with ``--json``.
        example: that works.
        finds: when its exit code is 1; empty: never.
    """
    exits = f"Exits 0 when done, {f'1 when {finds}, ' if finds else ''}2 on an error."
    parser: argparse.ArgumentParser = commands.add_parser(
        name,
        help=summary,
        description=f"{description}\n{exits}",
        epilog=f"example:\n  {example}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument(
        "--json", action="store_true", help="print one JSON document instead of text"
    )
    parser.add_argument(
        "--json-schema",
        action=PrintSchema,
        document=as_document(name, summary, document),
        help="print the JSON Schema of that document, and do nothing else",
    )
    parser.add_argument(
        "--verbose", action="store_true", help="show Spark's log and, on errors, the trace"
    )
    return parser


def add_snapshot(parser: argparse.ArgumentParser) -> None:
    """Add what the command reads."""
    parser.add_argument(
        "snapshot",
        metavar="SNAPSHOT",
        help="folder with members, topics, owned; or tables of a catalog: table:CATALOG.SCHEMA",
    )
    parser.add_argument(
        "--as-of",
        metavar="TIMESTAMP",
        help="with table:..., the newest snapshot that is not later (default: the newest)",
    )


def add_assignor(parser: argparse.ArgumentParser, known: Iterable[str]) -> None:
    """Add the option that puts one assignor in the place of each group's own."""
    parser.add_argument(
        "--assignor",
        choices=sorted(known),
        help="one assignor for all groups (default: each group's own)",
    )


def add_settings(parser: argparse.ArgumentParser) -> None:
    """Add the option that names a file of settings."""
    parser.add_argument(
        "--settings", metavar="FILE.toml", help="settings, as in conf/settings.toml"
    )


def settings_of(args: argparse.Namespace) -> Settings:
    """Load the settings that were named, or take the defaults.

    Raises:
        SettingsError: the file cannot be read, or a setting is unknown or out of range.
    """
    return load_settings(args.settings) if args.settings else Settings()


def add_output(parser: argparse.ArgumentParser, holds: str, *, required: bool = False) -> None:
    """Add the options that say where and how to write."""
    parser.add_argument(
        "--output",
        metavar="DIR",
        required=required,
        help=f"new folder to write, with {holds}; or table:CATALOG.SCHEMA, to append to",
    )
    parser.add_argument(
        "--format", choices=FORMATS, default="parquet", help="of its tables (default: parquet)"
    )
    parser.add_argument(
        "--overwrite",
        action="store_true",
        help="replace DIR if kassign-spark wrote it and it holds nothing else",
    )


def add_show(parser: argparse.ArgumentParser, what: str) -> None:
    """Add the option that bounds what is printed."""
    parser.add_argument(
        "--show", metavar="N", type=whole_number(least=0), default=50, help=f"{what} (default: 50)"
    )


def whole_number(*, least: int) -> Callable[[str], int]:
    """Give the type of an option that takes a whole number from ``least`` on."""

    def parse(text: str) -> int:
        if not text.isascii() or not text.isdigit() or not least <= int(text) < 2**31:
            raise argparse.ArgumentTypeError(f"{text!r} is not a whole number >= {least}")
        return int(text)

    return parse


@contextmanager
def session_reading(
    args: argparse.Namespace,
    what: str,
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
        OutputError: the output is an input folder, lies in one, or holds one.
    """
    with (
        open_session(*inputs, verbose=args.verbose, package=package, settings=settings) as spark,
        announced(what),
    ):
        refuse_output_over_input(spark, args.output, *inputs)
        if getattr(args, "snapshot", None) is not None:
            asked = _as_of(args.snapshot, getattr(args, "as_of", None))
            args.snapshot = one_run(spark, asked, MEMBERS.name)
        yield spark


def _as_of(snapshot: str, as_of: str | None) -> str:
    if as_of is None:
        return snapshot
    if not is_place(snapshot):
        raise InputError(f"--as-of: {snapshot} is a folder, which holds one snapshot")
    place = Place.of(snapshot)
    if place.when is not None:
        raise InputError(f"--as-of: {snapshot} has a time already")
    return place.at(as_of)


def refuse_output_over_input(spark: SparkSession, output: str | None, *inputs: str) -> None:
    """Keep a command from replacing what it reads.

    Raises:
        OutputError: the output is an input folder, lies in one, or holds one.
    """
    if output is None or is_place(output):  # what is appended replaces nothing
        return
    for path in inputs:
        if is_place(path):
            continue
        if same_or_inside(spark, str(output), path) or same_or_inside(spark, path, str(output)):
            raise OutputError(f"output {output}: would replace the input {path}; name a new folder")


def read_assigned(spark: SparkSession, folder: str) -> DataFrame:
    """Read who has what: the table assignment of a plan, or the table owned of a snapshot.

    Returns:
        The columns of the files; of JSON lines without a single line none.

    Raises:
        InputError: neither table is there, or its rows have no meaning.
    """
    for found in (ASSIGNMENT, OWNED):
        if has_table(spark, folder, found.name):
            frame = read_table(spark, folder, found)
            if frame.columns:
                refuse_broken_rows(frame, found)
            return frame
    raise InputError(f"folder {folder}: has neither the table assignment nor the table owned")


def first_rows(frame: DataFrame, order: Sequence[str | Column], count: int) -> Rows:
    """Collect the first rows by ``order``; names that the frame does not have are passed over."""
    known = [by for by in order if not isinstance(by, str) or by in frame.columns]
    return [row.asDict(recursive=True) for row in frame.orderBy(*known).limit(count).collect()]


def one_stream() -> bool:
    """Whether output and errors come out as one: ``spark-submit`` does that."""
    return "PYSPARK_GATEWAY_PORT" in os.environ


@contextmanager
def announced(what: str) -> Iterator[None]:
    """Say on the error stream what is being done, when it takes long."""
    if one_stream():
        yield
        return
    timer = threading.Timer(_LONG_SECONDS, lambda: print(f"{what} ...", file=sys.stderr))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
