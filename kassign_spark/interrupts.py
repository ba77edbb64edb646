"""Ctrl-C and SIGTERM during a command: the signal is kept, whatever exception it becomes.

An interrupt breaks the connection to Java at any point: what arrives in the end may be an error of
Spark's, of py4j's, or none at all. So the handler notes the signal, and the command asks for that.
"""

import atexit
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_SAME_SECONDS = 1.0
"""A signal so soon after the first is the same one: a wrapper passes on what the terminal sends."""


class _State:
    received: int | None = None
    at: float = 0.0
    is_deferred = False
    cancel: Callable[[], object] | None = None
    report: Callable[[int], object] | None = None


_state = _State()
_written: list[str] = []


def received_signal() -> int | None:
    """Return the number of the signal that came, or null."""
    return _state.received


def accept() -> None:
    """Take the signal as the regular end of the wait: the command goes on from there."""
    _state.received = None


def written() -> list[str]:
    """List the outputs that are in their places and stay."""
    return [*dict.fromkeys(_written)]


def note_written(path: str) -> None:
    """Note that an output is in its place: an interrupt that comes later says so."""
    _written.append(path)


@contextmanager
def watched(report: Callable[[int], object]) -> Iterator[None]:
    """Note interrupts, and raise ``KeyboardInterrupt``; the second ends the process at once.

    Args:
        report: says what came, before such an end.
    """
    before = [signal.getsignal(number) for number in _SIGNALS]
    _state.received = _state.cancel = None
    _state.report = report
    _written.clear()
    _take_signals()
    try:
        yield
    finally:
        # One that came ends the process, and the next one is not to leave a trace.
        if _state.received is None and _is_main_thread():
            for number, handler in zip(_SIGNALS, before, strict=True):
                signal.signal(number, handler)


def ignore() -> None:
    """Ignore what comes after the report, until the process is gone: the exit code stands."""
    for number in _SIGNALS:
        signal.signal(number, signal.SIG_IGN)


@atexit.register
def _ignore_at_exit() -> None:
    """Ignore it behind the report of an interrupt as well: Python takes its handlers away now.

    Until then a second one ends the process at once.
    """
    if _state.received is not None and _is_main_thread():
        ignore()


def cancel_with(cancel: Callable[[], object]) -> None:
    """Call this on an interrupt, in a thread of its own; PySpark's handler goes.

    That one calls Java on a connection that is in use.
    """
    _state.cancel = cancel
    _take_signals()


@contextmanager
def deferred() -> Iterator[None]:
    """Defer an interrupt while an output is put in place or Java starts, but not a second one."""
    _state.is_deferred = True
    before = _state.received
    try:
        yield
    finally:
        _state.is_deferred = False
    if _state.received is not None and before is None:
        raise KeyboardInterrupt(_state.received)


def _take_signals() -> None:
    if _is_main_thread():
        for number in _SIGNALS:
            signal.signal(number, _interrupt)


def _is_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()


def _interrupt(number: int, frame: FrameType | None) -> None:
    if _state.received is not None:
        if time.monotonic() - _state.at >= _SAME_SECONDS:
            if _state.report is not None:
                _state.report(_state.received)
            os._exit(128 + _state.received)  # Java, left alone, deletes what was begun
        return
    _state.received, _state.at = number, time.monotonic()
    _silence_servers()
    if _state.cancel is not None:
        threading.Thread(target=_cancel, args=(_state.cancel,), daemon=True).start()
    if not _state.is_deferred:
        raise KeyboardInterrupt(number)


def _silence_servers() -> None:
    """Keep PySpark's accumulator server from printing a trace when Java ends first."""
    if "socketserver" in sys.modules:
        server = sys.modules["socketserver"].BaseServer
        server.handle_error = lambda *_: None


def _cancel(cancel: Callable[[], object]) -> None:
    with suppress(Exception):  # the session is stopping already
        cancel()
