"""What is done after a run that failed or was interrupted, so that nothing of it stays."""

import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from kassign_spark.errors import KassignError
from kassign_spark.sessions import Py4JError

_LOOKS, _LOOK_SECONDS = 10, 0.1


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
        with suppress(Py4JError):
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
