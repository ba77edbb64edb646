"""The real command, in a process of its own: what a person sees, and that nothing is left.

Each of them that starts Spark takes a quarter of a minute: one does here, and one in ``test_zip``;
the others are slow tests.
"""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyspark
import pytest

from tests.small_fleet import MEMBERS, write_small_fleet

_ROOT = Path(__file__).parents[1]
_COMMAND = [sys.executable, "-m", "kassign_spark"]
_HEAD = "kassign-spark: error: "

pytestmark = pytest.mark.usefixtures("own_processes")


def _run(
    *arguments: str | Path, program: list[str] = _COMMAND, **environment: str
) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [*program, *map(str, arguments)],
        cwd=_ROOT,
        env={**os.environ, "PYTHONPATH": str(_ROOT), **environment},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def _errors(ended: "subprocess.CompletedProcess[str]") -> str:
    """What is said on the error stream, without the line that long work is announced with."""
    lines = [line for line in ended.stderr.splitlines() if not line.endswith(" ...")]
    return "\n".join(lines)


@pytest.mark.slow
def test_a_plan_for_programs(tmp_path: Path) -> None:
    fleet = write_small_fleet(tmp_path / "fleet")
    ended = _run("assign", fleet, "--output", tmp_path / "plan", "--json")
    assert (ended.returncode, _errors(ended)) == (0, "")
    facts = json.loads(ended.stdout)
    assert (facts["group_count"], facts["partition_count"]) == (3, 19)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["fleet", "plan"]


@pytest.mark.slow
def test_a_bad_value(tmp_path: Path) -> None:
    twice = MEMBERS + "mail,mail-a,orders,cooperative-sticky,,\n"
    fleet = write_small_fleet(tmp_path / "fleet", members=twice)
    ended = _run("assign", fleet, "--output", tmp_path / "plan")
    assert (ended.returncode, ended.stdout) == (2, "")
    assert _errors(ended) == (
        f'{_HEAD}table members, column member_id: "mail-a" appears 2 times in group "mail": give '
        "each member once"
    )
    assert [path.name for path in tmp_path.iterdir()] == ["fleet"]


@pytest.mark.slow
def test_a_damaged_file_that_shows_late(tmp_path: Path) -> None:
    """The footer is whole, so the table can be opened; a page is not, so reading it fails."""
    fleet = write_small_fleet(tmp_path / "fleet")
    ended = _run("assign", fleet, "--output", tmp_path / "plan", "--show", "0")
    assert ended.returncode == 0
    # A part without rows has no page, only the footer.
    parts = (tmp_path / "plan" / "assignment").glob("part-*")
    file = max(parts, key=lambda part: part.stat().st_size)
    whole = file.read_bytes()
    file.write_bytes(b"PAR1" + b"\xff" * 16 + whole[20:])
    (file.parent / f".{file.name}.crc").unlink()
    ended = _run("diff", fleet, tmp_path / "plan", "--output", tmp_path / "diff")
    assert (ended.returncode, ended.stdout) == (2, "")
    assert _errors(ended).startswith(f"{_HEAD}Spark: ")
    assert "part-" in _errors(ended)
    assert "\n" not in _errors(ended)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["fleet", "plan"]


def test_no_java(tmp_path: Path) -> None:
    """Python alone is on the path; nothing but our line is said."""
    without = {"PATH": str(tmp_path), "JAVA_HOME": ""}
    ended = _run("validate", "x", **without)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr == (
        f"{_HEAD}Java was not found on the PATH: install Java 17 or later (Debian and Ubuntu: "
        "apt-get install openjdk-17-jre-headless) or set JAVA_HOME\n"
    )
    ended = _run("validate", "x", JAVA_HOME=str(tmp_path))
    assert ended.stderr.startswith(f"{_HEAD}Java was not found in JAVA_HOME ({tmp_path}): install")


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("SPARK_HOME", "/nowhere", "SPARK_HOME (/nowhere) holds no Spark: it has no bin/spark-sub"),
        ("SPARK_HOME", "", "SPARK_HOME (empty) holds no Spark: it has no bin/spark-submit; unset"),
        ("PYSPARK_GATEWAY_PORT", "no port", "PYSPARK_GATEWAY_PORT (no port), which spark-submit"),
        ("PYSPARK_GATEWAY_PORT", "1", "PYSPARK_GATEWAY_PORT (1), which spark-submit sets with"),
    ],
)
def test_a_spark_that_is_not_there(name: str, value: str, expected: str) -> None:
    ended = _run("validate", "x", **{name: value})
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr.startswith(_HEAD + expected)
    assert ended.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("release", "expected"),
    [
        ('JAVA_VERSION="11.0.2"', "Java 11 ({java}) is too old: install Java 17 or later"),
        ('JAVA_VERSION="1.8.0_202"', "Java 8 ({java}) is too old: install Java 17 or later"),
        ('JAVA_VERSION="21"', "Java did not start: no memory today; install Java 17 or later"),
    ],
)
def test_a_java_that_does_not_do(tmp_path: Path, release: str, expected: str) -> None:
    (tmp_path / "bin").mkdir()
    java = tmp_path / "bin" / "java"
    # The first line is Java's own of a variable that the user has set; it is no reason.
    note = "NOTE: Picked up JDK_JAVA_OPTIONS: -Xmx9000t"
    java.write_text(f"#!/bin/sh\necho '{note}' >&2\necho 'no memory today' >&2\nexit 1\n")
    java.chmod(0o755)
    (tmp_path / "release").write_text(f"{release}\n")
    ended = _run("validate", "x", JAVA_HOME=str(tmp_path))
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr.startswith(_HEAD + expected.format(java=java))
    assert ended.stderr.count("\n") == 1


