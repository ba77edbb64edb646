"""The package as one archive, as ``make zip`` makes it for ``spark-submit --py-files``."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from kassign_spark import __version__
from tests.small_fleet import write_small_fleet

_ROOT = Path(__file__).parents[1]


@pytest.mark.slow
def test_the_command_from_an_archive(own_processes: None, tmp_path: Path) -> None:
    """The file that is submitted lies alone in a folder, as where a cluster runs the driver.

    Quiet, so the file of the package that silences Spark's log is found in the archive too.
    """
    package = tmp_path / "kassign_spark.zip"
    made = ["make", "--no-print-directory", "zip", f"ZIP={package}", f"PYTHON={sys.executable}"]
    subprocess.run(made, cwd=_ROOT, check=True, timeout=60)
    alone = tmp_path / "alone"
    alone.mkdir()
    shutil.copy(_ROOT / "kassign_spark" / "__main__.py", alone)
    fleet = write_small_fleet(tmp_path / "fleet")

    def run(*arguments: str | Path) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [sys.executable, alone / "__main__.py", *arguments],
            cwd=alone,
            env={**os.environ, "PYTHONPATH": str(package)},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )

    assert run("--version").stdout == f"kassign-spark {__version__}\n"
    ended = run("validate", fleet)
    output = [line for line in ended.stderr.splitlines() if not line.endswith(" ...")]
    assert (ended.returncode, output) == (0, [])
