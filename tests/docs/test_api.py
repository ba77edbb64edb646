"""The reference of the public functions: it builds, and nothing public goes without a word."""

import inspect
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import kassign_spark
from kassign_spark import ASSIGNORS
from kassign_spark.plans.choice import CANDIDATES
from kassign_spark.schemas import (
    ASSIGNMENT,
    LEADERS,
    MEMBERS,
    OWNED,
    TOPIC_PARTITIONS,
    TOPICS,
    Table,
)
from kassign_spark.simulation.events import EVENTS
from tests.docs import results
from tests.docs.reader import ROOT

_NAMES = kassign_spark.__all__
_FUNCTIONS = [name for name in _NAMES if inspect.isfunction(getattr(kassign_spark, name))]


def _docstring(name: str) -> str:
    return inspect.getdoc(getattr(kassign_spark, name)) or ""


@pytest.fixture(scope="module")
def page(own_processes: None, tmp_path_factory: pytest.TempPathFactory) -> str:
    """What ``make docs`` writes, by its own arguments; a warning of pdoc is an error."""
    folder = tmp_path_factory.mktemp("docs")
    (command,) = re.findall(r"\$\(BIN\)/pdoc (.*)", (ROOT / "Makefile").read_text())
    arguments = shlex.split(command.replace("build/docs", str(folder)))
    built = subprocess.run(
        [sys.executable, "-W", "error", "-m", "pdoc", *arguments],
        cwd=ROOT,
        env={"PYTHONPATH": str(ROOT), "PATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (built.returncode, built.stderr) == (0, "")
    assert sorted(path.name for path in folder.glob("*.html")) == [
        "index.html",
        "kassign_spark.html",
    ]
    return (folder / "kassign_spark.html").read_text()


def test_every_public_name_is_described(page: str) -> None:
    """In a section of its own, which says something; a plain value in the text at the top."""
    sections = dict(re.findall(r'<section id="(\w+)">(.*?)</section>', page, re.DOTALL))
    assert set(_NAMES) <= set(sections)
    silent = {name for name in _NAMES if '<div class="docstring">' not in sections[name]}
    assert silent == {"ASSIGNORS", "Assignor"}
    assert [name for name in silent if f"``{name}``" not in (kassign_spark.__doc__ or "")] == []


def test_no_type_is_taken_for_a_tag(page: str) -> None:
    """As `array<string>` would be without its backticks: a browser shows "array"."""
    assert re.findall(r"<(?:string|struct|array|int|bigint)\b", page) == []


def test_no_address_of_the_machine_is_in_the_reference(page: str) -> None:
    assert re.findall(r"at 0x[0-9a-f]+", page) == []
    assert str(ROOT) not in page


@pytest.mark.parametrize("name", _FUNCTIONS)
def test_sections_of_a_function(name: str) -> None:
    """All arguments by name, what comes back, what is raised."""
    text, signature = _docstring(name), inspect.signature(getattr(kassign_spark, name))
    assert "\nArgs:\n" in text or not signature.parameters
    missing = [each for each in signature.parameters if f"\n    {each}: " not in text]
    assert missing == []
    assert "\nReturns:\n" in text or signature.return_annotation in (None, "None")
    assert "\nRaises:\n" in text or name == "summarize_events"  # takes what simulate gives


def test_attributes_of_a_class() -> None:
    for name in _NAMES:
        public: Any = getattr(kassign_spark, name)
        fields = getattr(public, "_fields", None) or getattr(public, "__dataclass_fields__", ())
        if inspect.isclass(public):
            missing = [each for each in fields if f"\n    {each}: " not in _docstring(name)]
            assert (name, missing) == (name, [])


@pytest.mark.parametrize(
    "table",
    [MEMBERS, TOPICS, TOPIC_PARTITIONS, OWNED, ASSIGNMENT, CANDIDATES, LEADERS, EVENTS],
    ids=lambda table: table.name,
)
def test_columns_of_the_tables_are_in_the_reference(table: Table) -> None:
    """Names, types and which may be null, as the schemas have them."""
    columns = ", ".join(
        f"{field.name} {field.dataType.simpleString()}{'?' * field.nullable}"
        for field in table.columns
    )
    text = " ".join((kassign_spark.__doc__ or "").replace("`", "").split())
    assert f": {columns}" in text


def test_columns_of_the_results_are_in_the_documents() -> None:
    """As ``results`` writes them; each function that answers with a table is among them."""
    page = results.PAGE.read_text()
    assert page == results.with_section(page)
    of_log = {f"read_group_log.{name}" for name in kassign_spark.GroupLog._fields}
    assert {name for name in results.TABLES if name.startswith("read_group_log.")} == of_log
    told = {name.partition(".")[0] for name in results.columns()}
    no_tables = {"coordinator_partition", "parse_sweep", "partition_for_key", "write_snapshot"}
    assert set(_FUNCTIONS) - told - no_tables == {"read_snapshot"}  # the tables of the folder


def test_assignors_are_named_in_the_documents() -> None:
    readme = Path(ROOT / "README.md").read_text()
    assert [name for name in ASSIGNORS if name not in readme] == []
