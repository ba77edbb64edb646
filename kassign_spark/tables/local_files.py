"""The file system of this machine."""

import errno
import os
import shutil
import stat
from pathlib import Path

from kassign_spark.errors import InputError
from kassign_spark.tables.files import NO_PLAIN_FILE, Entry, Files

SCHEME = "file:"


def local_path(path: str) -> Path | None:
    """Return the same path for Python; None: it is not of this machine's file system."""
    if not path.startswith(SCHEME):
        return None
    return Path("/" + path.removeprefix(SCHEME).lstrip("/"))


class LocalFiles:
    """``Files`` of this machine, by Python.

    Args:
        java: the same file system in Java, which knows when a session in this process ends.
    """

    def __init__(self, java: Files | None = None) -> None:
        self._java = java

    def exists(self, path: str) -> bool:
        return _local(path).exists()

    def is_file(self, path: str) -> bool:
        local = _local(path)
        return local.exists() and not local.is_dir()

    def entries(self, folder: str) -> dict[str, Entry]:
        local = _local(folder)
        return {inner.name: _entry(inner) for inner in local.iterdir()} if local.is_dir() else {}

    def read(self, path: str, count: int) -> bytes:
        local = _local(path)
        if local.exists() and not (local.is_file() or local.is_dir()):
            raise InputError(f"file {local} is not a regular file")
        with local.open("rb") as file:
            return file.read(count)

    def write(self, path: str, text: str) -> None:
        _write(path, text, "wb")

    def write_new(self, path: str, text: str) -> None:
        _write(path, text, "xb")

    def make_folder(self, path: str) -> bool:
        _local(path).mkdir(parents=True, exist_ok=True)
        return True

    def rename(self, path: str, target: str) -> None:
        if os.path.lexists(_local(target)):  # a folder would take the place of an empty one
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), target)
        _local(path).rename(_local(target))

    def renames_at_once(self, path: str) -> bool:
        return True

    def delete(self, path: str, *, whole: bool = True) -> bool:
        local = _local(path)
        if not os.path.lexists(local):
            return False
        if local.is_symlink() or not local.is_dir():
            local.unlink()
        elif whole:
            try:
                shutil.rmtree(local)
            except OSError as error:  # what comes into it meanwhile goes with the next look
                if error.errno not in (errno.ENOTEMPTY, errno.ENOENT):
                    raise
        else:
            local.rmdir()
        return True

    def delete_at_exit(self, path: str) -> None:
        if self._java is not None:
            self._java.delete_at_exit(path)

    def keep_at_exit(self, path: str) -> None:
        if self._java is not None:
            self._java.keep_at_exit(path)


def _local(path: str) -> Path:
    local = local_path(path)
    assert local is not None, path
    return local


def _entry(path: Path) -> Entry:
    status = path.lstat()
    size = status.st_size if stat.S_ISREG(status.st_mode) else NO_PLAIN_FILE
    is_folder = stat.S_ISDIR(status.st_mode)
    return Entry(f"{SCHEME}{path}", is_folder, 0 if is_folder else size)


def _write(path: str, text: str, mode: str) -> None:
    local = _local(path)
    local.parent.mkdir(parents=True, exist_ok=True)
    with local.open(mode) as file:
        file.write(text.encode())
