"""Folders and small files as the tables need them, wherever they are.

A path is text with its scheme, such as ``file:/data/plan`` or ``s3a://bucket/plan``.
"""

import re
from typing import NamedTuple, Protocol

from pyspark.errors import PySparkException

from kassign_spark.errors import InputError
from kassign_spark.limits import TEXT_FILE_BYTES
from kassign_spark.spark.sessions import Py4JJavaError

FILE_ERRORS = (OSError, Py4JJavaError, PySparkException)
"""Whatever a file system raises that does not do what it was asked to."""
PART_PREFIX = "part-"
"""The beginning of the names of the files that Spark writes."""
NO_PLAIN_FILE = -1
"""The size of a link, a pipe or a device: no run writes one."""


class Entry(NamedTuple):
    """What is in a folder.

    Attributes:
        path: with its scheme.
        is_folder: and no link to one.
        size: in bytes; 0 for a folder, ``NO_PLAIN_FILE`` if it is neither.
    """

    path: str
    is_folder: bool
    size: int


class Files(Protocol):
    """A file system. Each function raises one of ``FILE_ERRORS``."""

    def exists(self, path: str) -> bool:
        """Return whether there is a file or a folder."""

    def is_file(self, path: str) -> bool:
        """Return whether there is a file."""

    def entries(self, folder: str) -> dict[str, Entry]:
        """Return everything in a folder, by name; nothing where there is no folder."""

    def read(self, path: str, count: int) -> bytes:
        """Return the first bytes of a file.

        Raises:
            InputError: it is a pipe, a socket or a device.
        """

    def write(self, path: str, text: str) -> None:
        """Write a small file, and the folders above it; what was there is replaced."""

    def write_new(self, path: str, text: str) -> None:
        """Write a small file; fail where there is one, as far as the file system can tell."""

    def make_folder(self, path: str) -> bool:
        """Make a folder and those above it; return whether it is there."""

    def rename(self, path: str, target: str) -> None:
        """Rename a folder; fail where something is in the new place."""

    def renames_at_once(self, path: str) -> bool:
        """Return whether a folder is renamed in one step there."""

    def delete(self, path: str, *, whole: bool = True) -> bool:
        """Delete a file or a folder, the latter only if it is empty or ``whole``.

        Returns:
            Whether there was one.
        """

    def delete_at_exit(self, path: str) -> None:
        """Delete a folder when Java ends, where this process sees no end of its own."""

    def keep_at_exit(self, path: str) -> None:
        """Undo ``delete_at_exit``."""


def child(folder: str, name: str) -> str:
    """Return the path of that name in a folder."""
    return f"{folder.rstrip('/')}/{name}"


def name_of(path: str) -> str:
    """Return the last name of a path."""
    return path.rpartition("/")[2]


def parent(path: str) -> str | None:
    """Return the folder that a path lies in; None: it is the root of its file system."""
    start, _, name = path.rpartition("/")
    if not name or start.endswith("/"):  # s3a://bucket has no folder above it
        return None
    is_root = not start or start.endswith(":") or start.rpartition("/")[0].endswith("/")
    return f"{start}/" if is_root else start


def pattern_of(path: str) -> str:
    """Return the pattern that matches one path alone, for Spark's readers, which take patterns."""
    return re.sub(r"([][{}*?\\])", r"\\\1", path)


def read_small(files: Files, path: str) -> bytes | None:
    """Read a small file, or a folder of its parts, as Spark writes one; None: there is neither.

    Raises:
        InputError: it has more than ``TEXT_FILE_BYTES``, or as ``Files.read``.
        FILE_ERRORS: it cannot be read.
    """
    parts = [
        entry.path for name, entry in files.entries(path).items() if name.startswith(PART_PREFIX)
    ]
    if not parts and not files.is_file(path):
        return None
    content = b"".join(files.read(part, TEXT_FILE_BYTES + 1) for part in sorted(parts) or [path])
    if len(content) > TEXT_FILE_BYTES:
        raise InputError(f"file {path} has more than {TEXT_FILE_BYTES:,} bytes")
    return content
