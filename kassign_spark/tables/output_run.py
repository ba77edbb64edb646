"""Object stores: tables are written where they stay, and a marker, written last, says so.

``folder_runs`` has what the marker is. Nothing is renamed or copied, however many files there are.
"""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from kassign_spark.errors import OutputError
from kassign_spark.sessions import Py4JJavaError
from kassign_spark.tables.folder_runs import CURRENT, name_run, named_run, owner_of, run_name
from kassign_spark.tables.hadoop import child, entries, explained
from kassign_spark.tables.leftovers import has_ended, new_owner
from kassign_spark.tables.ours import MARK, check_target, is_ours
from kassign_spark.tables.tidying import missing_folders, tidy


@contextmanager
def new_run(files: Any, target: Any, path: str, *, overwrite: bool) -> Iterator[str]:
    """Give a folder in ``target`` to write into, which the marker names when all went well.

    What was there is read until then, and goes afterwards; ``path`` is the target's name in errors.
    """
    with explained(path):
        _clear_ended(files, target)
        found = entries(files, target)
        # Runs at work are no output, nor is what S3A keeps of a folder whose files are gone.
        if not all(owner_of(name) for name in found):
            check_target(files, target, path, overwrite=overwrite)
        missing = missing_folders(files, target)
    name = run_name(new_owner())
    writing = child(target, name)
    try:
        with explained(path):
            files.create(child(writing, MARK)).close()
            # For an end that Java sees and Python does not, as SIGTERM to spark-submit; S3A is
            # closed before it looks at this, so there the next run tidies up.
            files.deleteOnExit(writing)
        yield writing.toString()
        with explained(path):
            before = named_run(files, target)
            files.cancelDeleteOnExit(writing)
            if not name_run(files, target, name, overwrite=overwrite):
                raise OutputError(
                    f"output {path}: another run has written it meanwhile; this run's result is "
                    "dropped"
                )
    except BaseException:
        # Where nobody can tell whether the marker names it, it stays.
        tidy(files, writing, missing, lambda: named_run(files, target) != name)
        raise
    if overwrite:
        _clear_replaced(files, target, before)


def _clear_replaced(files: Any, target: Any, before: str | None) -> None:
    """Remove what the marker named before, or the folder held without one."""
    with suppress(Py4JJavaError):
        for name in entries(files, target):
            if name == before or (name != CURRENT and is_ours(name)):
                files.delete(child(target, name), True)


def _clear_ended(files: Any, target: Any) -> None:
    """Remove the folders of runs that ended on this machine without a marker."""
    with suppress(Py4JJavaError):
        names = entries(files, target)
        ended = [name for name in names if (owner := owner_of(name)) and has_ended(owner)]
        # Only now: what has ended by here has its marker already, if it will ever have one.
        current = named_run(files, target) if ended else None
        for name in ended:
            if name != current:
                files.delete(child(target, name), True)
