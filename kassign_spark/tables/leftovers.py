"""Leftovers of a failed run beside its output: it removes them itself, or a later run does.

A run writes into ``.NAME.OWNER-RUN.writing`` and, with ``--overwrite``, moves what was there to
``.NAME.OWNER-RUN.replaced`` for a moment. OWNER names a process by its machine's boot, its process
id and its start, so that another run on the same machine knows whether it ended in the middle. What
was left by another machine stays: this one cannot know whether its run has ended.
"""

import os
import re
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any
from uuid import uuid4

from kassign_spark.errors import KassignError
from kassign_spark.sessions import Py4JError, Py4JJavaError
from kassign_spark.tables.file_list import foreign_names
from kassign_spark.tables.hadoop import entries

WRITING, REPLACED = "writing", "replaced"
OWNER = r"[0-9a-f]{12}-\d+-\d+-[0-9a-f]{12}"
"""Pattern of the name of a run, its process and its machine."""
_LOOKS, _LOOK_SECONDS = 10, 0.1


def hidden_stem(name: str) -> str:
    """Return the beginning of a new run's names beside ``name``."""
    return f".{name}.{new_owner()}"


def new_owner() -> str:
    """Name a new run of this process."""
    pid = os.getpid()
    return f"{_machine()}-{pid}-{_started(pid) or 0}-{uuid4().hex[:12]}"


def has_ended(owner: str) -> bool:
    """Return whether a run was one of this machine and its process has ended."""
    machine, pid, started, _ = owner.split("-")
    return machine == _machine() and _started(int(pid)) != int(started)


def clear_leftovers(files: Any, target: Any, rename: Callable[[Any, Any], None]) -> None:
    """Remove what ended runs of this machine left beside ``target``, the file system permitting.

    A folder that such a run had moved away, and not yet replaced, comes back to its place: it is
    the last whole one. ``rename`` moves a folder to a place where nothing is, or raises.
    """
    with suppress(OSError, Py4JJavaError):
        for paths in _ended(files, target).values():
            writing, replaced = paths.get(WRITING), paths.get(REPLACED)
            if replaced is not None and files.exists(target):
                if not foreign_names(files, replaced):
                    files.delete(replaced, True)
            elif replaced is not None and writing is not None:
                rename(replaced, target)
            # Else the new folder was in its place, and somebody took it away: the old one stays.
            if writing is not None:
                files.delete(writing, True)


def missing_folders(files: Any, folder: Any) -> list[Any]:
    """The folder and those above it that are still to be made, the innermost first."""
    missing = []
    while folder is not None and not files.exists(folder):
        missing.append(folder)
        folder = folder.getParent()
    return missing


def tidy(files: Any, writing: Any, missing: list[Any], before: Callable[[], bool]) -> None:
    """Remove what was being written, and folders above it, missing before, if they are empty.

    What ``before`` does comes first; if it says False, nothing is removed.
    """
    # What was asked of Java before an interrupt may still be at work there, and make the folder
    # anew; if it comes so late that nobody looks any more, Java deletes it when it ends.
    looks = 0 if isinstance(sys.exception(), KassignError) else _LOOKS

    def work() -> None:
        with suppress(Py4JError, OSError):  # py4j lets a refused connection through: Java is gone
            if not before():
                return
            files.delete(writing, True)
            quiet = 0
            while quiet < looks:
                time.sleep(_LOOK_SECONDS)
                quiet = 0 if files.delete(writing, True) else quiet + 1
            if not looks:
                files.cancelDeleteOnExit(writing)
            for parent in missing:
                files.delete(parent, False)

    # In a thread of its own, which has its own connection to Java: an interrupt leaves the one of
    # this thread in the middle of an answer.
    tidying = threading.Thread(target=work)
    tidying.start()
    tidying.join()


def _ended(files: Any, target: Any) -> dict[str, dict[str, Any]]:
    """Hidden folders beside the target whose process is no more, by run and purpose."""
    runs: dict[str, dict[str, Any]] = {}
    start = f".{target.getName()}."
    for name, status in entries(files, target.getParent()).items():
        stem, _, purpose = name.rpartition(".")
        if not name.startswith(start) or purpose not in (WRITING, REPLACED):
            continue
        owner = stem.removeprefix(start)
        if re.fullmatch(OWNER, owner) and has_ended(owner):
            runs.setdefault(stem, {})[purpose] = status.getPath()
    return runs


def _machine() -> str:
    """Name the machine since it was started; a container with processes of its own is one too."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        processes = Path("/proc/self/ns/pid").readlink()
    except OSError:
        return uuid4().hex[:12]  # a name that nobody knows again
    return sha256(f"{boot} {processes}".encode()).hexdigest()[:12]


def _started(pid: int) -> int | None:
    """Return when the process began, in ticks since the machine's start; None: no process."""
    try:
        # The name of the program, in parentheses, may hold blanks.
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in "ZX" else int(fields[19])
