"""The command ``kassign-spark``: arguments in, one clear line on what goes wrong, exit codes."""

import argparse
import json
import logging
import signal
import sys
import traceback
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from kassign_spark import __version__
from kassign_spark.commands import COMMANDS
from kassign_spark.commands.parser import ERROR, Parser, add_command, error_line
from kassign_spark.display import print_result
from kassign_spark.errors import KassignError
from kassign_spark.interrupts import received_signal, watched, written

if TYPE_CHECKING:
    from kassign_spark.commands.common import Outcome

_SIGNALLED = 128
_REQUIREMENTS = {
    "numpy": "numpy",
    "pandas": "pandas",
    "pyarrow": "pyarrow",
    "pyspark": "'kassign-spark[spark]'",
}
"""What pip installs, by the module that every command needs."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command.

    Returns:
        0 done, 1 violations or problems were found, 2 an error of usage, input or output, 130
        interrupted, 143 terminated (SIGTERM).
    """
    words = sys.argv[1:] if argv is None else argv
    try:
        args = _parser(words[:1] if words[:1] and words[0] in COMMANDS else ()).parse_args(words)
    except ModuleNotFoundError as error:
        return _fail(_explain_error(error), ERROR)
    if not args.verbose:
        # PySpark logs every error once more, as JSON.
        logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL + 1)
        # py4j logs a broken connection with its trace; with no handler at all Python prints it.
        if not logging.getLogger().handlers:
            logging.getLogger().addHandler(logging.NullHandler())
    try:
        with watched(_report_interrupt):
            outcome = _outcome(args)
    except KeyboardInterrupt:  # it came as the watch began or ended, or while an error was reported
        return _report_interrupt(received_signal() or signal.SIGINT)
    if isinstance(outcome, int):
        return outcome
    print_result(_format_outcome(args, outcome))
    return outcome.exit_code


def _outcome(args: argparse.Namespace) -> "Outcome | int":
    """Run the command; return the exit code if it reports an error or an interrupt."""
    try:
        outcome: Outcome = args.run(args)
    except (KeyboardInterrupt, Exception) as error:
        number = received_signal() or _interrupt_before(error)
        if number is not None:
            return _report_interrupt(number)
        if args.verbose:
            traceback.print_exc()
        return _fail(_explain_error(error), ERROR)
    number = received_signal()
    # If one came, somebody has kept it to himself.
    return outcome if number is None else _report_interrupt(number)


def _parser(names: Collection[str] = COMMANDS) -> Parser:
    """Return the parser of the commands of these names; without any, one that lists all."""
    parser = Parser(
        prog="kassign-spark",
        description="Plan and check the partition assignments of Kafka consumer groups, for whole\n"
        "fleets at once.",
        epilog="example:\n  kassign-spark assign examples/fleet --output build/plan",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", dest="command", required=True)
    for command in names:
        add_command(commands, command)
    for command in () if names else COMMANDS:
        commands.add_parser(command, help=COMMANDS[command])
    return parser


def _interrupt_before(error: BaseException | None) -> int | None:
    """Find an interrupt without a signal; errors raised while tidying up come after it."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__context__
    return None if error is None else signal.SIGINT


def _report_interrupt(number: int) -> int:
    """Report the interrupt, and return the exit code that a shell has for the signal."""
    event = "terminated" if number == signal.SIGTERM else "interrupted"
    outputs = ", ".join(written())
    rest = f"{outputs} had been written" if outputs else "nothing was written"
    return _fail(f"{event}; {rest}", _SIGNALLED + number)


def _explain_error(error: BaseException) -> str:
    if isinstance(error, KassignError):
        return str(error)
    if isinstance(error, ModuleNotFoundError) and error.name in _REQUIREMENTS:
        return f"{error.name} is not installed: pip install {_REQUIREMENTS[error.name]}"
    from kassign_spark.spark.spark_errors import SparkError, spark_message

    if isinstance(error, SparkError):
        return f"Spark: {spark_message(error)}"
    return (
        f"this is a bug of kassign-spark ({type(error).__name__}: {error}); "
        "--verbose shows the trace"
    )


def _fail(text: str, exit_code: int) -> int:
    print(error_line(text), file=sys.stderr)
    return exit_code


def _format_outcome(args: argparse.Namespace, outcome: "Outcome") -> str:
    """Return the text to print; with ``--json`` its form is the command's ``DOCUMENT``."""
    return json.dumps(outcome.facts, indent=2) if args.json else "\n".join(outcome.lines)
