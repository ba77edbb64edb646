"""A file for people appears whole or not at all, and only a file of ours is ever replaced.

It ends with a digest of all that stands before: a file that somebody edited since is theirs.
"""

import os
import stat
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from uuid import uuid4

from kassign_spark.errors import OutputError
from kassign_spark.interrupts import deferred, note_written
from kassign_spark.tables.catalog_paths import is_catalog_path

_END = "<!-- kassign-spark {} -->\n"


def check_new_file(path: str, *, mark: str, overwrite: bool) -> None:
    """Refuse a file that must not be written, before any work is done.

    Args:
        path: a local file, or a link to one, which stays.
        mark: text near the beginning of every file of ours.
        overwrite: whether a file of ours may be replaced.

    Raises:
        OutputError: the file exists and is not to be replaced, its folder cannot be written, or
            tables are named.
    """
    if is_catalog_path(path):
        raise OutputError(f"output {path}: this is a file, which no catalog takes; name a file")
    if not path.strip():
        raise OutputError("output: the name of the file is empty")
    target = Path(os.path.realpath(path))
    try:
        if target.is_dir():
            raise OutputError(f"output {path}: is a folder; name a new file")
        if not os.path.lexists(target):
            above = next(folder for folder in target.parents if folder.exists())
            if not (above.is_dir() and os.access(above, os.W_OK)):
                raise OutputError(f"output {path}: {above} is not a folder that can be written to")
            return
        if not overwrite:
            raise OutputError(f"output {path}: exists; name a new file, or say --overwrite")
        refusal = _refusal(target, mark)
    except OSError as error:
        raise OutputError(f"output {path}: {error.strerror}") from None
    if refusal is not None:
        raise OutputError(f"output {path}: {refusal}, so it is not overwritten; name another file")


def write_file(path: str, text: str, *, mark: str, overwrite: bool = False) -> int:
    """Write a local file under a hidden name beside its place, then give it its name.

    A digest of ``text`` follows it, as an HTML comment.

    Returns:
        The size of the file in bytes.

    Raises:
        OutputError: the file exists, also if another run wrote it meanwhile, or cannot be written.
    """
    target = Path(os.path.realpath(path))
    writing = target.parent / f".{target.name}.{uuid4().hex}.writing"
    check_new_file(path, mark=mark, overwrite=overwrite)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            content = text.encode() + _end(text.encode())
            with writing.open("xb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            with deferred():
                if overwrite:
                    check_new_file(path, mark=mark, overwrite=True)  # it may have been edited
                    writing.replace(target)
                else:
                    os.link(writing, target)  # unlike a rename, this refuses a target that exists
                note_written(path)
        finally:
            with suppress(FileNotFoundError):
                writing.unlink()
    except FileExistsError:
        raise written_meanwhile(path) from None
    except OSError as error:
        raise OutputError(f"output {path}: {error.strerror}") from None
    return len(content)


def written_meanwhile(path: str) -> OutputError:
    """Explain that another run was first to write an output."""
    return OutputError(
        f"output {path}: another run has written it meanwhile; this run's result is dropped"
    )


def _end(content: bytes) -> bytes:
    return _END.format(sha256(content).hexdigest()).encode()


def _refusal(target: Path, mark: str) -> str | None:
    """Explain why a file is not ours; None: it is, as a run of ours left it."""
    if not stat.S_ISREG(target.stat().st_mode):
        return "is not a regular file"
    with target.open("rb") as file:
        if mark.encode() not in file.read(4096):
            return "is not a file that kassign-spark wrote"
        file.seek(0)
        content = file.read()
    length = len(_end(b""))
    if content[-length:] != _end(content[:-length]):
        return "was changed since kassign-spark wrote it, or an earlier version wrote it"
    return None
