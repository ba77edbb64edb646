"""A command that is interrupted ends with 130 (SIGTERM: 143), at whatever moment, with one line."""

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kassign_spark import cli, interrupts
from kassign_spark.commands.common import Outcome
from kassign_spark.errors import KassignError
from kassign_spark.spark.sessions import Py4JError
from tests.small_fleet import write_small_fleet

_ROOT = Path(__file__).parents[1]
_HEAD = "kassign-spark: error: "


@pytest.fixture(autouse=True)
def handlers() -> Iterator[None]:
    """What came stays noted, and its handlers stay: the process ends with it, but not this one."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield
    with interrupts.watched(print):
        pass
    for number, handler in before.items():
        signal.signal(number, handler)


def _interrupted_then(number: int, then: Callable[[], None]) -> Callable[[Any], Outcome]:
    def run(_: Any) -> Outcome:
        try:
            signal.raise_signal(number)
        except KeyboardInterrupt:
            then()
        return Outcome(0, {}, ["all well"])

    return run


def _raises(error: Exception) -> Callable[..., None]:
    def raise_it(*_: Any) -> None:
        error.__context__ = None
        raise error from None

    return raise_it


@pytest.mark.parametrize(
    "then",
    [
        _raises(Py4JError("Answer from Java side is empty")),
        _raises(ConnectionResetError()),
        _raises(KassignError("Java did not start")),
        _raises(AttributeError("no _jsc")),
        lambda: None,
    ],
)
@pytest.mark.parametrize(
    ("number", "word"), [(signal.SIGINT, "interrupted"), (signal.SIGTERM, "terminated")]
)
def test_whatever_is_raised_of_it(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    then: Callable[[], None],
    number: int,
    word: str,
) -> None:
    def in_a_thread(_: Any) -> Outcome:
        """So that the error has no interrupt in its chain."""
        errors: list[BaseException] = []

        def work() -> None:
            try:
                then()
            except Exception as error:
                errors.append(error)

        _interrupted_then(number, lambda: None)(None)
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        if errors:
            raise errors[0]
        return Outcome(0, {}, ["all well"])

    for run in (_interrupted_then(number, then), in_a_thread):
        monkeypatch.setattr("kassign_spark.commands.validate_command.run", run)
        assert cli.main(["validate", "x"]) == 128 + number
        assert capsys.readouterr() == ("", f"{_HEAD}{word}; nothing was written\n")


def test_what_came_before_a_command_is_no_interrupt_of_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(
        "kassign_spark.commands.validate_command.run",
        _interrupted_then(signal.SIGINT, lambda: None),
    )
    assert cli.main(["validate", "x"]) == 130
    monkeypatch.setattr(
        "kassign_spark.commands.validate_command.run", _raises(KassignError("a fault"))
    )
    assert cli.main(["validate", "x"]) == 2
    assert capsys.readouterr().err.splitlines()[-1] == f"{_HEAD}a fault"


def test_an_output_in_its_place_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(_: Any) -> Outcome:
        with interrupts.deferred():
            signal.raise_signal(signal.SIGINT)
            interrupts.note_written("build/plan")
        raise AssertionError("the interrupt is raised when the output is there")

    monkeypatch.setattr("kassign_spark.commands.validate_command.run", run)
    assert cli.main(["validate", "x"]) == 130
    assert capsys.readouterr().err == f"{_HEAD}interrupted; build/plan had been written\n"


def test_jobs_are_cancelled_and_handlers_given_back() -> None:
    before = signal.getsignal(signal.SIGINT)
    with interrupts.watched(print):
        assert signal.getsignal(signal.SIGINT) is not before
    assert signal.getsignal(signal.SIGINT) is before
    cancelled = threading.Event()
    with interrupts.watched(print):
        interrupts.cancel_with(cancelled.set)
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert cancelled.wait(10)
    assert interrupts.received_signal() == signal.SIGINT
    signal.raise_signal(signal.SIGINT)  # the same one, passed on by a wrapper


_SECOND = """
import signal, time
from kassign_spark import cli, interrupts
from kassign_spark.commands.common import Outcome
from kassign_spark.commands import validate_command
def run(args):
    try:
        signal.raise_signal(signal.SIGINT)
    finally:
        time.sleep(interrupts._SAME_SECONDS)
        signal.raise_signal(signal.SIGTERM)
        time.sleep(60)  # tidying up that hangs
validate_command.run = run
cli.main(["validate", "x"])
"""


_SERVER = """
import signal, socketserver, socket
from kassign_spark import cli
from kassign_spark.commands.common import Outcome
from kassign_spark.commands import validate_command
class Handler(socketserver.BaseRequestHandler):
    def handle(self):
        raise EOFError
def run(args):
    with socketserver.TCPServer(("127.0.0.1", 0), Handler) as server:
        try:
            signal.raise_signal(signal.SIGINT)
        finally:
            socket.create_connection(server.server_address).close()
            server.handle_request()
