"""What the documents show is what happens: every block of every document is run.

A block that cannot run here says why, in ``<!-- not run: REASON -->`` before it, and the reasons
are printed by ``pytest -s``; its arguments, files and targets are checked all the same.
"""

import argparse
import re
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from kassign_spark import cli
from kassign_spark.commands import COMMANDS
from kassign_spark.simulation.events import KINDS
from tests.docs.blocks import Block, blocks_of, links_of
from tests.docs.reader import ADDRESS, ROOT, Reader, check_without_running

_DOCUMENTS = sorted(
    path
    for folder in (".", "docs", "docs/tasks", "examples")
    for path in (ROOT / folder).glob("*.md")
)


def _with_marker(path: Path) -> object:
    marks = [pytest.mark.broker] if ADDRESS in path.read_text() else []
    return pytest.param(path, id=str(path.relative_to(ROOT)), marks=marks)


@pytest.mark.slow
@pytest.mark.parametrize("path", [_with_marker(path) for path in _DOCUMENTS])
def test_every_block(
    path: Path,
    spark: SparkSession,
    tmp_path: Path,
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def address() -> str:
        return str(request.getfixturevalue("broker").bootstrap_server)

    monkeypatch.setenv("COLUMNS", "80")  # of argparse's help
    reader = Reader(tmp_path, address)
    for block in blocks_of(path):
        if block.not_run is not None:
            print(f"{block.where}: not run: {block.not_run}")
        reader.read(block)
    reader.nothing_left("the end")


@pytest.mark.parametrize("path", _DOCUMENTS, ids=lambda path: path.name)
def test_every_block_can_be_read(path: Path) -> None:
    """All that costs little before the slow test runs them."""
    assert all(block.text for block in blocks_of(path))


@pytest.mark.parametrize("path", _DOCUMENTS, ids=lambda path: path.name)
def test_every_link_inside_the_repository(path: Path) -> None:
    inside = [link for link in links_of(path) if not re.match(r"https?:|mailto:|#", link)]
    assert [link for link in inside if not (path.parent / link.split("#")[0]).exists()] == []


def test_every_command_and_kind_of_event_is_in_the_documents() -> None:
    texts = {path.relative_to(ROOT): path.read_text() for path in _DOCUMENTS}
    assert [name for name in COMMANDS if f"| `{name} " not in texts[Path("docs/commands.md")]] == []
    everything = "".join(texts.values())
    assert [kind for kind in KINDS if f"`{kind}`" not in everything] == []


def test_the_example_of_every_help_is_accepted() -> None:
    """By the argument parser, and its files are there; the documents run most of them."""
    (commands,) = (
        action
        for action in cli._parser()._actions
        if isinstance(action, argparse._SubParsersAction)
    )
    assert len(commands.choices) == len(COMMANDS)
    for name, parser in commands.choices.items():
        example = parser.epilog.removeprefix("example:\n").strip()
        assert example.split()[:2] == ["kassign-spark", name]
        check_without_running(Block(name, "console", f"$ {example}\n", "an example of --help"))
