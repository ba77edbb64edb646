"""A real standalone cluster on loopback: a master and workers, each a process of its own."""

import contextlib
import os
import shlex
import signal
import socket
import subprocess
import sys
import sysconfig
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pyspark

from tests.java import SHORT_LIVED

ROOT = Path(__file__).parents[2]
_BIN = Path(pyspark.__file__).parent / "bin"
_MASTER = [str(_BIN / "spark-class"), "org.apache.spark.deploy.master.Master"]
_WORKER = [str(_BIN / "spark-class"), "org.apache.spark.deploy.worker.Worker"]
_HOST = "127.0.0.1"
_START_SECONDS = 300
_EXECUTOR = "org.apache.spark.executor.CoarseGrainedExecutorBackend"

_SETTINGS = {
    "spark.driver.host": _HOST,
    "spark.driver.bindAddress": _HOST,
    "spark.ui.enabled": "false",
    "spark.driver.memory": "1g",
    "spark.executor.memory": "600m",
    "spark.executor.cores": "1",
    "spark.sql.shuffle.partitions": "2",
    # Programs of some seconds: the second compiler would cost more than it gives.
    "spark.driver.extraJavaOptions": SHORT_LIVED,
    "spark.executor.extraJavaOptions": SHORT_LIVED,
    # Two executors from the first task on.
    "spark.scheduler.minRegisteredResourcesRatio": "1.0",
    "spark.scheduler.maxRegisteredResourcesWaitingTime": "60s",
    # What a lost executor held is given up in seconds.
    "spark.shuffle.io.retryWait": "1s",
}
"""In place of what conf/spark-cluster.conf has for real clusters."""


