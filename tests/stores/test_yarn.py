"""spark-submit on YARN, client and cluster mode, with the archives that the documents name."""

import contextlib
import os
import subprocess
import sys
import sysconfig
import tarfile
import venv
from collections.abc import Iterator
from pathlib import Path

import pyspark
import pytest

from tests.java import SHORT_LIVED
from tests.spark_session import UNCOMPILED
from tests.stores.driver import ROOT
from tests.stores.hadoop import Hdfs, running_hadoop
from tests.stores.promises import put_fleet, rows, rows_of

pytestmark = pytest.mark.slow

_SPARK = Path(pyspark.__file__).parent
_SETTINGS = UNCOMPILED | {
    "spark.yarn.jars": f"local:{_SPARK}/jars/*",  # else Spark sends its 400 MB each time
    "spark.yarn.am.memory": "512m",
    "spark.driver.memory": "768m",
    "spark.executor.memory": "600m",
    "spark.executor.cores": "2",
    "spark.executor.instances": "1",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.adaptive.enabled": "false",
    "spark.ui.enabled": "false",
    "spark.driver.extraJavaOptions": SHORT_LIVED,
    "spark.executor.extraJavaOptions": SHORT_LIVED,
    "spark.yarn.am.extraJavaOptions": SHORT_LIVED,
    "spark.yarn.appMasterEnv.SPARK_LOCAL_IP": "127.0.0.1",
    "spark.executorEnv.SPARK_LOCAL_IP": "127.0.0.1",
}
_NEEDED = ("numpy", "pandas", "pyarrow", "dateutil", "six.py", "tzdata", "pytz")


@pytest.fixture(scope="module")
def yarn(own_processes: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hdfs]:
    with contextlib.ExitStack() as stack:
        try:
            running = stack.enter_context(running_hadoop(tmp_path_factory.mktemp("yarn"), "yarn"))
        except RuntimeError as error:
            pytest.skip(f"no YARN on loopback: {error}")
        yield running


@pytest.fixture(scope="module")
def archives(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The package as ``make zip`` makes it, and an environment as venv-pack packs one.

    The environment has what the executors need and no package of ours; like venv-pack's its Python
    is a link to that of the machine.
    """
    folder = tmp_path_factory.mktemp("archives")
    package, environment = folder / "kassign_spark.zip", folder / "environment.tar.gz"
    made = ["make", "--no-print-directory", "zip", f"ZIP={package}", f"PYTHON={sys.executable}"]
    subprocess.run(made, cwd=ROOT, check=True, timeout=60, stdout=subprocess.DEVNULL)
    venv.create(folder / "environment", symlinks=True)
    site = Path(sysconfig.get_path("purelib"))
    inside = f"lib/python{sys.version_info.major}.{sys.version_info.minor}/site-packages"

    def small(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
        return None if member.name.endswith(("/tests", "/include", ".pyc")) else member

    with tarfile.open(environment, "w:gz", compresslevel=1) as tar:
        tar.add(folder / "environment", arcname=".")
        for name in _NEEDED:
            for path in (site / name, *site.glob(f"{name}.libs")):
                if path.exists():
                    tar.add(path, arcname=f"{inside}/{path.name}", filter=small)
    return package, environment


@pytest.fixture(scope="module")
def fleet(yarn: Hdfs, tmp_path_factory: pytest.TempPathFactory) -> str:
    return put_fleet(yarn, tmp_path_factory.mktemp("fleet"))


def _submit(
    yarn: Hdfs, archives: tuple[Path, Path], mode: str, folder: Path, *arguments: str
) -> tuple[int, str, str]:
    package, environment = archives
    inherited = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    chosen = {
        **inherited,
        **yarn.environment(),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": "./environment/bin/python",
    }
    chosen.pop("PYSPARK_DRIVER_PYTHON", None)
    if mode == "client":
        chosen["PYSPARK_DRIVER_PYTHON"] = sys.executable
    conf = folder / f"{mode}.conf"
    conf.write_text("".join(f"{name} {value}\n" for name, value in _SETTINGS.items()))
    ended = subprocess.run(
        [
            *(str(_SPARK / "bin" / "spark-submit"), "--master", "yarn", "--deploy-mode", mode),
            *("--properties-file", str(conf), "--archives", f"{environment}#environment"),
            *("--py-files", str(package), str(ROOT / "kassign_spark" / "__main__.py"), *arguments),
        ],
        cwd=folder,
        env=chosen,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    return ended.returncode, ended.stdout, ended.stderr


@pytest.mark.parametrize("mode", ["client", "cluster"])
def test_a_plan_as_of_a_local_run(
    yarn: Hdfs,
    archives: tuple[Path, Path],
    fleet: str,
    local_plan: Path,
    tmp_path: Path,
    mode: str,
) -> None:
    plan = f"{yarn.root}/{mode}/plan"
    arguments = ("assign", fleet, "--output", plan, "--format", "json")
    code, out, err = _submit(yarn, archives, mode, tmp_path, *arguments)
    assert code == 0, (err[-3000:], _container_logs(yarn))
    if mode == "client":
        assert "3 groups" in out
    for table in ("assignment", "balance"):
        assert rows(yarn, f"{mode}/plan", table) == rows_of(local_plan / table)


def test_an_error_in_cluster_mode(
    yarn: Hdfs, archives: tuple[Path, Path], fleet: str, tmp_path: Path
) -> None:
    """The code only tells of a failure; the one line is in the log of the driver's container."""
    code, _, err = _submit(yarn, archives, "cluster", tmp_path, "validate", f"{yarn.root}/nowhere")
    assert code == 1
    assert "User application exited with" in err
    assert f"kassign-spark: error: folder {yarn.root}/nowhere: not found" in _container_logs(yarn)


def _container_logs(yarn: Hdfs) -> str:
    """What ``yarn logs`` would show: what the containers have printed."""
    printed = yarn.conf.parent.glob("**/container_*/std*")
    return "\n".join(path.read_text()[-3000:] for path in sorted(printed) if path.is_file())
