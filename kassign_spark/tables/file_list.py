"""The list of files that a run leaves in its folder; any other file there is not ours."""

import json
from collections.abc import Callable, Iterator
from typing import Any

from kassign_spark.tables.files import Files, child, read_small

MARK = "_kassign_spark"
"""The file with the list; Spark overlooks names with ``_``.

A JSON object: ``files``, the size of each file below the folder by its path, and 0 of each folder,
whose path ends with ``/``; and ``snapshot``, what a plan was made of.
"""


def read_mark(files: Files, folder: str) -> dict[str, Any] | None:
    """Return what the mark of a folder says; None: there is none, or it is not one of ours.

    An earlier version left an empty mark, or one without ``files``.

    Raises:
        FILE_ERRORS: it cannot be read.
    """
    text = read_small(files, child(folder, MARK))
    if text is None:
        return None
    try:
        content = json.loads(text or "{}")
    except (ValueError, RecursionError):
        return None
    return content if isinstance(content, dict) else None


def write_mark(files: Files, folder: str, content: dict[str, Any]) -> None:
    """Write the mark of a folder, which is made where it does not exist.

    Raises:
        FILE_ERRORS: it cannot be written.
    """
    files.write(child(folder, MARK), json.dumps(content))


def write_list(files: Files, folder: str) -> None:
    """Note what is in a folder, when all is written.

    Raises:
        FILE_ERRORS: the folder cannot be read, or the list not written.
    """
    sizes = dict(_sizes(files, folder))
    sizes.pop(MARK, None)
    write_mark(files, folder, {**(read_mark(files, folder) or {}), "files": sizes})


def listed_sizes(files: Files, folder: str) -> dict[str, Any] | None:
    """Return the list of a folder; None: it has none."""
    sizes = (read_mark(files, folder) or {}).get("files")
    return sizes if isinstance(sizes, dict) else None


def foreign_names(
    files: Files, folder: str, passed_over: Callable[[str], bool] = lambda _: False
) -> list[str]:
    """Name what is in a folder and not on its list, or has another size there.

    Args:
        files: the file system.
        folder: without a list, all that it holds is foreign.
        passed_over: names in the folder that are not looked at.

    Raises:
        FILE_ERRORS: the folder cannot be read.
    """
    listed = listed_sizes(files, folder)
    sizes, names = listed or {}, []
    for name, size in sorted(_sizes(files, folder, passed_over)):
        if name == MARK and listed is not None:
            continue
        if name not in sizes:
            names.append(name)
        elif sizes[name] != size:
            names.append(f"{name}, whose size has changed")
    return names


def _sizes(
    files: Files, folder: str, passed_over: Callable[[str], bool] = lambda _: False
) -> Iterator[tuple[str, int]]:
    """Return the size of everything below a folder, by its path there."""
    for name, entry in files.entries(folder).items():
        if passed_over(name):
            continue
        if not entry.is_folder:
            yield name, entry.size
            continue
        yield f"{name}/", 0
        for inner, inner_size in _sizes(files, entry.path):
            yield f"{name}/{inner}", inner_size
