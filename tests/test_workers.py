"""Workers of another interpreter: one line before anything runs, not a task's stack trace."""

import os
import subprocess
import sys
import venv
from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from kassign_spark.spark import workers
from kassign_spark.spark.spark_errors import spark_message
from tests.interpreters import interpreter_of
from tests.java import SHORT_LIVED

_ROOT = Path(__file__).parents[1]

_FIRST_CONTACT = """
from pyspark.sql import SparkSession
from kassign_spark import KassignError, balance, read_snapshot

spark = (
    SparkSession.builder.master("local[1]")
    .config("spark.driver.host", "127.0.0.1")
    .config("spark.driver.bindAddress", "127.0.0.1")
    .config("spark.ui.enabled", "false")
    .getOrCreate()
)
fleet = read_snapshot("examples/fleet", spark)
before = spark.sparkContext._jsc.sc().statusStore().jobsList(None).size()
try:
    balance(fleet.owned, fleet.members)
except KassignError as error:
    print(type(error).__name__, error, sep=": ")
print(spark.sparkContext._jsc.sc().statusStore().jobsList(None).size() - before, "jobs")
spark.stop()
"""


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of a virtual environment without any package."""
    folder = tmp_path_factory.mktemp("bare")
    venv.create(folder, with_pip=False)
    return folder / "bin" / "python3"


@pytest.mark.slow
@pytest.mark.usefixtures("own_processes")
def test_the_environment_is_not_active_and_the_variable_unset(bare: Path) -> None:
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYSPARK_")}
    environment["PATH"] = f"{bare.parent}{os.pathsep}{environment['PATH']}"
    environment["PYTHONPATH"] = str(_ROOT)
    environment["JDK_JAVA_OPTIONS"] = SHORT_LIVED
    ran = subprocess.run(
        [sys.executable, "-c", _FIRST_CONTACT],
        cwd=_ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    error, jobs = ran.stdout.splitlines()
    assert jobs == "0 jobs"
    assert error.startswith(f"WorkerError: Spark's Python workers run {bare}, which has no numpy")
    assert f"this program runs {sys.executable} " in error
    assert error.endswith(f"PYSPARK_PYTHON={sys.executable}")


@pytest.mark.usefixtures("own_processes")
def test_what_is_refused(bare: Path) -> None:
    assert "has no numpy and no pyarrow" in (workers._problem(str(bare)) or "")
    assert "no-such-python, which does not exist" in (workers._problem("no-such-python") or "")
    assert workers._problem(sys.executable) is None


@pytest.mark.usefixtures("own_processes")
def test_another_name_of_an_interpreter_that_has_all_is_taken(tmp_path: Path) -> None:
    other = tmp_path / "python-of-workers"
    other.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    other.chmod(0o755)
    assert workers._problem(str(other)) is None


@pytest.mark.usefixtures("own_processes")
def test_another_version_of_python_is_refused(tmp_path: Path) -> None:
    """It has all packages, but PySpark refuses to talk to it."""
    other = tmp_path / "python-of-old"
    other.write_text("#!/bin/sh\necho 3.8\n")
    other.chmod(0o755)
    assert f"{other}, which is Python 3.8" in (workers._problem(str(other)) or "")


@pytest.mark.parametrize("lack", ["no packages", "another version"])
def test_workers_that_nobody_could_look_at(
    lack: str, spark: SparkSession, bare: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Real workers of another interpreter, as executors of a cluster may start them."""
    others = [v for v in ("3.12", "3.13", "3.11") if not sys.version.startswith(f"{v}.")]
    other = next(filter(None, map(interpreter_of, others)), None)
    if lack == "another version" and other is None:
        pytest.skip(f"this machine has no Python of {' or '.join(others)}")
    python = str(bare) if lack == "no packages" else str(other)
    expected = {
        "no packages": "cannot import what it needs (No module named ",
        "another version": "is of another version (Python in worker has different version",
    }[lack]
    monkeypatch.setattr(spark.sparkContext, "pythonExec", python)
    with pytest.raises(PySparkException) as raised:
        spark.range(1).mapInArrow(lambda batches: batches, "id bigint").collect()
    message = spark_message(raised.value)
    assert "\n" not in message
    assert message.startswith(f"Spark's Python workers run {python}, and that {expected}")
    assert message.endswith(f"on this machine PYSPARK_PYTHON={sys.executable}")


def test_an_import_that_fails_in_a_task_is_one_line(spark: SparkSession) -> None:
    """As on a cluster, whose workers nobody can look at from here."""

    def needs_more(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import no_such_package  # noqa: F401

        yield from batches

    with pytest.raises(PySparkException) as raised:
        spark.range(1).mapInArrow(needs_more, "id bigint").collect()
    message = spark_message(raised.value)
    assert "\n" not in message
    assert "cannot import what it needs (No module named 'no_such_package')" in message
    assert "set PYSPARK_PYTHON" in message
