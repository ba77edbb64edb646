"""The reference of the public functions: it builds, and nothing public goes without a word."""

import ast
import inspect
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import kassign_spark
from kassign_spark import ASSIGNORS
from kassign_spark.plans.protocol_choice import CANDIDATES
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
from tests.public import FUNCTIONS, HOMES, PUBLIC

_NAMES = """
ASSIGNORS Assignor Bounds Eligibility Eligible FleetGraph GroupLog KassignError Limit Migration
Settings Snapshot Sweep Timeouts advise assign balance bottlenecks check_migration
check_settings choose_assignors compare coordinator_load coordinator_partition coordinators
deliver diff eligibility explain explain_history fleet_graph group_clusters listener_calls
member_traffic migrate moved_keys null_key_shares parse_sweep partition_for_key
partition_traffic partition_weights place_records plan_by_weight predict predict_rebalance
read_group_log read_snapshot rebalance rebalances resolve_patterns simulate storms summarize
summarize_events sweep touched_by touched_groups tradeoff validate violations write_snapshot
"""
_ONCE_HERE = set(_NAMES.split())


def _docstring(name: str) -> str:
    return inspect.getdoc(PUBLIC[name]) or ""


@pytest.fixture(scope="module")
def pages(own_processes: None, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What ``make docs`` writes of each room; a warning of pdoc is an error."""
    folder = tmp_path_factory.mktemp("docs")
    steps = subprocess.check_output(["make", "--dry-run", "docs"], cwd=ROOT, text=True)
    (shown,) = re.findall(r"/pdoc (.*)", steps.replace("\\\n", " "))
    arguments = shlex.split(shown.replace("build/docs", str(folder)))
    built = subprocess.run(
        [sys.executable, "-W", "error", "-m", "pdoc", *arguments],
        cwd=ROOT,
        env={"PYTHONPATH": str(ROOT), "PATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (built.returncode, built.stderr) == (0, "")
    rooms = {room: folder / f"{room.replace('.', '/')}.html" for room in set(HOMES.values())}
    assert {folder / "index.html", *rooms.values()} == set(folder.rglob("*.html"))
    return {room: path.read_text() for room, path in rooms.items()}


def test_names_that_were_all_in_one_place_are_still_there() -> None:
    assert {
        name for name in _ONCE_HERE if getattr(kassign_spark, name) is not PUBLIC[name]
    } == set()
    assert set(HOMES) - _ONCE_HERE == {"load_settings"}


def test_names_for_type_checkers_are_those_that_are_imported_when_asked_for() -> None:
    tree = ast.parse(Path(kassign_spark.__file__).read_text())
    (checked,) = (node for node in tree.body if isinstance(node, ast.If))
    columns = {
        alias.name: (node.module or "").removeprefix("kassign_spark.")
        for node in checked.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert columns == kassign_spark._MODULE_OF
    assert set(columns) | {"load_settings"} == set(HOMES)
    assert set(columns) <= set(dir(kassign_spark))
    with pytest.raises(AttributeError, match="'kassign_spark' has no attribute 'asign'"):
        _ = kassign_spark.asign


def test_every_public_name_is_described(pages: dict[str, str]) -> None:
    """In a section of its own, which says something; a plain value in the text at the top."""
    sections = {
        (room, name): text
        for room, page in pages.items()
        for name, text in re.findall(r'<section id="(\w+)">(.*?)</section>', page, re.DOTALL)
    }
    silent = {
        name
        for name, room in HOMES.items()
        if '<div class="docstring">' not in sections[room, name]
    }
    assert silent == {"ASSIGNORS", "Assignor"}
    assert [name for name in silent if f"``{name}``" not in (kassign_spark.__doc__ or "")] == []


def test_no_type_is_taken_for_a_tag(pages: dict[str, str]) -> None:
    """As `array<string>` would be without its backticks: a browser shows "array"."""
    for page in pages.values():
        assert re.findall(r"<(?:string|struct|array|int|bigint)\b", page) == []


def test_no_address_of_the_machine_is_in_the_reference(pages: dict[str, str]) -> None:
    for page in pages.values():
        assert re.findall(r"at 0x[0-9a-f]+", page) == []
        assert str(ROOT) not in page


@pytest.mark.parametrize("name", FUNCTIONS)
def test_sections_of_a_function(name: str) -> None:
    """All arguments by name, what comes back, what is raised."""
    text, signature = _docstring(name), inspect.signature(PUBLIC[name])
    assert "\nArgs:\n" in text or not signature.parameters
    missing = [each for each in signature.parameters if f"\n    {each}: " not in text]
    assert missing == []
    assert "\nReturns:\n" in text or signature.return_annotation in (None, "None")
    assert "\nRaises:\n" in text or name == "summarize_events"  # takes what simulate gives


def test_attributes_of_a_class() -> None:
    for name, public in PUBLIC.items():
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
    functions = {name.partition(".")[0] for name in results.columns()}
    no_tables = {
        "coordinator_partition",
        "load_settings",
        "parse_sweep",
        "partition_for_key",
        "write_snapshot",
    }
    assert set(FUNCTIONS) - functions - no_tables == {"read_snapshot"}  # the tables of the folder


def test_assignors_are_named_in_the_documents() -> None:
    readme = Path(ROOT / "README.md").read_text()
    assert [name for name in ASSIGNORS if name not in readme] == []
