"""Names of running processes: whether the one that a file names has ended, on this machine.

A process is named by its machine's boot, its process id and its start, which no later process has
all three of.
"""

import os
from hashlib import sha256
from pathlib import Path
from uuid import uuid4

OWNER = r"[0-9a-f]{12}-\d+-\d+-[0-9a-f]{12}"
"""Pattern of the name of one piece of a process's work."""


def new_owner() -> str:
    """Name a new run of this process."""
    pid = os.getpid()
    return f"{_machine()}-{pid}-{_start_time(pid) or 0}-{uuid4().hex[:12]}"


def has_ended(owner: str) -> bool:
    """Return whether a run was one of this machine and its process has ended."""
    machine, pid, started, _ = owner.split("-")
    return machine == _machine() and _start_time(int(pid)) != int(started)


def _machine() -> str:
    """Name the machine since it was started; a container with processes of its own is one too."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        processes = Path("/proc/self/ns/pid").readlink()
    except OSError:
        return uuid4().hex[:12]  # a name that nobody knows again
    return sha256(f"{boot} {processes}".encode()).hexdigest()[:12]


def _start_time(pid: int) -> int | None:
    """Return when the process began, in ticks since the machine's start; None: no process."""
    try:
        # The name of the program, in parentheses, may hold blanks.
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in "ZX" else int(fields[19])