validate_command.run = run
raise SystemExit(cli.main(["validate", "x"]))
"""


def test_servers_of_pyspark_print_no_trace(own_processes: None) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", _SERVER], cwd=_ROOT, capture_output=True, text=True, timeout=50
    )
    assert (ended.returncode, ended.stdout) == (130, "")
    assert ended.stderr == f"{_HEAD}interrupted; nothing was written\n"


def test_a_second_one_ends_at_once(own_processes: None) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", _SECOND], cwd=_ROOT, capture_output=True, text=True, timeout=50
    )
    assert (ended.returncode, ended.stdout) == (130, "")
    assert ended.stderr == f"{_HEAD}interrupted; nothing was written\n"


_DONE = """
import atexit, os, signal
from kassign_spark import __main__
from kassign_spark.commands.common import Outcome
from kassign_spark.commands import validate_command
validate_command.run = lambda args: Outcome(1, {}, ["a problem"])
atexit.register(os.kill, os.getpid(), signal.SIGTERM)
raise SystemExit(__main__.main())
"""


def test_one_that_comes_after_the_report_changes_nothing(own_processes: None) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", _DONE, "validate", "x"],
        cwd=_ROOT,
        capture_output=True,
        text=True,
        timeout=50,
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (1, "a problem\n", "")


def _takes_signals(process: int) -> bool:
    """Whether it has a handler of SIGTERM, which Python has not."""
    status = Path(f"/proc/{process}/status").read_text()
    caught = re.search(r"^SigCgt:\s*([0-9a-f]+)", status, re.MULTILINE)
    return caught is not None and bool(int(caught[1], 16) >> (signal.SIGTERM - 1) & 1)


def _run(
    arguments: list[str], seconds: float, *numbers: int, pause: float = 0.0
) -> tuple[int, str, str]:
    """Run a command, and signal its group some seconds after it has begun, as a terminal does.

    Before that, while Python itself starts, a signal is Python's.
    """
    with subprocess.Popen(
        [sys.executable, "-m", "kassign_spark", *arguments],
        cwd=_ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as running:
        while running.poll() is None and not _takes_signals(running.pid):
            time.sleep(0.01)
        time.sleep(seconds)
        for number in numbers:
            if running.poll() is None:
                os.killpg(running.pid, number)
            time.sleep(pause)
        printed, error_output = running.communicate(timeout=120)
    return running.returncode, printed, error_output


@pytest.mark.slow
def test_at_any_moment(tmp_path: Path, own_processes: None) -> None:
    fleet = write_small_fleet(tmp_path / "fleet")
    started = time.monotonic()
    assert _run(["assign", str(fleet), "--output", str(tmp_path / "all")], 0)[0] == 0
    whole = time.monotonic() - started
    wrong = []
    outcomes = []
    for i in range(12):
        seconds = i * whole / 12
        out = tmp_path / f"out{i}"
        number = signal.SIGTERM if i % 4 == 3 else signal.SIGINT
        numbers = [number] * (2 if i % 3 == 2 else 1)
        code, printed, error_output = _run(
            ["assign", str(fleet), "--output", str(out)], seconds, *numbers, pause=1.1 * (i % 2)
        )
        outcomes.append(code)
        ending = "terminated" if number == signal.SIGTERM else "interrupted"
        after = f"{out} had been written" if out.exists() else "nothing was written"
        is_right = (code, printed) == (128 + number, "") and error_output.splitlines()[-1:] == [
            f"{_HEAD}{ending}; {after}"
        ]
        is_done = code == 0 and out.exists()
        if not (is_right or is_done) or "Traceback" in error_output:
            wrong.append((round(seconds, 2), number, code, printed, error_output))
    assert wrong == []
    assert len([code for code in outcomes if code != 0]) >= 8


@pytest.mark.slow
def test_signals_that_keep_coming(tmp_path: Path, own_processes: None) -> None:
    """Python takes its handlers away before it is gone: none of them may end it in between."""
    fleet = write_small_fleet(tmp_path / "fleet")
    arguments = ["assign", str(fleet), "--output", str(tmp_path / "out")]
    for seconds in (0.5, 2, 3):
        code, printed, error_output = _run(arguments, seconds, *[signal.SIGTERM] * 150, pause=0.005)
        assert (code, printed) == (143, "")
        assert error_output.splitlines()[-1] == f"{_HEAD}terminated; nothing was written"


@pytest.mark.slow
def test_following_a_log(tmp_path: Path, own_processes: None) -> None:
    log = _ROOT / "examples" / "group-log"
    for i, seconds in enumerate((4.0, 8.0, 12.0, 16.0)):
        out = tmp_path / f"out{i}"
        arguments = ["history", "--log", str(log), "--follow", "--output", str(out)]
        code, _, error_output = _run(arguments, seconds, signal.SIGINT)
        assert code == 130, error_output
        assert error_output.splitlines()[-1].startswith(f"{_HEAD}interrupted; ")
        assert "Traceback" not in error_output
