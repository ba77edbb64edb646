"""The list of files that a run leaves in its folder: what is not on it belongs to somebody else."""

import json
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from kassign_spark.tables.hadoop import child, entries, local_path, read_file, write_file

MARK = "_kassign_spark"
"""The file with the list; Spark overlooks names with ``_``.

A JSON object: ``files``, the size of each file below the folder by its path, and 0 of each folder,
whose path ends with ``/``; and ``snapshot``, what a plan was made of.
"""
_NO_PLAIN_FILE = -1
"""The size of a link, a pipe or a device: no run writes one."""


def read_mark(files: Any, folder: Any) -> dict[str, Any] | None:
    """Return what the mark of a folder says; None: there is none, or it is not one of ours.

    An earlier version left an empty mark, or one without ``files``.

    Raises:
        Py4JJavaError: it cannot be read.
    """
    mark = child(folder, MARK)
    if not files.exists(mark) or files.getFileStatus(mark).isDirectory():
        return None
    try:
        content = json.loads(read_file(files, mark) or "{}")
    except (ValueError, RecursionError):
        return None
    return content if isinstance(content, dict) else None


def write_mark(files: Any, folder: Any, content: dict[str, Any]) -> None:
    """Write the mark of a folder, which is made where it does not exist.

    Raises:
        OSError, Py4JJavaError: it cannot be written.
    """
    mark, text = child(folder, MARK), json.dumps(content)
    local = local_path(mark)
    if local is None:
        write_file(files.create(mark, True), text)
    else:  # Hadoop would put a file with its checksum beside it
        local.parent.mkdir(parents=True, exist_ok=True)
        local.write_text(text)


def write_list(files: Any, folder: Any) -> None:
    """Note what is in a folder, when all is written.

    Raises:
        OSError, Py4JJavaError: the folder cannot be read, or the list not written.
    """
    sizes = dict(_sizes(files, folder))
    sizes.pop(MARK, None)
    write_mark(files, folder, {**(read_mark(files, folder) or {}), "files": sizes})


def listed_sizes(files: Any, folder: Any) -> dict[str, Any] | None:
    """Return the list of a folder; None: it has none."""
    sizes = (read_mark(files, folder) or {}).get("files")
    return sizes if isinstance(sizes, dict) else None


def foreign_names(
    files: Any, folder: Any, passed_over: Callable[[str], bool] = lambda _: False
) -> list[str]:
    """Name what is in a folder and not on its list, or has another size there.

    Args:
        files: the file system.
        folder: without a list, all that it holds is foreign.
        passed_over: names in the folder that are not looked at.

    Raises:
        OSError, Py4JJavaError: the folder cannot be read.
    """
    listed = listed_sizes(files, folder)
    known, names = listed or {}, []
    for name, size in sorted(_sizes(files, folder, passed_over)):
        if name == MARK and listed is not None:
            continue
        if name not in known:
            names.append(name)
        elif known[name] != size:
            names.append(f"{name}, whose size has changed")
    return names


def _sizes(
    files: Any, folder: Any, passed_over: Callable[[str], bool] = lambda _: False
) -> Iterator[tuple[str, int]]:
    """The size of everything below a folder, by its path there."""
    for name, inner_folder, size in _children(files, folder):
        if passed_over(name):
            continue
        if inner_folder is None:
            yield name, size
            continue
        yield f"{name}/", 0
        for inner, inner_size in _sizes(files, inner_folder):
            yield f"{name}/{inner}", inner_size


def _children(files: Any, folder: Any) -> Iterator[tuple[str, Any | None, int]]:
    """List a folder: names, whether each is a folder, sizes."""
    local = folder if isinstance(folder, Path) else local_path(folder)
    if local is None:
        for name, status in entries(files, folder).items():
            yield name, status.getPath() if status.isDirectory() else None, int(status.getLen())
        return
    for path in (
        local.iterdir() if local.is_dir() else ()
    ):  # Hadoop passes over checksums, and links that lead nowhere
        stat_result = path.lstat()
        is_file = stat.S_ISREG(stat_result.st_mode)
        is_folder = stat.S_ISDIR(stat_result.st_mode)
        yield (
            path.name,
            path if is_folder else None,
            stat_result.st_size if is_file else _NO_PLAIN_FILE,
        )
