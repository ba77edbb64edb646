"""What a run that ended in the middle left beside its output, and how a later run tells it.

A run writes into ``.NAME.OWNER-RUN.writing`` and, with ``--overwrite``, moves what was there to
``.NAME.OWNER-RUN.replaced`` for a moment. OWNER names a process by its machine's boot, its process
id and its start, so that another run on the same machine knows whether it is still at work. What
was left from another machine stays: nobody here can tell whether its run has ended.
"""

import os
import re
from collections.abc import Callable
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any
from uuid import uuid4

from kassign_spark.sessions import Py4JJavaError
from kassign_spark.tables.hadoop import entries

WRITING, REPLACED = "writing", "replaced"
OWNER = r"[0-9a-f]{12}-\d+-\d+-[0-9a-f]{12}"
"""What names a run, its process and its machine."""


def hidden_stem(name: str) -> str:
    """Give the beginning of the names that a new run of this process uses beside ``name``."""
    return f".{name}.{new_owner()}"


def new_owner() -> str:
    """Name a new run of this process."""
    pid = os.getpid()
    return f"{_machine()}-{pid}-{_started(pid) or 0}-{uuid4().hex[:12]}"


def has_ended(owner: str) -> bool:
    """Whether a run was one of this machine, and its process is no more."""
    machine, pid, started, _ = owner.split("-")
    return machine == _machine() and _started(int(pid)) != int(started)


def clear_leftovers(files: Any, target: Any, rename: Callable[[Any, Any], None]) -> None:
    """Remove what ended runs of this machine left beside ``target``, the file system permitting.

    A folder that such a run had moved away, and not yet replaced, comes back to its place: it is
    the last whole one. ``rename`` moves a folder to a place where nothing is, or raises.
    """
    with suppress(Py4JJavaError):
        for found in _ended(files, target).values():
            writing, replaced = found.get(WRITING), found.get(REPLACED)
            if replaced is not None and files.exists(target):
                files.delete(replaced, True)
            elif replaced is not None and writing is not None:
                rename(replaced, target)
            # Else the new folder was in its place, and somebody took it away: the old one stays.
            if writing is not None:
                files.delete(writing, True)


def _ended(files: Any, target: Any) -> dict[str, dict[str, Any]]:
    """Hidden folders beside the target whose process is no more, by run and purpose."""
    found: dict[str, dict[str, Any]] = {}
    start = f".{target.getName()}."
    for name, status in entries(files, target.getParent()).items():
        stem, _, purpose = name.rpartition(".")
        if not name.startswith(start) or purpose not in (WRITING, REPLACED):
            continue
        owner = stem.removeprefix(start)
        if re.fullmatch(OWNER, owner) and has_ended(owner):
            found.setdefault(stem, {})[purpose] = status.getPath()
    return found


def _machine() -> str:
    """Name the machine since it was started; a container with processes of its own is one too."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        processes = Path("/proc/self/ns/pid").readlink()
    except OSError:
        return uuid4().hex[:12]  # a name that nobody knows again
    return sha256(f"{boot} {processes}".encode()).hexdigest()[:12]


def _started(pid: int) -> int | None:
    """When the process began, in ticks since the machine's start; None: there is none."""
    try:
        # The name of the program, in parentheses, may hold blanks.
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in "ZX" else int(fields[19])
