"""What a wheel and a source archive hold: all that users need, and what they were tested with."""

import re
import subprocess
import tarfile
import tomllib
import zipfile
from email.message import Message
from email.parser import Parser
from pathlib import Path

import pytest

from kassign_spark import __version__
from tests.docs.reader import ROOT
from tests.install.distributions import build_sdist, build_wheel

_PACKAGE = ROOT / "kassign_spark"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    return zipfile.ZipFile(build_wheel(tmp_path_factory.mktemp("wheel")))


@pytest.fixture(scope="module")
def metadata(wheel: zipfile.ZipFile) -> Message:
    (name,) = (n for n in wheel.namelist() if n.endswith(".dist-info/METADATA"))
    return Parser().parsestr(wheel.read(name).decode())


def _files() -> set[str]:
    return {
        str(path.relative_to(ROOT))
        for path in _PACKAGE.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


def test_the_wheel_has_every_file_of_the_package_and_no_other(wheel: zipfile.ZipFile) -> None:
    names = {name for name in wheel.namelist() if ".dist-info/" not in name}
    assert names == _files()
    kinds = {Path(name).suffix for name in names}
    assert {".typed", ".j2", ".css", ".js", ".json", ".properties"} <= kinds


def test_what_the_wheel_says_of_itself(wheel: zipfile.ZipFile, metadata: Message) -> None:
    assert metadata["Version"] == __version__
    assert metadata["Requires-Python"] == ">=3.11"
    assert metadata["License-Expression"] == "Apache-2.0"
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert set(metadata.get_all("Provides-Extra")) == set(project["optional-dependencies"])
    needed = [r for r in metadata.get_all("Requires-Dist") if "extra ==" not in r]
    # No PySpark, which a platform brings, nor with another extra than its own and the developers'.
    assert {re.split("[<>=]", need)[0] for need in needed} == {"numpy", "pandas", "pyarrow"}
    spark = [r for r in metadata.get_all("Requires-Dist") if r.startswith("pyspark")]
    assert {requirement.partition("; ")[2] for requirement in spark} == {
        "extra == 'spark'",
        "extra == 'dev'",
    }
    (name,) = (n for n in wheel.namelist() if n.endswith("entry_points.txt"))
    assert "kassign-spark = kassign_spark.__main__:main" in wheel.read(name).decode()


@pytest.mark.usefixtures("own_processes")
def test_the_source_archive_builds_the_same_wheel(wheel: zipfile.ZipFile, tmp_path: Path) -> None:
    """It has what git keeps, so the tests can be run from it too."""
    archive = build_sdist(tmp_path)
    with tarfile.open(archive) as files:
        files.extractall(tmp_path, filter="data")
    root = tmp_path / archive.name.removesuffix(".tar.gz")
    kept = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    there = {line for line in kept.stdout.splitlines() if (ROOT / line).is_file()}
    assert {name for name in there if not (root / name).is_file()} == set()
    again = zipfile.ZipFile(build_wheel(tmp_path / "wheel", root))
    assert {i.filename: i.CRC for i in again.infolist() if "RECORD" not in i.filename} == {
        i.filename: i.CRC for i in wheel.infolist() if "RECORD" not in i.filename
    }