def test_an_old_java_of_which_only_itself_tells(tmp_path: Path) -> None:
    """As on an image whose Java has no file ``release``."""
    java = tmp_path / "java"
    java.write_text("#!/bin/sh\necho 'openjdk version \"11.0.2\" 2019-01-15' >&2\n")
    java.chmod(0o755)
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    ended = _run("validate", "x", PATH=path, JAVA_HOME="")
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr.startswith(f"{_HEAD}Java 11 ({java}) is too old: install Java 17 or later")
    assert ended.stderr.count("\n") == 1


def test_a_reader_that_stops_early() -> None:
    """As ``kassign-spark assign ... | head -1`` does."""
    text = "from kassign_spark.display import print_result as p; p('x' * 1_000_000)"
    with subprocess.Popen(
        [sys.executable, "-c", text],
        cwd=_ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as writer:
        assert writer.stdout is not None
        assert writer.stderr is not None
        assert writer.stdout.read(1) == b"x"
        writer.stdout.close()
        assert writer.stderr.read() == b""
    assert writer.returncode == 0


@pytest.mark.parametrize(
    ("number", "said_of_it"),
    [
        pytest.param(signal.SIGINT, "interrupted", marks=pytest.mark.slow),
        (signal.SIGTERM, "terminated"),
    ],
)
def test_interrupted(tmp_path: Path, number: signal.Signals, said_of_it: str) -> None:
    fleet = write_small_fleet(tmp_path / "fleet")
    out = tmp_path / "plan"
    with subprocess.Popen(
        [*_COMMAND, "assign", str(fleet), "--output", str(out)],
        cwd=_ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as running:
        deadline = time.monotonic() + 120
        while not list(tmp_path.glob(".plan.*.writing")):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        running.send_signal(number)
        printed, errors = running.communicate(timeout=120)
    assert printed == ""
    assert errors.splitlines()[-1] == f"{_HEAD}{said_of_it}; nothing was written"
    assert "Traceback" not in errors
    assert running.returncode == 128 + number
    assert [path.name for path in tmp_path.iterdir()] == ["fleet"]


@pytest.mark.slow
@pytest.mark.parametrize("properties", ["spark-local.conf", "spark-cluster.conf"])
def test_spark_submit(tmp_path: Path, properties: str) -> None:
    fleet = write_small_fleet(tmp_path / "fleet")
    submit = Path(pyspark.__file__).parent / "bin" / "spark-submit"
    ended = _run(
        *("--properties-file", _ROOT / "conf" / properties, "--master", "local[2]"),
        *("--conf", f"spark.checkpoint.dir={tmp_path / 'checkpoints'}"),
        *("--conf", "spark.driver.memory=1g"),
        *("--conf", f"spark.eventLog.dir={tmp_path}"),
        *(_ROOT / "kassign_spark" / "__main__.py", "assign", fleet),
        *("--output", tmp_path / "plan", "--json", "--settings", _ROOT / "conf" / "settings.toml"),
        program=[str(submit)],
        PYSPARK_PYTHON=sys.executable,
    )
    assert ended.returncode == 0, ended.stderr
    facts = json.loads(ended.stdout)
    assert (facts["group_count"], facts["partition_count"]) == (3, 19)
    assert (tmp_path / "plan" / "assignment").is_dir()
