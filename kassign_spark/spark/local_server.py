"""The server that ``kassign-spark serve`` keeps on this machine: one for each user.

A file that only the user can read says where it listens and with which token. The server's Spark
has the name of its process among its settings, by which a command knows that server again.
"""

import json
import os
import re
import signal
import stat
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple
from weakref import WeakKeyDictionary

from pyspark.sql import SparkSession

from kassign_spark.errors import KassignError
from kassign_spark.processes import OWNER, has_ended
from kassign_spark.spark.sessions import is_connect

SERVER = "spark.kassign.server"
"""The setting with the name of the server's process."""
_STOP_SECONDS = 60
_served: WeakKeyDictionary[SparkSession, bool] = WeakKeyDictionary()
"""What has been asked of a session's server, once."""


class Server(NamedTuple):
    """A server that runs.

    Attributes:
        url: of Spark Connect, with the token.
        owner: the name of its process (``processes``).
        pid: of that process.
    """

    url: str
    owner: str
    pid: int


def is_served(session: SparkSession) -> bool:
    """Return whether the session is of this user's own server, on this machine.

    Such a server has this package, and sees the same files as this process.
    """
    if not is_connect(session):
        return False
    if session not in _served:
        server = running_server()
        _served[session] = server is not None and session.conf.get(SERVER, "") == server.owner
    return _served[session]


def running_server() -> Server | None:
    """Return this user's server; None: none runs.

    Raises:
        KassignError: the folder that says so is not this user's own, or its file cannot be read.
    """
    path = _path()
    try:
        server = Server(**json.loads(path.read_text()))
    except (FileNotFoundError, ValueError, TypeError):
        return None
    except OSError as error:
        raise KassignError(f"file {path}: cannot be read: {error.strerror}; remove it") from None
    if not re.fullmatch(OWNER, str(server.owner)) or has_ended(server.owner):
        return None
    return server


def note_server(server: Server) -> None:
    """Write down that a server runs.

    Raises:
        KassignError: the folder is not this user's own, or cannot be written.
    """
    path = _path()
    writing = path.with_suffix(f".{server.pid}")
    try:
        writing.touch(mode=0o600)
        writing.write_text(json.dumps(server._asdict()))
        writing.replace(path)
    except OSError as error:
        raise KassignError(f"folder {path.parent}: cannot be written: {error.strerror}") from None


def forget_server() -> None:
    """Delete what ``note_server`` wrote."""
    _path().unlink(missing_ok=True)


def stop_server() -> Server | None:
    """End this user's server, and wait until it has ended; None: none runs.

    Raises:
        KassignError: it does not end.
    """
    server = running_server()
    if server is None:
        return None
    deadline = time.monotonic() + _STOP_SECONDS
    with suppress(ProcessLookupError):
        os.kill(server.pid, signal.SIGTERM)
    while not has_ended(server.owner):
        if time.monotonic() > deadline:
            raise KassignError(
                f"the server (process {server.pid}) has not ended after {_STOP_SECONDS} seconds"
            )
        time.sleep(0.1)
    return server


def _path() -> Path:
    """Return the path in a folder of this machine that is this user's alone."""
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    folder = (
        Path(runtime) / "kassign-spark"
        if runtime and Path(runtime).is_dir()
        else Path(tempfile.gettempdir()) / f"kassign-spark-{os.getuid()}"
    )
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        status = folder.lstat()
    except OSError as error:
        raise KassignError(f"folder {folder}: cannot be made: {error.strerror}") from None
    is_own = stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid()
    if not is_own or stat.S_IMODE(status.st_mode) & 0o077:
        raise KassignError(
            f"folder {folder}: others can read or change it; remove it, or make it yours alone "
            "(chmod 700)"
        )
    return folder / "server.json"
