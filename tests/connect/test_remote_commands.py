"""Commands on a Spark that runs: ``serve``, its token, the same files; servers that are none."""

import json
import os
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple
from unittest.mock import MagicMock

import pytest
from pyspark.sql import SparkSession

from kassign_spark.errors import KassignError, SessionError
from kassign_spark.launch import remote_session
from kassign_spark.launch.remote_session import open_remote
from kassign_spark.processes import new_owner
from kassign_spark.spark import local_server
from kassign_spark.spark.local_server import Server, note_server, running_server, stop_server
from tests.docs.reader import ROOT

_FLEET = str(ROOT / "examples" / "fleet")
_SECONDS = 180


class Command(NamedTuple):
    """``kassign-spark`` as a process, in an environment of its own."""

    environment: dict[str, str]
    folder: Path

    def run(self, *words: str, code: int = 0) -> str:
        """Return what it prints; on an error that, on one line."""
        ran = subprocess.run(
            [sys.executable, "-m", "kassign_spark", *words],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=_SECONDS,
        )
        assert ran.returncode == code, ran.stderr
        return ran.stdout if code < 2 else ran.stderr


@contextmanager
def serving(folder: Path, *options: str) -> Iterator[Command]:
    """Start a server, and use it as the line says that it prints."""
    environment = os.environ | {"XDG_RUNTIME_DIR": str(folder), "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        [sys.executable, "-m", "kassign_spark", "serve", *options],
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
    ) as server:
        assert server.stdout is not None
        try:
            line = server.stdout.readline()
            name, _, url = line.strip().removeprefix("export ").partition("=")
            yield Command(environment | {name: url.strip("'")}, folder)
        finally:
            server.terminate()


@pytest.mark.slow
@pytest.mark.usefixtures("own_processes")
def test_a_server_for_all_commands(tmp_path: Path) -> None:
    with serving(tmp_path) as command:
        (state,) = (tmp_path / "kassign-spark").iterdir()
        assert stat.S_IMODE(state.stat().st_mode) == 0o600
        # Paths are this process's: the server was started elsewhere.
        planned = json.loads(command.run("assign", _FLEET, "--output", "plan", "--json"))
        assert (planned["output"], planned["group_count"]) == ("plan", 25)
        names = sorted(path.name for path in (tmp_path / "plan").iterdir())
        assert names == ["_kassign_spark", "assignment", "balance"]
        command.run("assign", _FLEET, "--output", "plan", "--overwrite")
        assert "exists; name a new folder" in command.run(
            "assign", _FLEET, "--output", "plan", code=2
        )
        assert "folder nowhere: not found" in command.run("validate", "nowhere", code=2)
        # A stream writes on the server, and is told here: two runs lose and repeat nothing.
        follow = ("history", "--log", str(ROOT / "examples" / "group-log"), "--follow",
                  "--available-now", "--output", "followed")  # fmt: skip
        *lines, total = command.run(*follow).splitlines()
        assert (len(lines), total[:19]) == (17, "17 rebalances more;")
        assert command.run(*follow).startswith("0 rebalances more; the history is in followed")
        address = ("--bootstrap-server", "127.0.0.1:1")
        assert "or kassign-spark serve --package" in command.run(
            "log", *address, "--save", "log", code=2
        )
        package = ("--package", "org.example:not-there_2.13:1.0")
        assert "a server runs already" in command.run("serve", *package, code=2)
        # A second one is not started.
        assert command.run("serve").strip().endswith(f"{command.environment['SPARK_REMOTE']}'")
        # Nobody uses it without the token.
        url = command.environment["SPARK_REMOTE"].partition(";")[0]
        for wrong in (url, f"{url};token=none"):
            refused = command.run("validate", _FLEET, "--remote", wrong, code=2)
            assert "the server refuses the token, or wants one" in refused
        assert command.run("serve", "--stop") == "the server has ended\n"
        assert command.run("serve", "--stop") == "no server runs\n"
        assert not state.exists()
        assert "no server can be reached there" in command.run("validate", _FLEET, code=2)


@pytest.mark.parametrize("url", ["http://there:1", "sc://", "local[2]", "sc://there:port"])
def test_addresses_that_are_none(url: str) -> None:
    with pytest.raises(KassignError, match="is no address of Spark Connect"), _opened(url):
        raise AssertionError


def test_a_server_of_something_else() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def answer() -> None:
            for _ in range(2):
                other, _ = listening.accept()
                with other:
                    other.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

        threading.Thread(target=answer, daemon=True).start()
        url = f"sc://127.0.0.1:{listening.getsockname()[1]}"
        with pytest.raises(SessionError, match="is no Spark Connect"), _opened(url):
            raise AssertionError
    with pytest.raises(SessionError, match="no server can be reached there"), _opened(url):
        raise AssertionError


@contextmanager
def _opened(url: str) -> Iterator[SparkSession]:
    with open_remote(url, verbose=True) as session:
        yield session


def test_a_session_that_does_not_end_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    traces: list[object] = []
    monkeypatch.setattr(threading, "excepthook", traces.append)
    monkeypatch.setattr(remote_session, "_SECONDS", 0.1)
    ending, session = threading.Event(), MagicMock()
    ended: list[bool] = []
    session.stop.side_effect = lambda: ended.append(ending.wait(5))
    remote_session._stop(session)
    assert ended == []
    ending.set()
    session.stop.side_effect = ValueError("Cannot invoke RPC on closed channel!")
    monkeypatch.setattr(remote_session, "_SECONDS", 5)
    remote_session._stop(session)
    assert traces == []


def test_the_server_of_an_ended_process_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    assert running_server() is None
    server = Server("sc://localhost:1/;token=t", new_owner(), os.getpid())
    note_server(server)
    assert running_server() == server
    machine, pid, _, run = server.owner.split("-")
    note_server(server._replace(owner=f"{machine}-{pid}-1-{run}"))
    assert running_server() is None
    assert stop_server() is None
    state = tmp_path / "kassign-spark" / "server.json"
    for text in ("{", "[]", '{"url": "sc://x", "owner": "nobody", "pid": 1}'):
        state.write_text(text)
        assert running_server() is None
    state.unlink()
    state.mkdir()
    with pytest.raises(KassignError, match=r"server\.json: cannot be read: Is a directory"):
        running_server()


def test_a_folder_that_others_can_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    (tmp_path / "kassign-spark").mkdir(mode=0o755)
    with pytest.raises(KassignError, match="others can read or change it"):
        local_server.running_server()
