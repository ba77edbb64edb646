"""A folder of results appears whole or not at all, and only a folder of ours is ever replaced.

Each run leaves a list of its files (``file_list``); a folder with anything else in it stays.
Everything is written beside its place under a hidden name, which is then renamed. In object stores,
which cannot rename a folder, tables are written where they stay, and a marker, written last, says
so (``folder_runs``).
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from pyspark.sql import SparkSession

from kassign_spark.errors import OutputError
from kassign_spark.interrupts import deferred, note_written
from kassign_spark.processes import has_ended, new_owner
from kassign_spark.tables.file_list import (
    MARK,
    foreign_names,
    listed_sizes,
    write_list,
    write_mark,
)
from kassign_spark.tables.files import FILE_ERRORS, Files, child, name_of, parent
from kassign_spark.tables.folder_runs import CURRENT, name_run, named_run, owner_of, run_name
from kassign_spark.tables.leftovers import (
    REPLACED,
    WRITING,
    clear_leftovers,
    hidden_stem,
    missing_folders,
    tidy,
)
from kassign_spark.tables.local_files import SCHEME, local_path
from kassign_spark.tables.locating import explained, locate
from kassign_spark.tables.output_file import written_meanwhile
from kassign_spark.tables.ownership import check_contents, check_target
from kassign_spark.tables.server_files import ServerFiles


@contextmanager
def new_folder(spark: SparkSession, path: str, *, overwrite: bool = False) -> Iterator[str]:
    """Return a folder to write into, which becomes ``path`` when all went well.

    With ``overwrite`` a folder is replaced that this package wrote, and that holds nothing else;
    where ``path`` is a link to one, the link stays.

    Raises:
        OutputError: ``path`` exists (or, with ``overwrite``, is not such a folder, or no longer
            when the new one is written), cannot be written, or another run took it in the meantime.
    """
    target, files = _locate(spark, path)
    if isinstance(files, ServerFiles):
        folder = _server_run(files, target, path)
    elif files.renames_at_once(target):
        folder = _renamed_folder(files, target, path, overwrite=overwrite)
    else:
        folder = _marked_run(files, target, path, overwrite=overwrite)
    with folder as writing:
        yield writing


def check_new_folder(spark: SparkSession, path: str, *, overwrite: bool) -> None:
    """Refuse what ``new_folder`` would refuse, before any work is done.

    Raises:
        OutputError: ``path`` exists, or, with ``overwrite``, is not to be replaced.
    """
    target, files = _locate(spark, path)
    with explained(path):
        if isinstance(files, ServerFiles):
            _check_server_folder(files, target, path)
        elif files.renames_at_once(target):
            check_target(files, target, path, overwrite=overwrite)
        else:
            _check_marked(files, target, path, overwrite=overwrite)


@contextmanager
def _renamed_folder(files: Files, target: str, path: str, *, overwrite: bool) -> Iterator[str]:
    above = parent(target) or target
    with explained(path):
        clear_leftovers(files, target)
        check_target(files, target, path, overwrite=overwrite)
        missing = missing_folders(files, above)
        stem = hidden_stem(name_of(target))
        writing, replaced = (child(above, f"{stem}.{purpose}") for purpose in (WRITING, REPLACED))

    def put_back() -> bool:
        if files.exists(replaced) and not files.exists(target):
            files.rename(replaced, target)
        return True

    try:
        with explained(path):
            if not files.make_folder(writing):
                raise OutputError(f"output {path}: {above} cannot be written")
            # For an end that Java sees and Python does not, as SIGTERM to spark-submit.
            files.delete_at_exit(writing)
        yield writing
        with explained(path), deferred():
            write_list(files, writing)
            # From here on a run that ends in the middle leaves both folders: so the next one can
            # tell that the old one belongs in its place.
            files.keep_at_exit(writing)
            _replace(files, writing, target, replaced if overwrite else None, path)
            note_written(path)
    except BaseException:
        tidy(files, writing, missing, put_back)
        raise


def same_or_inside(spark: SparkSession, path: str, folder: str) -> bool:
    """Return whether ``path`` is ``folder`` or lies in it."""
    inner, _ = _locate(spark, path)
    outer, _ = _locate(spark, folder)
    return f"{inner}/".startswith(f"{outer}/")


def _locate(spark: SparkSession, path: str) -> tuple[str, Files]:
    """Return the path, absolute, and its file system."""
    if not path.strip():
        raise OutputError("output: the name of the folder is empty")
    if path.lower().startswith(("http://", "https://")):
        raise OutputError(f"output {path}: is an address on the web; name a new folder")
    if ":" in path.rstrip("/").rpartition("/")[2]:
        raise OutputError(f"output {path}: Spark takes no name with ':'; name another folder")
    with explained(path):
        files, target = locate(spark, path)
        local = local_path(target)
        if local is not None:  # a link stays, and what it leads to is the output
            resolved = os.path.realpath(local)
            if os.path.islink(resolved):
                raise OutputError(f"output {path}: is a link that leads to itself; name a folder")
            target = f"{SCHEME}{resolved}"
    if parent(target) is None:
        raise OutputError(f"output {path}: is the root of its file system; name a new folder")
    return target, files


def _replace(files: Files, writing: str, target: str, replaced: str | None, path: str) -> None:
    """Move a folder to its place; the old one goes to ``replaced`` for a moment, if that is given.

    Where that fails, what was there is in ``replaced``.

    Raises:
        OutputError: somebody put a file of his own there while this run was at work, or another
            run was first.
    """
    if replaced is not None:
        try:
            files.rename(target, replaced)
        except FILE_ERRORS:  # nothing there, or another run has just moved it
            if files.exists(target):
                raise
        else:  # only now: nobody finds it any more to put anything into it
            check_contents(files, replaced, path)
    try:
        files.rename(writing, target)
    except FILE_ERRORS:
        if not files.exists(target):
            raise
        raise written_meanwhile(path) from None
    finally:
        if replaced is not None and files.exists(target):
            files.delete(replaced)


@contextmanager
def _marked_run(files: Files, target: str, path: str, *, overwrite: bool) -> Iterator[str]:
    """Open a folder in ``target``, which a marker names after all went well.

    What was there is read until then, and goes afterwards. Nothing is renamed or copied, however
    many files there are.
    """
    with explained(path):
        _clear_ended(files, target)
        _check_marked(files, target, path, overwrite=overwrite)
        missing = missing_folders(files, target)
    name = run_name(new_owner())
    writing = child(target, name)
    try:
        with explained(path):
            write_mark(files, writing, {})  # the folder is there from now on
            # For an end that Java sees and Python does not, as SIGTERM to spark-submit; S3A is
            # closed before it looks at this, so there the next run tidies up.
            files.delete_at_exit(writing)
        yield writing
        with explained(path), deferred():
            write_list(files, writing)
            if overwrite:
                _check_marked(files, target, path, overwrite=True)
            before = named_run(files, target)
            files.keep_at_exit(writing)
            if not name_run(files, target, name, overwrite=overwrite):
                raise written_meanwhile(path)
            note_written(path)
    except BaseException:
        # It stays where it is unknown whether the marker names it.
        tidy(files, writing, missing, lambda: named_run(files, target) != name)
        raise
    if overwrite:
        _clear_replaced(files, target, before)


def _check_marked(files: Files, target: str, path: str, *, overwrite: bool) -> None:
    # Runs at work are no output, nor is what S3A keeps of a folder whose files are gone.
    if not all(owner_of(name) for name in files.entries(target)):
        check_target(files, target, path, overwrite=overwrite, runs_stay=True)


@contextmanager
def _server_run(files: ServerFiles, target: str, path: str) -> Iterator[str]:
    """Open a run of a folder that only a server sees; a run that fails stays, without a marker."""
    with explained(path):
        _check_server_folder(files, target, path)
    name = run_name(new_owner())
    yield child(target, name)
    with explained(path), deferred():
        if not name_run(files, target, name, overwrite=False):
            raise written_meanwhile(path)
        note_written(path)


def _check_server_folder(files: ServerFiles, target: str, path: str) -> None:
    names = files.entries(target)
    if CURRENT in names or not all(owner_of(name) for name in names) or files.is_file(target):
        raise OutputError(
            f"output {path}: exists, and Spark Connect cannot remove what is there; name a new "
            "folder"
        )


def _clear_replaced(files: Files, target: str, before: str | None) -> None:
    """Remove what the marker named before, or the folder held without one.

    What has come there since the last check is not removed, nor is what it lies in.
    """
    with suppress(*FILE_ERRORS):
        if before is not None and not foreign_names(files, child(target, before)):
            files.delete(child(target, before))
        tops = {name.split("/")[0] for name in listed_sizes(files, target) or {}}
        if tops and not foreign_names(files, target, lambda name: name not in tops):
            for name in [*tops, MARK]:
                files.delete(child(target, name))


def _clear_ended(files: Files, target: str) -> None:
    """Remove the folders of runs that ended on this machine without a marker."""
    with suppress(*FILE_ERRORS):
        names = files.entries(target)
        ended = [name for name in names if (owner := owner_of(name)) and has_ended(owner)]
        # Only now: what has ended by here has its marker already, if it will ever have one.
        current = named_run(files, target) if ended else None
        for run in (child(target, name) for name in ended if name != current):
            was_cut_short = listed_sizes(files, run) is None
            if was_cut_short or not foreign_names(files, run):
                files.delete(run)
