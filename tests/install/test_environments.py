"""The built package in clean environments: no checkout, not editable, nothing activated.

Each has the interpreter that it names, then the PySpark, as a platform brings it, and at last the
package with all extras but that of PySpark; pip installs them from where it is set up to.
Interpreters are looked for on the path and among pyenv's.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from pyspark import __version__ as pyspark_version

from kassign_spark import __version__
from tests.connect.server import connect_server
from tests.docs.reader import ROOT
from tests.install.distributions import build_sdist, build_wheel
from tests.interpreters import interpreter_of

_EXTRAS = "connect,graph,live,report,yaml"
_WITH = {
    # Databricks 15.4 LTS: the lowest of all that is allowed.
    "3.11": ("pyspark==3.5.0 numpy==1.23.5 pandas==1.5.3 pyarrow==14.0.1", build_wheel),
    "3.12": ("pyspark==4.1.4", build_sdist),
    "3.13": ("pyspark>=4.1,<5", build_wheel),
}
"""Python, what is there before the package, and what the package is installed from."""
_PINNED_BY_PYSPARK = (
    "(pyspark|py4j|numpy|pandas|pyarrow|protobuf|grpcio|grpcio-status|googleapis-common-protos)=="
)

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("own_processes")]


class Environment(NamedTuple):
    """A clean environment, and a folder that is not a checkout."""

    python: Path
    elsewhere: Path
    before: set[str]
    """Packages and their versions that were there before this one."""

    def run(self, *command: str | Path) -> "subprocess.CompletedProcess[str]":
        """Run a program of the environment, which is not active, and must end well."""
        program, *arguments = map(str, command)
        hidden = ("PYTHON", "PYSPARK", "SPARK", "VIRTUAL_ENV")
        bare = {k: v for k, v in os.environ.items() if not k.startswith(hidden)}
        ran = subprocess.run(
            [str(self.python.parent / program), *arguments],
            cwd=self.elsewhere,
            env=bare | {"PATH": "/usr/bin:/bin"},
            capture_output=True,
            text=True,
            timeout=600,
        )
        assert ran.returncode == 0, ran.stdout[-2000:] + ran.stderr[-2000:]
        return ran


def _new_environment(interpreter: str, folder: Path) -> Path:
    subprocess.run([interpreter, "-m", "venv", folder / "env"], check=True, timeout=120)
    return folder / "env" / "bin" / "python"


def _install(python: Path, *packages: str | Path) -> None:
    """With pip as it is set up, but without the packages of this process."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    # What is imported is compiled then; pip would compile all there is.
    command = [python, "-m", "pip", "install", "--quiet", "--no-compile", *packages]
    subprocess.run(command, check=True, env=environment, cwd=python.parent, timeout=1500)


def _packages(python: Path) -> set[str]:
    ran = subprocess.run(
        [python, "-m", "pip", "freeze"], capture_output=True, text=True, check=True, timeout=120
    )
    return set(ran.stdout.splitlines())


@pytest.fixture(scope="module", params=_WITH)
def environment(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Environment]:
    platform, build = _WITH[request.param]
    interpreter = interpreter_of(request.param)
    if interpreter is None:
        pytest.skip(f"this machine has no Python {request.param}")
    folder = tmp_path_factory.mktemp("clean")
    package = build(folder / "dist")
    constraints = folder / "constraints.txt"
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    lines = [line for line in lines if not re.match(_PINNED_BY_PYSPARK, line)]
    constraints.write_text("\n".join(lines))
    python = _new_environment(interpreter, folder)
    _install(python, *platform.split())
    before = _packages(python)
    _install(python, "--constraint", constraints, f"{package}[{_EXTRAS}]")
    elsewhere = folder / "elsewhere"
    shutil.copytree(ROOT / "examples" / "fleet", elsewhere / "fleet")
    shutil.copytree(ROOT / "examples", elsewhere / "examples")
    yield Environment(python, elsewhere, before)
    shutil.rmtree(folder / "env")


