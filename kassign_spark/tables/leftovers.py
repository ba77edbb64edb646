"""Leftovers of a failed run beside its output: it removes them itself, or a later run does.

A run writes into ``.NAME.OWNER.writing`` and, with ``--overwrite``, moves what was there to
``.NAME.OWNER.replaced`` for a moment. OWNER is of ``processes``, so that another run on the same
machine knows whether it ended in the middle. What was left by another machine stays: this one
cannot know whether its run has ended.
"""

import re
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress

from kassign_spark.errors import KassignError
from kassign_spark.processes import OWNER, has_ended, new_owner
from kassign_spark.spark.sessions import Py4JError
from kassign_spark.tables.file_list import foreign_names
from kassign_spark.tables.files import FILE_ERRORS, Files, name_of, parent

WRITING, REPLACED = "writing", "replaced"
_LOOKS, _LOOK_SECONDS = 10, 0.1


def hidden_stem(name: str) -> str:
    """Return the beginning of a new run's names beside ``name``."""
    return f".{name}.{new_owner()}"


def clear_leftovers(files: Files, target: str) -> None:
    """Remove what ended runs of this machine left beside ``target``, the file system permitting.

    A folder that such a run had moved away, and not yet replaced, comes back to its place: it is
    the last whole one.
    """
    with suppress(*FILE_ERRORS):
        for paths in _find_ended(files, target).values():
            writing, replaced = paths.get(WRITING), paths.get(REPLACED)
            if replaced is not None and files.exists(target):
                if not foreign_names(files, replaced):
                    files.delete(replaced)
            elif replaced is not None and writing is not None:
                files.rename(replaced, target)
            # Else the new folder was in its place, and somebody took it away: the old one stays.
            if writing is not None:
                files.delete(writing)


def missing_folders(files: Files, folder: str | None) -> list[str]:
    """Return the folder and those above it that are still to be made, the innermost first."""
    missing = []
    while folder is not None and not files.exists(folder):
        missing.append(folder)
        folder = parent(folder)
    return missing


def tidy(files: Files, writing: str, missing: list[str], before: Callable[[], bool]) -> None:
    """Remove what was being written, and folders above it, missing before, if they are empty.

    What ``before`` does comes first; if it says False, nothing is removed.
    """
    # What was asked of Java before an interrupt may still be at work there, and make the folder
    # anew; if it comes so late that nobody looks any more, Java deletes it when it ends.
    looks = 0 if isinstance(sys.exception(), KassignError) else _LOOKS

    def work() -> None:
        # py4j lets a refused connection through: Java is gone.
        with suppress(Py4JError, *FILE_ERRORS):
            if not before():
                return
            files.delete(writing)
            quiet = 0
            while quiet < looks:
                time.sleep(_LOOK_SECONDS)
                quiet = 0 if files.delete(writing) else quiet + 1
            if not looks:
                files.keep_at_exit(writing)
            for folder in missing:
                files.delete(folder, whole=False)

    # In a thread of its own, which has its own connection to Java: an interrupt leaves the one of
    # this thread in the middle of an answer.
    tidying = threading.Thread(target=work)
    tidying.start()
    tidying.join()


def _find_ended(files: Files, target: str) -> dict[str, dict[str, str]]:
    """Return hidden folders beside the target whose process is no more, by run and purpose."""
    runs: dict[str, dict[str, str]] = {}
    start = f".{name_of(target)}."
    for name, entry in files.entries(parent(target) or target).items():
        stem, _, purpose = name.rpartition(".")
        if not name.startswith(start) or purpose not in (WRITING, REPLACED):
            continue
        owner = stem.removeprefix(start)
        if re.fullmatch(OWNER, owner) and has_ended(owner):
            runs.setdefault(stem, {})[purpose] = entry.path
    return runs
