"""Object stores: which run's tables a folder holds, as a marker in it says.

No such store moves a folder in one step. So each run writes into a folder of its own,
``NAME/run-OWNER-RUN``, and then one small file, ``NAME/current.json``, says which of them is to be
read: it appears, and is replaced, whole. Whoever finds no marker finds nothing; whoever reads by it
never mixes two runs.
"""

import json
import re
from collections.abc import Callable, Collection

from kassign_spark.errors import InputError
from kassign_spark.processes import OWNER
from kassign_spark.tables.files import FILE_ERRORS, Files, child, read_small

CURRENT = "current.json"
"""The marker: a JSON object whose ``run`` names a folder beside it."""
_START = "run-"
_RUN = re.compile(f"{_START}({OWNER})")


def run_name(owner: str) -> str:
    """Name the folder of a run."""
    return f"{_START}{owner}"


def owner_of(name: str) -> str | None:
    """Return the run that a folder belongs to, by its name; None: it is no such folder."""
    match = _RUN.fullmatch(name)
    return match and match[1]


def run_in(names: Collection[str], read: Callable[[], str | bytes], folder: str) -> str | None:
    """Return which run of a folder is to be read; None: its tables are in the folder itself.

    Args:
        names: what is in the folder.
        read: gives what the marker holds.
        folder: its name in an error.

    Raises:
        InputError: no run has ended yet, or the marker is none.
    """
    if CURRENT in names:
        run = _run_of(read())
        if run is None:
            raise InputError(f"folder {folder}: its {CURRENT} names no run; write the folder anew")
        return run
    if names and all(owner_of(name) for name in names):
        raise InputError(f"folder {folder}: is being written, or the writing of it was cut short")
    return None


def named_run(files: Files, target: str) -> str | None:
    """Return the name of the run that a folder's marker has; None: there is none.

    Raises:
        FILE_ERRORS: it cannot be read.
    """
    text = read_small(files, child(target, CURRENT))
    return None if text is None else _run_of(text)


def name_run(files: Files, target: str, run: str, *, overwrite: bool) -> bool:
    """Write the marker; return whether it is in place: without ``overwrite`` one may be.

    Of two runs at once the store itself lets one through where it can; elsewhere it is looked for
    first, and in between the last one to write it has it.

    Raises:
        FILE_ERRORS: it cannot be written, or nobody knows whether it was.
    """
    write = files.write if overwrite else files.write_new
    try:
        write(child(target, CURRENT), json.dumps({"run": run}) + "\n")
    except FILE_ERRORS:
        # Also where the answer to a write that did it was lost.
        current = named_run(files, target)
        if current is None or (overwrite and current != run):
            raise
        return current == run
    return True


def _run_of(text: str | bytes) -> str | None:
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        return None
    run = content.get("run") if isinstance(content, dict) else None
    return run if isinstance(run, str) and owner_of(run) else None
