"""Hadoop's own mini cluster on loopback, a process of its own; HDFS is looked at by WebHDFS."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

from tests.stores.driver import ROOT
from tests.stores.hadoop_jars import mini_cluster_jars

USER = "planner"
"""Who runs commands there; HDFS's superuser is who starts it."""


class Hdfs:
    """A running HDFS, on which all may write but in /private."""

    name = "hdfs"

    def __init__(self, root: str, http: str, folder: Path) -> None:
        self.root = root
        self.conf = folder / "conf"
        """For HADOOP_CONF_DIR."""
        self.log = folder / "hadoop.log"
        self._http = http

    def settings(self) -> dict[str, str]:
        """Of a session that reads and writes there: Spark has all it needs."""
        return {"spark.hadoop.dfs.client.use.datanode.hostname": "false"}

    def environment(self) -> dict[str, str]:
        """Of a process that works there."""
        return {"HADOOP_USER_NAME": USER, "HADOOP_CONF_DIR": str(self.conf)}

    def put(self, path: str, content: bytes) -> None:
        self._ask(f"/{path}", "CREATE", "PUT", content, user=USER)

    def get(self, path: str) -> bytes:
        return self._ask(f"/{path}", "OPEN")

    def files(self, folder: str) -> list[str]:
        """The files below a folder, by their paths in it; nothing where there is none."""
        try:
            listed = json.loads(self._ask(f"/{folder}", "LISTSTATUS"))
        except urllib.error.HTTPError as error:
            if error.code == 404:
                return []
            raise
        result = []
        for status in listed["FileStatuses"]["FileStatus"]:
            name = status["pathSuffix"]
            if status["type"] == "FILE":
                result.append(name)
            else:
                result += [f"{name}/{each}" for each in self.files(f"{folder}/{name}")]
        return result

    def make_folder(self, path: str, permission: str, user: str) -> None:
        """Make a folder, from the root on."""
        self._ask(path, f"MKDIRS&permission={permission}", "PUT", user=user)

    def open_root(self, user: str) -> None:
        """Let all write at the root."""
        self._ask("/", "SETPERMISSION&permission=777", "PUT", user=user)

    def _ask(
        self,
        path: str,
        operation: str,
        method: str = "GET",
        content: bytes | None = None,
        user: str | None = None,
    ) -> bytes:
        who = user or os.environ.get("USER", "root")
        address = f"{self._http}/webhdfs/v1{path}?op={operation}&user.name={who}"
        if content is not None:  # the node that takes the bytes is named first
            asked = urllib.request.Request(f"{address}&noredirect=true", method=method)
            with urllib.request.urlopen(asked, timeout=30) as answer:
                address = json.loads(answer.read())["Location"]
        asked = urllib.request.Request(address, data=content, method=method)
        asked.add_header("Content-Type", "application/octet-stream")
        with urllib.request.urlopen(asked, timeout=30) as answer:
            body: bytes = answer.read()
            return body


@contextlib.contextmanager
def running_hadoop(folder: Path, service: str) -> Iterator[Hdfs]:
    """Start ``hdfs`` or ``yarn`` (which has HDFS, too) until the block ends.

    Raises:
        RuntimeError: its jars cannot be had, or it does not start.
    """
    mini_cluster_jars()
    server_log = folder / "server.log"
    with server_log.open("w") as log:
        server = subprocess.Popen(
            [sys.executable, "-m", "tests.stores.hadoop_server", str(folder), service],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT), "SPARK_LOCAL_IP": "127.0.0.1"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            start_new_session=True,  # its Java process is of its group
        )
    try:
        assert server.stdout is not None
        addresses = server.stdout.readline().split()
        if len(addresses) != 2:
            raise RuntimeError(f"Hadoop did not start: {server_log.read_text()[-1500:]}")
        hdfs = Hdfs(*addresses, folder)
        superuser = os.environ.get("USER", "root")
        hdfs.open_root(superuser)
        hdfs.make_folder("/private", "700", superuser)
        yield hdfs
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(server.pid, signal.SIGKILL)
        server.communicate()
