"""A command's session starts a Python worker ahead; where that fails, nothing is said."""

import subprocess
import sys

import pytest
from pyspark.sql import SparkSession

from kassign_spark.launch import warm_up
from tests.query_counter import counting

_COMMAND_SESSION = """
import time
from kassign_spark.launch.command_session import open_session

with open_session() as spark:
    tracker, ended = spark.sparkContext.statusTracker(), time.monotonic() + 60
    while (job := tracker.getJobInfo(0)) is None or job.status == "RUNNING":
        assert time.monotonic() < ended
        time.sleep(0.1)
    print(job.status)
"""

_KERNELS = """
import sys
from kassign_spark.launch import warm_up

print("kassign_spark.assignors.in_tasks" in sys.modules, list(warm_up._import_kernels([])))
print("kassign_spark.assignors.in_tasks" in sys.modules)
"""


def _output(program: str) -> list[str]:
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=True
    )
    assert ran.stderr == ""
    return ran.stdout.splitlines()


def test_a_worker_is_started_by_one_task(spark: SparkSession) -> None:
    with counting(spark) as counted:
        warm_up.start_worker(spark).join()
    assert (counted.jobs, counted.most_tasks) == (1, 1)


@pytest.mark.usefixtures("own_processes")
def test_the_worker_has_the_kernels() -> None:
    assert _output(_KERNELS) == ["False []", "True"]


@pytest.mark.slow
@pytest.mark.usefixtures("own_processes")
def test_the_session_of_a_command_starts_a_worker() -> None:
    assert _output(_COMMAND_SESSION) == ["SUCCEEDED"]


def test_a_failure_is_silent(capsys: pytest.CaptureFixture[str]) -> None:
    warm_up.start_worker(object()).join()  # type: ignore[arg-type]
    assert capsys.readouterr() == ("", "")