@dataclass
class Standalone:
    """A running cluster; workers may be killed and added."""

    url: str
    folder: Path
    package: Path
    """The package as ``make zip`` makes it, for ``--py-files``."""
    memory: str = "1g"
    """That a worker may give to executors."""
    workers: "list[subprocess.Popen[bytes]]" = field(default_factory=list)
    _started: int = 0
    drivers: "list[subprocess.Popen[str]]" = field(default_factory=list)

    def add_worker(self) -> None:
        """Start a worker with one core; ``wait_for_workers`` waits until the master knows it."""
        self._started += 1
        name = f"worker-{self._started}"
        where = ["--host", _HOST, "--webui-port", "0", "--work-dir", str(self.folder / name)]
        with (self.folder / f"{name}.log").open("w") as log:
            self.workers.append(
                subprocess.Popen(
                    [*_WORKER, *where, "--cores", "1", "--memory", self.memory, self.url],
                    cwd=self.folder,
                    env=_environment(self.folder),
                    stdout=log,
                    stderr=subprocess.STDOUT,
                )
            )

    def wait_for_workers(self) -> None:
        """Wait until the master knows all workers that were ever started.

        Raises:
            RuntimeError: it does not come to know them.
        """
        log = self.folder / "master.log"
        deadline = time.monotonic() + _START_SECONDS
        while log.read_text().count("Registering worker") < self._started:
            if time.monotonic() > deadline:
                raise RuntimeError("the workers did not start:\n" + log.read_text()[-2000:])
            time.sleep(0.1)

    def executors(self) -> list[int]:
        """Process ids of the executors that run now."""
        return [pid for worker in self.workers for pid in _children(worker.pid) if _runs(pid)]

    def lose_worker(self) -> None:
        """Kill a worker and its executor, as when its machine is gone."""
        worker = self.workers.pop()
        executors = _children(worker.pid)
        worker.kill()  # first: it would start another executor
        worker.wait()
        for pid in executors:
            with contextlib.suppress(ProcessLookupError):  # it has noticed
                os.kill(pid, signal.SIGKILL)

    def submit(
        self, *arguments: str | Path, settings: dict[str, str | None] | None = None
    ) -> "subprocess.Popen[str]":
        """Run a command of the package by ``spark-submit``; both its streams are ``stdout``.

        Settings come after those of conf/spark-cluster.conf and ``_SETTINGS``; None takes one away.
        Spark's own log goes to ``submit-N.log`` in the folder of the cluster.
        """
        lines = (ROOT / "conf" / "spark-cluster.conf").read_text().splitlines()
        chosen: dict[str, str | None] = {}
        for line in lines:
            if line.startswith("spark."):
                key, value = line.split(None, 1)
                chosen[key] = value
        chosen |= _SETTINGS | {"spark.checkpoint.dir": str(self.folder / "checkpoints")}
        chosen |= settings or {}
        name = f"submit-{len(self.drivers) + 1}"
        conf = self.folder / f"{name}.conf"
        conf.write_text("".join(f"{key} {value}\n" for key, value in chosen.items() if value))
        with (self.folder / f"{name}.log").open("w") as log:
            driver = subprocess.Popen(
                [
                    *(str(_BIN / "spark-submit"), "--master", self.url),
                    *("--properties-file", str(conf), "--py-files", str(self.package)),
                    *(str(ROOT / "kassign_spark" / "__main__.py"), *map(str, arguments)),
                ],
                cwd=ROOT,
                env=_environment(self.folder) | {"PYSPARK_DRIVER_PYTHON": sys.executable},
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        self.drivers.append(driver)
        return driver


def end_driver(submitted: "subprocess.Popen[str]", number: signal.Signals) -> None:
    """Send the signal to the Java process of a driver, and wait until its Python has ended too."""
    pythons = _children(submitted.pid)
    submitted.send_signal(number)
    submitted.communicate(timeout=120)
    deadline = time.monotonic() + 120
    while any(Path(f"/proc/{pid}/cmdline").exists() for pid in pythons):
        assert time.monotonic() < deadline
        time.sleep(0.1)


@contextlib.contextmanager
def running_cluster(folder: Path, workers: int = 2, memory: str = "1g") -> Iterator[Standalone]:
    """Start a master and workers that live until the block ends, however it ends."""
    port = _free_port()
    python = folder / "python"
    python.write_text(_PYTHON_WITHOUT_THE_PACKAGE)
    python.chmod(0o755)
    package = folder / "kassign_spark.zip"
    made = ["make", "--no-print-directory", "zip", f"ZIP={package}", f"PYTHON={sys.executable}"]
    subprocess.run(made, cwd=ROOT, check=True, timeout=60, stdout=subprocess.DEVNULL)
    cluster = Standalone(f"spark://{_HOST}:{port}", folder, package, memory)
    with (folder / "master.log").open("w") as log:
        master = subprocess.Popen(
            [*_MASTER, "--host", _HOST, "--port", str(port), "--webui-port", "0"],
            cwd=folder,
            env=_environment(folder),
            stdout=log,
            stderr=subprocess.STDOUT,
        )
    try:
        for _ in range(workers):
            cluster.add_worker()
        cluster.wait_for_workers()
        yield cluster
    finally:
        left = cluster.executors()
        for driver in cluster.drivers:
            if driver.poll() is None:  # its test has failed
                driver.kill()
                driver.wait()
        for process in [*cluster.workers, master]:
            process.terminate()
        for process in [*cluster.workers, master]:
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        for pid in filter(_runs, left):
            os.kill(pid, signal.SIGKILL)


_PYTHON_WITHOUT_THE_PACKAGE = f"""#!/bin/sh
# Python as an executor has it: pyspark and what it needs, but no package installed in place.
PYTHONPATH="$PYTHONPATH:{sysconfig.get_path("purelib")}" exec {shlex.quote(sys.executable)} -S "$@"
"""


def _environment(folder: Path) -> dict[str, str]:
    inherited = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return inherited | {
        "SPARK_LOCAL_IP": _HOST,
        "SPARK_LOCAL_DIRS": str(folder / "local"),
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": SHORT_LIVED,
        "SPARK_MASTER_OPTS": "-Dspark.master.rest.enabled=false",
        "PYSPARK_PYTHON": str(folder / "python"),
    }


def _free_port() -> int:
    with socket.socket() as bound:
        bound.bind((_HOST, 0))
        port: int = bound.getsockname()[1]
        return port


def _children(pid: int) -> list[int]:
    """Of all threads of a process."""
    result: list[int] = []
    for thread in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            result += map(int, thread.read_text().split())
    return result


def _runs(pid: int) -> bool:
    """Whether it is an executor that is still there, not another process with its id."""
    try:
        return _EXECUTOR.encode() in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False
