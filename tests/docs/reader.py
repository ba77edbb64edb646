"""A reader who types what a document shows, from top to bottom, and compares what appears."""

import contextlib
import doctest
import io
import re
import runpy
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kassign_spark import cli
from kassign_spark.settings import load_settings
from kassign_spark.simulation.event_file import read_events
from tests.docs.blocks import Block

ROOT = Path(__file__).parents[2]
ADDRESS = "127.0.0.1:9092"
"""The broker's, in all documents."""

_PROMPT = "$ "
_OWN_FOLDERS = ("conf", "examples", "kassign_spark", "tests")
_BUILD = re.compile(r"(?<![\w./-])build/")
_SHELL_SIGNS = {"|", "||", "&", "&&", ";", ">", ">>", "<", "<<"}
_PROGRAMS_NOT_RUN = {"docker", "export", "git", "kubectl", "pip", "pytest", "python", "sh", "zip"}
_PROGRAMS_NOT_RUN |= {"kafka-consumer-groups.sh", "kafka-topics.sh"}
_CHECKER = doctest.OutputChecker()


class Reader:
    """Runs one document: commands and Python share the session, blocks of Python their names.

    ``build/`` is a folder of the document's own; other paths are of the current folder, the
    repository's, which the session's Java has too.
    """

    def __init__(self, build: Path, address: Callable[[], str]) -> None:
        self._build = build
        self._address = address
        self._known_address = ADDRESS
        self._names: dict[str, Any] = {"__name__": "__main__"}
        self._exit_code = 0
        self._printed: str | None = None
        """By the Python block before, as long as it is not compared."""

    def read(self, block: Block) -> None:
        """Run a block, or check what can be checked of one that cannot run.

        Raises:
            AssertionError: something else appears than the document shows.
        """
        if block.kind != "text":
            self.nothing_left(block.where)
        if block.not_run is not None:
            check_without_running(block)
        elif block.kind == "console":
            self._console(block)
        elif block.kind == "python":
            self._python(block)
        elif block.kind == "text":
            assert self._printed is not None, f"{block.where}: no Python block before it"
            _compare(block.text, self._shown(self._printed), block.where)
            self._printed = None
        else:
            self._file(block)

    def nothing_left(self, where: str) -> None:
        """Make sure that what Python printed last was compared with something."""
        assert not self._printed, f"before {where}: printed, but not shown:\n{self._printed}"
        self._printed = None

    def _console(self, block: Block) -> None:
        commands = console_commands(block)
        for number, (command, output) in enumerate(commands):
            where = f"{block.where}: $ {command}"
            if command == "echo $?":
                assert output.strip() == str(self._exit_code), where
                continue
            self._exit_code, printed = self._run(command, where)
            asked = number + 1 < len(commands) and commands[number + 1][0] == "echo $?"
            assert self._exit_code == 0 or asked, f"{where}: exit code {self._exit_code}\n{printed}"
            _compare(output, self._shown(printed), where)

    def _run(self, command: str, where: str) -> tuple[int, str]:
        program, *arguments = _words(self._real(command))
        assert not _SHELL_SIGNS & set(arguments), f"{where}: one plain command a line"
        program = program.removeprefix(".venv/bin/")
        exit_code = 0
        out, error = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(error):
            if program == "kassign-spark":
                exit_code = _main(arguments)
            elif program == "python":
                runpy.run_path(arguments[0], run_name="__main__")
            elif program == "cat":
                print("".join(Path(name).read_text() for name in arguments), end="")
            else:
                raise AssertionError(f"{where}: mark it <!-- not run: REASON -->, or teach reader")
        if exit_code == 2:  # Before the error, long work may have been announced.
            return exit_code, error.getvalue().splitlines()[-1]
        return exit_code, out.getvalue()

    def _python(self, block: Block) -> None:
        code = compile(self._real(block.text), block.where, "exec")
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(code, self._names)
        self._printed = out.getvalue()

    def _file(self, block: Block) -> None:
        file = self._build / f"block.{block.kind}"
        file.write_text(block.text)
        if block.kind == "toml":
            load_settings(file)
        else:
            read_events(file)

    def _real(self, text: str) -> str:
        if ADDRESS in text:
            self._known_address = self._address()
        return _BUILD.sub(f"{self._build}/", text).replace(ADDRESS, self._known_address)

    def _shown(self, text: str) -> str:
        text = text.replace(f"{self._build}/", "build/")
        return text.replace(self._known_address, ADDRESS)


def console_commands(block: Block) -> list[tuple[str, str]]:
    """Split a console block into commands, continued lines joined, and what each prints."""
    commands: list[tuple[str, str]] = []
    lines = iter(block.text.splitlines())
    for line in lines:
        if line.startswith(_PROMPT):
            command = line.removeprefix(_PROMPT)
            while command.endswith("\\"):
                command = f"{command[:-1].rstrip()} {next(lines).strip()}"
            commands.append((command, ""))
        else:
            assert commands, f"{block.where}: output without a command: {line!r}"
            command, output = commands[-1]
            commands[-1] = (command, f"{output}{line}\n")
    assert commands, f"{block.where}: no line starts with {_PROMPT!r}"
    return commands


def _words(command: str) -> list[str]:
    """Split as a shell does; shlex alone takes a # inside a word for a comment too."""
    return shlex.split(re.sub(r"\s#.*", "", command))


def check_without_running(block: Block) -> None:
    """Check what needs no run: arguments are accepted, files and make targets exist."""
    if block.kind == "python":
        compile(block.text, block.where, "exec")
    if block.kind != "console":
        return
    for command, _ in console_commands(block):
        where = f"{block.where}: $ {command}"
        program, *arguments = _words(command)
        program = program.removeprefix(".venv/bin/").removeprefix("$SPARK_HOME/bin/")
        if command == "echo $?":
            continue
        for argument in arguments:
            if argument.startswith(tuple(f"{name}/" for name in _OWN_FOLDERS)):
                assert (ROOT / argument).exists(), f"{where}: {argument} does not exist"
        if program == "kassign-spark":
            _check_arguments(arguments, where)
        elif program == "spark-submit":
            main = next((a for a in arguments if a.endswith("__main__.py")), None)
            assert main is not None, f"{where}: no __main__.py"
            _check_arguments(arguments[arguments.index(main) + 1 :], where)
        elif program == "make":
            targets = re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
            assert {a for a in arguments if "=" not in a} <= set(targets), where
        else:
            assert program in _PROGRAMS_NOT_RUN, f"{where}: unknown program"


def _check_arguments(arguments: list[str], where: str) -> None:
    error = io.StringIO()
    try:
        with contextlib.redirect_stderr(error):
            cli._parser().parse_args(arguments)
    except SystemExit:
        raise AssertionError(f"{where}: {error.getvalue()}") from None


def _main(arguments: list[str]) -> int:
    """Run the command; the argument parser ends the process itself."""
    try:
        return cli.main(arguments)
    except SystemExit as ended:
        return int(ended.code or 0)


def _compare(expected: str, printed: str, where: str) -> None:
    """Compare line by line; ``...`` stands for anything, be it many lines."""
    expected, printed = (
        "".join(f"{line.rstrip()}\n" for line in text.rstrip().splitlines())
        for text in (expected, printed)
    )
    flags = doctest.ELLIPSIS
    if not _CHECKER.check_output(expected, printed, flags):
        raise AssertionError(f"{where}\nthe document shows:\n{expected}\nprinted:\n{printed}")
