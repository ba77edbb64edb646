"""Check that a folder may be replaced: one of our runs wrote it and nobody changed it since."""

from kassign_spark.errors import OutputError
from kassign_spark.tables.file_list import foreign_names, listed_sizes, read_mark
from kassign_spark.tables.files import Files, child
from kassign_spark.tables.folder_runs import CURRENT, named_run, owner_of

_MARKERS = frozenset({CURRENT, f".{CURRENT}.crc"})


def check_target(
    files: Files, target: str, path: str, *, overwrite: bool, runs_stay: bool = False
) -> None:
    """Refuse a target that is there and not to be replaced, or not ours.

    ``runs_stay``: the folders of other runs in it are not touched, so they are not looked at.

    Raises:
        OutputError: it says why.
        FILE_ERRORS: it cannot be read.
    """
    if not files.exists(target):
        return
    if not overwrite:
        raise OutputError(f"output {path}: exists; name a new folder, or say --overwrite")
    if files.is_file(target):
        raise OutputError(f"output {path}: is a file and is not overwritten; name a new folder")
    check_contents(files, target, path, runs_stay=runs_stay)


def check_contents(files: Files, target: str, path: str, *, runs_stay: bool = False) -> None:
    """Refuse a folder that holds anything that is not on the list of the run that wrote it.

    Raises:
        OutputError: it names what is not.
        FILE_ERRORS: the folder cannot be read.
    """
    run = named_run(files, target)
    folder = target if run is None else child(target, run)
    if read_mark(files, folder) is not None and listed_sizes(files, folder) is None:
        raise OutputError(
            f"output {path}: is of an earlier version of kassign-spark, which left no list of its "
            "files, so it is not overwritten; remove it yourself, or name another folder"
        )

    def passed_over(name: str) -> bool:
        is_marker = run is not None and name in {run, *_MARKERS}
        return is_marker or (runs_stay and owner_of(name) is not None)

    foreign = foreign_names(files, target, passed_over)
    if run is not None:
        foreign += [f"{run}/{name}" for name in foreign_names(files, folder)]
    if not foreign and not files.entries(target):
        foreign = ["nothing at all"]
    if foreign:
        raise OutputError(
            f"output {path}: holds what kassign-spark did not write ({', '.join(foreign[:3])}), "
            "so it is not overwritten; name another folder"
        )
