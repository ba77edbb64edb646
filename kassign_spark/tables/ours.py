"""What in a folder is ours: no other folder is ever replaced."""

from typing import Any

from kassign_spark.errors import OutputError
from kassign_spark.schemas import SNAPSHOT_TABLES
from kassign_spark.tables.folder_runs import CURRENT, named_run, owner_of
from kassign_spark.tables.hadoop import child, entries

_RESULTS = (
    "assignment balance violations problems diff steps listener summary verdicts comparison "
    "vertices edges bottlenecks advice touched explained events sweep delivery tradeoff findings "
    "coordinators load records rebalances storms"
)
TABLE_NAMES = frozenset([*(table.name for table in SNAPSHOT_TABLES), *_RESULTS.split()])
"""Tables that a folder of ours may hold."""
FILE_NAMES = frozenset({"graph.dot", "graph.graphml"})
"""Plain files likewise."""

MARK = "_kassign_spark"
"""A file by which a folder is known to be ours; Spark overlooks names with ``_``."""


def check_target(files: Any, target: Any, path: str, *, overwrite: bool) -> None:
    """Refuse a target that is there and not to be replaced, or not ours.

    Raises:
        OutputError: it says why.
    """
    if not files.exists(target):
        return
    if not overwrite:
        raise OutputError(f"output {path}: exists; name a new folder, or say --overwrite")
    if files.getFileStatus(target).isFile():
        raise OutputError(f"output {path}: is a file and is not overwritten; name a new folder")
    foreign = _foreign_names(files, target)
    if foreign:
        raise OutputError(
            f"output {path}: holds what kassign-spark did not write ({', '.join(foreign[:3])}), "
            "so it is not overwritten; name another folder"
        )


def _foreign_names(files: Any, target: Any) -> list[str]:
    """What in a folder is not ours, by name; without our mark nothing is."""
    found = entries(files, target)
    run = named_run(files, target)
    if run is not None:
        held = _foreign_names(files, child(target, run)) if run in found else []
        marks = {CURRENT, f".{CURRENT}.crc"}
        beside = {name for name in found if name not in marks and owner_of(name) is None}
        # Beside a marker there may be what it took the place of.
        plain = _foreign_tables(files, found, beside) if MARK in beside else sorted(beside)
        return plain + [f"{run}/{name}" for name in held]
    if MARK not in found:
        return sorted(found) or ["nothing at all"]
    return _foreign_tables(files, found, set(found))


def _foreign_tables(files: Any, found: dict[str, Any], names: set[str]) -> list[str]:
    foreign = sorted(name for name in names if not is_ours(name))
    for name in sorted(TABLE_NAMES & names):
        foreign += sorted(
            f"{name}/{each}"
            for each in entries(files, found[name].getPath())
            if not each.removeprefix(".").startswith(("part-", "_SUCCESS"))
        )
    return foreign


def is_ours(name: str) -> bool:
    """Whether something in a folder with our mark has a name that we give."""
    plain = {MARK, *FILE_NAMES}
    return name in TABLE_NAMES | plain | {f".{each}.crc" for each in plain}
