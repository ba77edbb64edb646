"""What commands print with ``--json``, held to the schemas that they declare.

Every command that a test runs in this process is looked at (``conftest`` sees to it), with
``--json`` or without: no run is made for this alone.
"""

import argparse
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import pytest
from jsonschema import Draft202012Validator, FormatChecker
from jsonschema.exceptions import best_match

from kassign_spark import cli
from kassign_spark.commands import COMMANDS
from kassign_spark.commands.common import Outcome
from kassign_spark.commands.documents import PrintSchema


@cache
def parsers() -> dict[str, argparse.ArgumentParser]:
    """The parser of each command, by its name."""
    (commands,) = (
        action
        for action in cli._parser()._actions
        if isinstance(action, argparse._SubParsersAction)
    )
    assert len(commands.choices) == len(COMMANDS)
    return dict(commands.choices)


@cache
def schema_of(command: str) -> dict[str, Any]:
    """What its ``--json-schema`` prints."""
    (action,) = (each for each in parsers()[command]._actions if isinstance(each, PrintSchema))
    result: dict[str, Any] = json.loads(json.dumps(action.document))
    return result


@cache
def _validator(command: str) -> Draft202012Validator:
    return Draft202012Validator(schema_of(command), format_checker=FormatChecker())


def check_document(command: str, facts: dict[str, Any]) -> None:
    """Hold what a command says to its schema.

    Raises:
        AssertionError: it is something else; says where.
        ValueError: it has a number that JSON has not, such as NaN.
    """
    document = json.loads(json.dumps(facts, allow_nan=False))
    worst = best_match(_validator(command).iter_errors(document))
    assert worst is None, f"{command} --json: {worst.json_path}: {worst.message}"


@contextmanager
def documents_checked() -> Iterator[None]:
    """Look at all that commands of this process say, before it is printed."""
    text: Callable[[argparse.Namespace, Outcome], str] = cli._format_outcome

    def checked(args: argparse.Namespace, outcome: Outcome) -> str:
        check_document(args.command, outcome.facts)
        finds = "1 when" in str(parsers()[args.command].description)
        assert outcome.exit_code in ((0, 1) if finds else (0,)), args.command
        return text(args, outcome)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(cli, "_format_outcome", checked)
        yield
