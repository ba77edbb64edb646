"""Build a parser from a command's file; options that several commands share.

It imports nothing of Spark, so that the list of the commands is there at once.
"""

import argparse
import os
import re
import textwrap
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, NoReturn

from kassign_spark.commands import COMMANDS, STARTING, module_of
from kassign_spark.display import one_line

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
        description: what it does; its exit codes are said behind.
        example: that works.
        finds: when its exit code is 1; empty: never.
    """

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
        from kassign_spark.conforming import short_assignor

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
    from kassign_spark.commands.documents import PrintSchema, to_document

    module = module_of(name)
    about: About = module.ABOUT
    finds = f"1 when {about.finds}, " if about.finds else ""
    codes = textwrap.fill(f"Exits 0 when done, {finds}2 on an error.", 80)
    parser: Parser = commands.add_parser(
        name,
        help=COMMANDS[name],
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
        document=to_document(name, COMMANDS[name], module.DOCUMENT),
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


def whole_number(*, least: int) -> Callable[[str], int]:
    """Return the type of an option that takes a whole number not less than ``least``."""

    def parse(text: str) -> int:
        if not text.isascii() or not text.isdigit() or not least <= int(text) < 2**31:
            raise argparse.ArgumentTypeError(f"{text!r} is not a whole number >= {least}")
        return int(text)

    return parse


def coordinates(text: str) -> str:
    """Return one Maven coordinate or several with commas: Spark takes nothing else."""
    for coordinate in text.split(","):
        parts = coordinate.split(":")
        if len(parts) != 3 or not all(part.strip() for part in parts):
            raise argparse.ArgumentTypeError(
                f"{text!r} is no Maven coordinate, GROUP:ARTIFACT:VERSION"
            )
    return text


def error_line(text: str) -> str:
    """Return the line that the command prints for an error."""
    return f"kassign-spark: error: {one_line(text)}"
