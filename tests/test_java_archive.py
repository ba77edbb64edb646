"""``java-archive``: what it writes is what later commands start from."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from kassign_spark import cli
from kassign_spark.errors import KassignError
from kassign_spark.launch.java import archive_options, archive_path

_USES = """
import sys
from kassign_spark.launch.command_session import open_session
from pyspark import SparkContext
with open_session(*sys.argv[1:]) as spark:
    maps = open(f"/proc/{SparkContext._gateway.proc.pid}/maps").read()
    print(sum(".jsa" in line and "kassign-spark" in line for line in maps.splitlines()))
"""


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "kassign-spark"


def test_without_an_archive_java_starts_as_ever(cache: Path) -> None:
    assert archive_options() == ""


def test_a_path_that_is_no_single_option_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "my cache"))
    archive_path().parent.mkdir(parents=True)
    archive_path().touch()
    assert archive_options() == ""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    archive_path().parent.mkdir(parents=True)
    archive_path().touch()
    assert f"-XX:SharedArchiveFile={archive_path()} " in archive_options()


def test_another_java_has_another_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = archive_path()
    (tmp_path / "bin").mkdir()
    java = tmp_path / "bin" / "java"
    java.write_text("#!/bin/sh\n")
    java.chmod(0o755)
    (tmp_path / "release").write_text('JAVA_VERSION="21.0.1"\n')
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert archive_path() != here
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nowhere"))
    with pytest.raises(KassignError, match="Java was not found in JAVA_HOME"):
        archive_path()
    assert archive_options() == ""


def test_it_is_refused_where_the_session_is_not_its_own(
    spark: SparkSession, cache: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["java-archive"]) == 2
    assert "run kassign-spark java-archive without spark-submit" in capsys.readouterr().err
    assert not cache.exists()


def test_none_is_there_to_be_removed(cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["java-archive", "--remove", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"archive": str(archive_path()), "bytes": None}


@pytest.mark.slow
@pytest.mark.usefixtures("own_processes")
def test_commands_start_from_it(cache: Path, tmp_path: Path) -> None:
    large = tmp_path / "large"
    large.write_bytes(bytes(2 << 20))
    program = [sys.executable, "-m", "kassign_spark", "java-archive"]
    assert "MB in" in _output(program)
    assert list(cache.iterdir()) == [archive_path()]
    assert archive_path().stat().st_size > 50 << 20
    for inputs in ([], [str(large)], [str(tmp_path / "kassign-spark")]):
        assert int(_output([sys.executable, "-c", _USES, *inputs])) > 0, inputs
    archive_path().chmod(0o644)
    archive_path().write_bytes(b"no archive")
    # Java says so, among other places, where a command prints; and starts without it.
    assert _output([sys.executable, "-c", _USES]) == "0\n"
    assert "removed" in _output([*program, "--remove"])
    assert list(cache.iterdir()) == []


def _output(command: list[str]) -> str:
    ended = subprocess.run(
        command, capture_output=True, text=True, timeout=300, env=os.environ, check=False
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout
