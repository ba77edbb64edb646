"""The daily run of the examples: which steps follow on which exit code, and what is kept of them.

A command of the test's own stands in, so that these take no time; a slow test runs the real one.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.json_schemas import check_document

_ROOT = Path(__file__).parents[1]
_SCRIPT = _ROOT / "examples" / "daily.sh"
_STAND_IN = """#!/bin/sh
echo "$@" >>"$CALLS"
if [ "$1" = serve ]; then
  [ -n "$NO_SERVER" ] && exit 2
  echo "export SPARK_REMOTE=sc://localhost:1/"
  exec sleep 600
fi
echo "$SPARK_REMOTE" >>"$CALLS.remote"
echo "{\\"said\\": \\"$1\\"}"
while [ $# -gt 0 ]; do
  [ "$1" = --output ] && [ "${2%.html}" = "$2" ] && mkdir -p "$2"
  for exit in $EXITS; do [ "${exit%=*}" = "$1" ] && code=${exit#*=}; done
  shift
done
exit ${code:-0}
"""

_ORDER = ("serve", "snapshot", "validate", "assign", "diff", "report")
"""Validate runs beside assign and diff, and counts as before them."""

pytestmark = pytest.mark.usefixtures("own_processes")


@pytest.fixture
def command(tmp_path: Path) -> str:
    program = tmp_path / "stand-in"
    program.write_text(_STAND_IN)
    program.chmod(0o755)
    return str(program)


def _run(
    source: str, folder: Path, command: str, day: str, exits: str = "", shell: str = "sh"
) -> "subprocess.CompletedProcess[str]":
    environment = {"KASSIGN": command, "DAY": day, "EXITS": exits}
    return subprocess.run(
        [shell, str(_SCRIPT), source, str(folder)],
        cwd=_ROOT,
        env={**os.environ, "PYTHONPATH": str(_ROOT), "CALLS": f"{folder}.calls", **environment},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


def _calls(folder: Path) -> list[str]:
    """The steps since the last look, behind the server that they all use."""
    file, remote = Path(f"{folder}.calls"), Path(f"{folder}.calls.remote")
    server, *steps = [line.split()[0] for line in file.read_text().splitlines()]
    assert server == "serve"
    assert remote.read_text().splitlines() == ["sc://localhost:1/"] * len(steps)
    file.unlink()
    remote.unlink()
    return sorted(steps, key=_ORDER.index)


@pytest.mark.parametrize("shell", ["sh", "bash"])
def test_a_day_after_another(tmp_path: Path, command: str, shell: str) -> None:
    folder = tmp_path / "days"
    ended = _run("127.0.0.1:9092", folder, command, "2026-11-21", shell=shell)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout.startswith("2026-11-21: nothing to look at")
    assert _calls(folder) == ["snapshot", "validate", "assign", "report"]

    ended = _run("127.0.0.1:9092", folder, command, "2026-11-22", shell=shell)
    assert ended.returncode == 0
    compared = f"diff {folder}/2026-11-21/snapshot {folder}/2026-11-22/snapshot --json"
    assert compared in Path(f"{folder}.calls").read_text().splitlines()
    assert _calls(folder) == ["snapshot", "validate", "assign", "diff", "report"]
    documents = sorted(path.name for path in (folder / "2026-11-22").glob("*.json"))
    steps = ("assign", "diff", "report", "snapshot", "validate")
    assert documents == [f"{step}.json" for step in steps]

    # Again the same day: the snapshot is that of the day, and all else is made anew of it.
    assert _run("127.0.0.1:9092", folder, command, "2026-11-22", shell=shell).returncode == 0
    assert _calls(folder) == ["validate", "assign", "diff", "report"]
    # An earlier day once more is not compared with a later one.
    assert _run("127.0.0.1:9092", folder, command, "2026-11-21", shell=shell).returncode == 0
    assert _calls(folder) == ["validate", "assign", "report"]


def test_findings_do_not_end_it(tmp_path: Path, command: str) -> None:
    folder = tmp_path / "days"
    ended = _run("127.0.0.1:9092", folder, command, "2026-11-22", "validate=1 assign=1")
    assert (ended.returncode, ended.stderr) == (1, "")
    assert ended.stdout.startswith("2026-11-22: to look at: validate assign; see ")
    assert _calls(folder) == ["snapshot", "validate", "assign", "report"]
    assert json.loads((folder / "2026-11-22" / "validate.json").read_text()) == {"said": "validate"}


@pytest.mark.parametrize("code", [2, 143])
def test_an_error_ends_it(tmp_path: Path, command: str, code: int) -> None:
    """The failed step leaves no document, and a retry takes up where it was."""
    folder = tmp_path / "days"
    ended = _run("127.0.0.1:9092", folder, command, "2026-11-22", f"validate=1 assign={code}")
    assert (ended.returncode, ended.stdout) == (code, "")
    assert _calls(folder) == ["snapshot", "validate", "assign"]
    left = sorted(path.name for path in (folder / "2026-11-22").iterdir() if path.is_file())
    assert left == ["snapshot.json", "validate.json"]
    assert _run("127.0.0.1:9092", folder, command, "2026-11-22").returncode == 0
    assert _calls(folder) == ["validate", "assign", "report"]


def test_an_error_of_the_step_beside_ends_it(tmp_path: Path, command: str) -> None:
    folder = tmp_path / "days"
    ended = _run("127.0.0.1:9092", folder, command, "2026-11-22", "validate=2")
    assert (ended.returncode, ended.stdout) == (2, "")
    assert _calls(folder) == ["snapshot", "validate", "assign"]
    left = sorted(path.name for path in (folder / "2026-11-22").iterdir() if path.is_file())
    assert left == ["assign.json", "snapshot.json"]


def test_a_snapshot_that_fails_is_taken_again(tmp_path: Path, command: str) -> None:
    folder = tmp_path / "days"
    (tmp_path / "no-folder").write_text(_STAND_IN.replace('mkdir -p "$2"', ":"))
    (tmp_path / "no-folder").chmod(0o755)
    failing = str(tmp_path / "no-folder")
    assert _run("127.0.0.1:1", folder, failing, "2026-11-22", "snapshot=2").returncode == 2
    assert _calls(folder) == ["snapshot"]
    assert _run("127.0.0.1:1", folder, command, "2026-11-22").returncode == 0
    assert _calls(folder)[0] == "snapshot"


@pytest.mark.parametrize(("remote", "calls"), [("", "serve"), ("sc://there:1", "validate")])
def test_without_a_server_of_its_own(
    tmp_path: Path, command: str, monkeypatch: pytest.MonkeyPatch, remote: str, calls: str
) -> None:
    """None starts, as with PySpark 3.5, or one runs elsewhere."""
    folder = tmp_path / "days"
    monkeypatch.setenv("NO_SERVER", "1")
    monkeypatch.setenv("SPARK_REMOTE", remote)
    assert _run("examples/fleet", folder, command, "2026-11-22").returncode == 0
    names = [line.split()[0] for line in Path(f"{folder}.calls").read_text().splitlines()]
    assert min(names, key=_ORDER.index) == calls
    assert {*Path(f"{folder}.calls.remote").read_text().splitlines()} == {remote}


def test_wrong_arguments(tmp_path: Path) -> None:
    ended = subprocess.run(
        ["sh", str(_SCRIPT), "only-one"], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 2
    assert ended.stderr.startswith("usage: ")


@pytest.mark.slow
def test_the_real_commands(tmp_path: Path) -> None:
    """On a folder, with the day before in place: five documents that have their schemas."""
    folder = tmp_path / "days"
    before = folder / "2026-11-21" / "snapshot"
    shutil.copytree(_ROOT / "examples" / "fleet", before)
    moved = before / "owned" / "owned.json"
    lines = moved.read_text().splitlines(keepends=True)
    moved.write_text("".join(lines[1:]))
    command = f"{sys.executable} -m kassign_spark"
    ended = _run("examples/fleet", folder, command, "2026-11-22")
    assert (ended.returncode, ended.stdout.startswith("2026-11-22: nothing")) == (0, True), (
        ended.stderr
    )
    day = folder / "2026-11-22"
    assert (day / "report.html").read_text().startswith("<!DOCTYPE html>")
    result = {path.stem: json.loads(path.read_text()) for path in day.glob("*.json")}
    assert sorted(result) == ["assign", "diff", "report", "validate"]
    for step, document in result.items():
        check_document(step, document)
    assert (result["diff"]["changed_group_count"], result["diff"]["new_count"]) == (1, 1)