@pytest.fixture(scope="module")
def documents(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The documents of the first environment, which the others have to give as well."""
    return tmp_path_factory.mktemp("documents") / "documents.jsonl"


def test_the_package_is_the_installed_one(environment: Environment) -> None:
    location = environment.run(
        "python", "-c", "import kassign_spark as k; print(k.__file__)"
    ).stdout
    assert "/site-packages/kassign_spark/" in location
    assert environment.run("kassign-spark", "--version").stdout == f"kassign-spark {__version__}\n"
    module = environment.run("python", "-m", "kassign_spark", "--version").stdout
    assert module == f"kassign-spark {__version__}\n"
    environment.run("python", "-m", "pip", "check")


def test_what_was_there_stays(environment: Environment) -> None:
    assert environment.before - _packages(environment.python) == set()


def test_all_extras(environment: Environment) -> None:
    """Each imports, with the modules of ours that need it."""
    modules = ("grpc", "graphframes", "kafka", "altair", "vl_convert", "jinja2", "yaml")
    own_modules = ("live.live_snapshot", "report.charts", "report.render", "graph.eligibility")
    names = [*modules, *(f"kassign_spark.{name}" for name in own_modules)]
    environment.run("python", "-c", f"import {', '.join(names)}")


def test_commands(environment: Environment) -> None:
    def stdout_of(*arguments: str) -> str:
        ran = environment.run("kassign-spark", *arguments)
        # PySpark 4.2 and 4.3 warn of pandas 3 while they are imported, in two lines each time.
        warns = r"pandas >= 3|pandas_version\(\)$"
        errors = [line for line in ran.stderr.splitlines() if not re.search(warns, line)]
        assert [line for line in errors if not line.endswith(" ...")] == []
        return ran.stdout

    assigned = stdout_of("assign", "fleet", "--output", "plan", "--show", "1")
    assert "25 groups, 142 members, 943 partitions, no violations" in assigned
    assert "the report is in report.html" in stdout_of("report", "plan", "--output", "report.html")
    page = (environment.elsewhere / "report.html").read_text()
    assert "<svg" in page
    assert "<script>" in page
    assert "orders-notifications" in page
    drawn = stdout_of("graph", "fleet", "--output", "graph")
    assert "the tables vertices, edges and bottlenecks are in graph" in drawn


def test_documents_are_those_of_every_pyspark(environment: Environment, documents: Path) -> None:
    script = shutil.copy(ROOT / "tests" / "versions" / "documents.py", environment.elsewhere)
    environment.run("python", script, documents)
    assert documents.exists()


def test_type_information(environment: Environment) -> None:
    """Mypy, of this environment, looks at the installed package as a user's editor does."""
    for name in ("user_good.py", "user_wrong.py"):
        shutil.copy(Path(__file__).parent / name, environment.elsewhere)

    options = ["--strict", "--no-error-summary", "--cache-dir=cache"]
    options.append(f"--python-executable={environment.python}")

    def mypy_errors(name: str) -> list[str]:
        ran = subprocess.run(
            [sys.executable, "-m", "mypy", *options, name],
            cwd=environment.elsewhere,
            env={k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "MYPYPATH")},
            capture_output=True,
            text=True,
            timeout=600,
        )
        return ran.stdout.splitlines()

    assert mypy_errors("user_good.py") == []
    wrong = (Path(__file__).parent / "user_wrong.py").read_text().splitlines()
    expected = [
        (str(number), line.rpartition("# ")[2])
        for number, line in enumerate(wrong, 1)
        if "  # " in line
    ]
    errors = [
        re.match(r"user_wrong\.py:(\d+): error: .*\[([\w-]+)\]$", e)
        for e in mypy_errors("user_wrong.py")
    ]
    assert [(e[1], e[2]) for e in errors if e] == expected
    assert len(expected) == 4


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Environment]:
    """PySpark's client of Spark Connect alone: no Java, no py4j."""
    folder = tmp_path_factory.mktemp("client")
    python = _new_environment(sys.executable, folder)
    requirement = f"pyspark-client>=4.1,<={pyspark_version}"
    _install(python, "--constraint", ROOT / "constraints.txt", requirement)
    before = _packages(python)
    _install(python, build_wheel(folder / "dist"))
    elsewhere = folder / "elsewhere"
    shutil.copytree(ROOT / "examples" / "fleet", elsewhere / "fleet")
    yield Environment(python, elsewhere, before)
    shutil.rmtree(folder / "env")


_ASK = """
import sys
from pyspark.sql import SparkSession
from kassign_spark import KassignError, assign, read_snapshot, write_snapshot

spark = SparkSession.builder.remote(sys.argv[1]).getOrCreate()
fleet = read_snapshot(sys.argv[2], spark)
print(assign(*fleet).count())
spark.sql("CREATE SCHEMA fleets")
write_snapshot(fleet, "table:fleets")
print(read_snapshot("table:fleets", spark).members.count())
"""


def test_the_client_of_spark_connect_alone(client: Environment, tmp_path: Path) -> None:
    """Functions and commands ask a server; a command without one says what it needs."""
    added = {line.split(" @ ")[0] for line in _packages(client.python) - client.before}
    assert added == {"kassign-spark"}
    fleet = client.elsewhere / "fleet"
    with connect_server(tmp_path) as address:
        asked = client.run("python", "-c", _ASK, address, fleet)
        validated = client.run("kassign-spark", "validate", fleet, "--remote", address)
    assert asked.stdout.split() == ["943", "142"]
    assert validated.stdout == f"{fleet}: all well\n"
    refused = _refused(client.python, client.elsewhere)
    assert refused.startswith("kassign-spark: error: this environment has PySpark's client")


def test_no_pyspark(tmp_path: Path) -> None:
    python = _new_environment(sys.executable, tmp_path)
    _install(python, "--no-deps", build_wheel(tmp_path / "dist"))
    assert _refused(python, tmp_path) == (
        "kassign-spark: error: pyspark is not installed: pip install 'kassign-spark[spark]'\n"
    )


def _refused(python: Path, folder: Path) -> str:
    """Return the one line that a command says before it has started anything."""
    refused = subprocess.run(
        [python.parent / "kassign-spark", "validate", "fleet"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (refused.returncode, refused.stdout) == (2, "")
    assert refused.stderr.count("\n") == 1
    return refused.stderr
