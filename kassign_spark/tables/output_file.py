"""A file for people appears whole or not at all, and only a file of ours is ever replaced."""

import os
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

from kassign_spark.errors import OutputError
from kassign_spark.tables.places import is_place


def check_new_file(path: str, *, mark: str, overwrite: bool) -> None:
    """Refuse, before any work is done, a file that must not be written.

    Args:
        path: a local file.
        mark: text near the beginning of every file of ours.
        overwrite: whether a file of ours may be replaced.

    Raises:
        OutputError: the file exists and is not to be replaced, its folder cannot be written, or
            tables are named.
    """
    if is_place(path):
        raise OutputError(f"output {path}: this is a file, which no catalog takes; name a file")
    if not path.strip():
        raise OutputError("output: the name of the file is empty")
    target = Path(path)
    try:
        if target.is_dir():
            raise OutputError(f"output {path}: is a folder; name a new file")
        if not os.path.lexists(target):
            above = next(folder for folder in target.absolute().parents if folder.exists())
            if not (above.is_dir() and os.access(above, os.W_OK)):
                raise OutputError(f"output {path}: {above} is no folder that can be written to")
            return
        if not overwrite:
            raise OutputError(f"output {path}: exists; name a new file, or say --overwrite")
        with target.open(encoding="utf-8", errors="replace") as file:
            is_ours = mark in file.read(4096)
    except OSError as error:
        raise OutputError(f"output {path}: {error.strerror}") from None
    if not is_ours:
        raise OutputError(
            f"output {path}: is not a file that kassign-spark wrote, so it is not overwritten; "
            "name another file"
        )


def write_file(path: str, text: str, *, mark: str, overwrite: bool = False) -> None:
    """Write a local file under a hidden name beside its place, then give it its name.

    Raises:
        OutputError: the file exists, also if another run wrote it meanwhile, or cannot be written.
    """
    check_new_file(path, mark=mark, overwrite=overwrite)
    target = Path(path)
    writing = target.parent / f".{target.name}.{uuid4().hex}.writing"
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            with writing.open("x", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            if overwrite:
                writing.replace(target)
            else:
                os.link(writing, target)  # unlike a rename, this refuses a target that exists
        finally:
            with suppress(FileNotFoundError):
                writing.unlink()
    except FileExistsError:
        raise written_meanwhile(path) from None
    except OSError as error:
        raise OutputError(f"output {path}: {error.strerror}") from None


def written_meanwhile(path: str) -> OutputError:
    """Say that another run was first to write an output."""
    return OutputError(
        f"output {path}: another run has written it meanwhile; this run's result is dropped"
    )
