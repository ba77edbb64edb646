"""What commands begin ahead works in this version of Spark; where it fails, nothing is said."""

import subprocess
import sys
from typing import Any

import pytest
from pyspark.sql import SparkSession

from kassign_spark import warm_up
from tests.query_counter import counting

_A_COMMANDS_SESSION = """
import time
from unittest.mock import patch
from kassign_spark import warm_up
from kassign_spark.session import open_session

with patch.object(warm_up, "_load_classes", wraps=warm_up._load_classes) as loading:
    with open_session() as spark:
        print(loading.call_count, "loading")
        tracker, ended = spark.sparkContext.statusTracker(), time.monotonic() + 60
        while (job := tracker.getJobInfo(0)) is None or job.status == "RUNNING":
            assert time.monotonic() < ended
            time.sleep(0.1)
        print(job.status)
"""

_KERNELS = """
import sys
from kassign_spark import warm_up

print("kassign_spark.assignors.in_tasks" in sys.modules, list(warm_up._kernels_imported([])))
print("kassign_spark.assignors.in_tasks" in sys.modules)
"""


def _said(program: str) -> list[str]:
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=True
    )
    assert ran.stderr == ""
    return ran.stdout.splitlines()


def test_what_is_loaded_ahead_is_there_in_this_spark(spark: SparkSession) -> None:
    """Elsewhere a class that has moved is passed over, so this alone tells of it."""
    jvm: Any = spark.sparkContext._jvm
    warm_up._load_classes(jvm)


def test_a_worker_is_started_by_one_task(spark: SparkSession) -> None:
    with counting(spark) as counted:
        warm_up.start_worker(spark).join()
    assert (counted.jobs, counted.most_tasks) == (1, 1)


@pytest.mark.usefixtures("own_processes")
def test_the_worker_has_the_kernels() -> None:
    assert _said(_KERNELS) == ["False []", "True"]


@pytest.mark.slow
@pytest.mark.usefixtures("own_processes")
def test_the_session_of_a_command_begins_both() -> None:
    assert _said(_A_COMMANDS_SESSION) == ["1 loading", "SUCCEEDED"]


def test_what_fails_ahead_is_told_by_no_one(capsys: pytest.CaptureFixture[str]) -> None:
    class Gateway:
        jvm = None

    warm_up.load_classes(Gateway()).join()
    assert capsys.readouterr() == ("", "")
