"""Build a parser from a command's file; options that several commands share."""

import argparse
import os
import re
import textwrap
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, NoReturn

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from kassign_spark.commands import STARTING, module_of
from kassign_spark.commands.documents import PrintSchema, as_document
from kassign_spark.conforming import has_cluster_id, short_assignor
from kassign_spark.display import one_line
from kassign_spark.errors import InputError
from kassign_spark.inputs.nearest import refuse_unknown
from kassign_spark.schemas import CLUSTER_ID
from kassign_spark.settings.computing import Settings, load_settings
from kassign_spark.tables.snapshots import Snapshot

ERROR = 2
"""The exit code of an error of usage, input or output."""
FORMATS = ("parquet", "csv", "json")
ADDRESS: dict[str, Any] = {
    "metavar": "HOST:PORT",
    "help": "address of the cluster, or several with commas",
}
"""Placeholder of the option ``--bootstrap-server``."""


class About(NamedTuple):
    """The help texts of a command.

    Attributes:
        summary: a line for the list of commands.
        description: what it does; its exit codes are said behind.
        example: that works.
        finds: when its exit code is 1; empty: never.
    """

    summary: str
    description: str
    example: str
    finds: str = ""


class Parser(argparse.ArgumentParser):
    """Knows the options that several commands take."""

    def error(self, message: str) -> NoReturn:
        """Report what is wrong with the arguments in one line, like every other error."""
        message = re.sub(": .*@", ": ...@", message, flags=re.DOTALL)  # it may be a login
        self.exit(ERROR, f"{error_line(f'{message} (see {self.prog} --help)')}\n")

    def add_snapshot(self) -> None:
        """Add what the command reads."""
        self.add_argument(
            "snapshot",
            metavar="SNAPSHOT",
            help="folder with members, topics, owned; or tables of a catalog: table:CATALOG.SCHEMA",
        )
        self.add_argument(
            "--as-of",
            metavar="TIMESTAMP",
            help="with table:..., read the newest snapshot that is not later (default: the newest)",
        )

    def add_group(self) -> None:
        """Add the option of commands that answer group by group."""
        self.add_argument(
            "--group",
            metavar="GROUP",
            help="only this group; CLUSTER/GROUP if several clusters have a group of that name",
        )

    def add_assignor(self, known: Iterable[str]) -> None:
        """Add the option that puts one assignor in the place of each group's own."""
        self.add_argument(
            "--assignor",
            type=short_assignor,
            choices=sorted(known),
            help="one assignor for all groups (default: each group's own)",
        )

    def add_settings(self) -> None:
        """Add the option that names a file of settings."""
        self.add_argument(
            "--settings", metavar="FILE.toml", help="file of settings, like conf/settings.toml"
        )

    def add_output(self, holds: str, *, required: bool = False) -> None:
        """Add the options that say where and how to write."""
        self.add_argument(
            "--output",
            metavar="DIR",
            required=required,
            help=f"new folder to write, with {holds}; or table:CATALOG.SCHEMA, to append to",
        )
        self.add_argument(
            "--format",
            choices=FORMATS,
            default="parquet",
            help="format of its tables (default: parquet)",
        )
        self.add_overwrite()

    def add_overwrite(self) -> None:
        """Add the option of commands that write a folder."""
        self.add_argument(
            "--overwrite",
            action="store_true",
            help="replace DIR, if kassign-spark wrote it and nobody changed it since",
        )

    def add_show(self, text: str) -> None:
        """Add the option that bounds what is printed."""
        whole = whole_number(least=0)
        self.add_argument(
            "--show", metavar="N", type=whole, default=50, help=f"{text} (default: 50)"
        )


def add_command(commands: Any, name: str) -> None:
    """Add a command, with the options that all have, to what the parser of all gives for them."""
    module = module_of(name)
    about: About = module.ABOUT
    finds = f"1 when {about.finds}, " if about.finds else ""
    codes = textwrap.fill(f"Exits 0 when done, {finds}2 on an error.", 80)
    parser: Parser = commands.add_parser(
        name,
        help=about.summary,
        description=f"{about.description}\n{codes}",
        epilog=f"example:\n  {about.example}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument(
        "--json", action="store_true", help="print one JSON document instead of text"
    )
    parser.add_argument(
        "--json-schema",
        action=PrintSchema,
        document=as_document(name, about.summary, module.DOCUMENT),
        help="print the JSON Schema of that document, and do nothing else",
    )
    parser.add_argument(
        "--verbose", action="store_true", help="show Spark's log and, on errors, the trace"
    )
    if name not in STARTING:
        parser.add_argument(
            "--remote",
            metavar="URL",
            default=os.environ.get("SPARK_REMOTE"),
            help="use the Spark of this server of Spark Connect, sc://HOST:PORT (default: "
            "$SPARK_REMOTE, or else a Spark of its own)",
        )
    module.add_options(parser)
    parser.set_defaults(run=module.run)


def settings_of(args: argparse.Namespace) -> Settings:
    """Load the settings that were named, or take the defaults.

    Raises:
        SettingsError: the file cannot be read, or a setting is unknown or out of range.
    """
    return load_settings(args.settings) if args.settings else Settings()


def named_arguments(args: argparse.Namespace, *names: str) -> dict[str, Any]:
    """Return the values of these options, by name."""
    return {name: getattr(args, name) for name in names}


def only_group(snapshot: Snapshot, group: str | None, *, one: bool = False) -> Snapshot:
    """Keep the rows of one group, if one was named; runs a job then.

    Args:
        snapshot: any.
        group: its group_id, or CLUSTER/GROUP; None: all groups.
        one: refuse a name that groups of several clusters have.

    Raises:
        InputError: there is no such group, or, with ``one``, there are several.
    """
    if group is None:
        return snapshot
    members = snapshot.members
    is_of_group = _name(members) == group
    names: list[str] = []
    if has_cluster_id(members):
        is_of_group = is_of_group | (F.col("group_id") == group)
        named = members.where(is_of_group).select(_name(members).alias("name")).distinct()
        names = sorted(row.name for row in named.limit(20).collect())
        if one and len(names) > 1:
            raise InputError(f"group {group!r} is in several clusters: name {' or '.join(names)}")
    if not names:
        refuse_unknown(members.select(_name(members).alias("name")), [group], noun="group")
    owned = snapshot.owned
    return snapshot._replace(
        members=members.where(is_of_group),
        owned=None if owned is None else owned.where(is_of_group),
    )


def _name(members: DataFrame) -> Column:
    if not has_cluster_id(members):
        return F.col("group_id")
    return F.concat_ws("/", F.nullif(CLUSTER_ID, F.lit("")), "group_id")


def whole_number(*, least: int) -> Callable[[str], int]:
    """Return the type of an option that takes a whole number not less than ``least``."""

    def parse(text: str) -> int:
        if not text.isascii() or not text.isdigit() or not least <= int(text) < 2**31:
            raise argparse.ArgumentTypeError(f"{text!r} is not a whole number >= {least}")
        return int(text)

    return parse


def error_line(text: str) -> str:
    """An error as the command says it."""
    return f"kassign-spark: error: {one_line(text)}"
