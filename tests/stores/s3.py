"""An S3 on loopback: moto's server, in a virtual environment of its own below ``build``.

Of its own, since moto's botocore wants an older python-dateutil than the environment of the tests
has; and without moto's extra ``server``, whose schemas and CloudFormation S3 does not need.
"""

import contextlib
import os
import subprocess
import sys
import urllib.parse
import urllib.request
import venv
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

from tests.stores.hadoop_jars import s3a_jars

_MOTO = ("moto[s3]==5.2.5", "flask==3.1.3", "flask-cors==6.0.5")
_ENVIRONMENT = Path(__file__).parents[2] / "build" / "moto"
_CREDENTIAL = "Credential=key/20260101/us-east-1/s3/aws4_request"
_SIGNED = {"Authorization": f"AWS4-HMAC-SHA256 {_CREDENTIAL}, SignedHeaders=host, Signature=x"}
_BYTES = {"Content-Type": "application/octet-stream"}
"""Else Python says that it sends a form, and moto takes it for one."""


class S3:
    """A running server with the buckets fleets, read-only and secret."""

    name = "s3a"
    root = "s3a://fleets"

    def __init__(self, address: str) -> None:
        self._address = address

    def settings(self) -> dict[str, str]:
        """Of a session that reads and writes there."""
        return {
            "spark.jars": ",".join(map(str, s3a_jars())),
            "spark.hadoop.fs.s3a.endpoint": self._address,
            "spark.hadoop.fs.s3a.endpoint.region": "us-east-1",
            "spark.hadoop.fs.s3a.path.style.access": "true",
            "spark.hadoop.fs.s3a.access.key": "key",
            "spark.hadoop.fs.s3a.secret.key": "secret",
        }

    def environment(self) -> dict[str, str]:
        """Of a process that works there."""
        return {}

    def put(self, path: str, content: bytes) -> None:
        self._ask(f"fleets/{path}", "PUT", content)

    def get(self, path: str) -> bytes:
        return self._ask(f"fleets/{path}")

    def files(self, folder: str) -> list[str]:
        """The files below a folder, by their paths in it."""
        query = urllib.parse.urlencode({"list-type": 2, "prefix": f"{folder}/"})
        tree = ElementTree.fromstring(self._ask(f"fleets?{query}"))
        keys = [key.text or "" for key in tree.iter() if key.tag.endswith("}Key")]
        return [key.removeprefix(f"{folder}/") for key in keys if not key.endswith("/")]

    def copies(self) -> int:
        """How many objects were copied so far, which is what a rename does."""
        return int(self._ask("copies"))

    def _ask(self, path: str, method: str = "GET", content: bytes | None = None) -> bytes:
        asked = urllib.request.Request(
            f"{self._address}/{path}", data=content, headers=_SIGNED | _BYTES, method=method
        )
        with urllib.request.urlopen(asked, timeout=30) as answer:
            body: bytes = answer.read()
            return body


@contextlib.contextmanager
def running_s3(folder: Path) -> Iterator[S3]:
    """Serve until the block ends; its log goes to ``folder``.

    Raises:
        RuntimeError: moto cannot be installed or does not start.
    """
    program = Path(__file__).with_name("s3_server.py")
    with (folder / "s3.log").open("w") as log:
        server = subprocess.Popen(
            [_moto_python(), str(program)],
            env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
    try:
        assert server.stdout is not None
        address = server.stdout.readline().strip()
        if not address:
            raise RuntimeError(f"moto did not start: {(folder / 's3.log').read_text()[-1000:]}")
        yield S3(address)
    finally:
        server.communicate()


def _moto_python() -> str:
    python = _ENVIRONMENT / "bin" / "python"
    installed = _ENVIRONMENT / "installed"
    requirements = " ".join(_MOTO)
    if not (installed.is_file() and installed.read_text() == requirements):
        venv.create(_ENVIRONMENT, with_pip=True, clear=True)
        asked = subprocess.run(
            [str(python), "-m", "pip", "install", "--quiet", *_MOTO],
            capture_output=True,
            text=True,
            check=False,
        )
        if asked.returncode:
            raise RuntimeError(f"moto cannot be installed: {asked.stderr.strip()[-500:]}")
        installed.write_text(requirements)
    return str(python)


if __name__ == "__main__":
    sys.exit(0 if _moto_python() else 1)
