"""A folder of results appears whole or not at all, and only a folder of ours is ever replaced.

Everything is written beside its place under a hidden name, which is then renamed.
"""

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from pyspark.sql import SparkSession

from kassign_spark.errors import KassignError, OutputError
from kassign_spark.schemas import SNAPSHOT_TABLES
from kassign_spark.sessions import Py4JError, Py4JJavaError, is_connect
from kassign_spark.spark_errors import spark_message
from kassign_spark.tables.leftovers import REPLACED, WRITING, clear_leftovers, hidden_stem

TABLE_NAMES = frozenset(table.name for table in SNAPSHOT_TABLES)
TABLE_NAMES |= {"assignment", "balance", "violations"}
TABLE_NAMES |= {"problems", "diff", "steps", "listener", "summary", "verdicts", "comparison"}
TABLE_NAMES |= {"vertices", "edges", "bottlenecks", "advice", "touched", "explained", "events"}
TABLE_NAMES |= {"sweep", "delivery", "tradeoff", "findings", "coordinators", "load", "records"}
TABLE_NAMES |= {"rebalances", "storms"}
"""Tables that a folder of ours may hold."""
FILE_NAMES = frozenset({"graph.dot", "graph.graphml"})
"""Plain files likewise."""

_LOOKS, _LOOK_SECONDS = 5, 0.1

MARK = "_kassign_spark"
"""An empty file by which a folder is known to be ours; Spark overlooks names with ``_``."""


@contextmanager
def new_folder(spark: SparkSession, path: str, *, overwrite: bool = False) -> Iterator[str]:
    """Give a folder to write into, which becomes ``path`` when all went well.

    Args:
        spark: the session.
        path: the folder, of any file system that Spark knows.
        overwrite: replace a folder that this package wrote, and that holds nothing else since.

    Raises:
        OutputError: ``path`` exists (or, with ``overwrite``, is not such a folder), cannot be
            written, or another run took it in the meantime.
    """
    if is_connect(spark):
        raise OutputError(
            f"output {path}: a session of Spark Connect cannot put a folder in its place whole; "
            "name tables of a catalog (table:CATALOG.SCHEMA), or run without Spark Connect"
        )
    target, files = _locate(spark, path)
    rename = _renaming(spark, files)
    with _explained(path):
        clear_leftovers(files, target, rename)
        _check_target(files, target, path, overwrite)
        missing = _missing_parents(files, target)
        stem = hidden_stem(target.getName())
        writing, replaced = (
            _child(spark, target.getParent(), f"{stem}.{purpose}")
            for purpose in (WRITING, REPLACED)
        )
    done = False
    try:
        with _explained(path):
            if not files.mkdirs(writing):
                raise OutputError(f"output {path}: {target.getParent()} cannot be written")
            # For an end that Java sees and Python does not, as SIGTERM to spark-submit.
            files.deleteOnExit(writing)
            files.create(_child(spark, writing, MARK)).close()
        yield writing.toString()
        with _explained(path):
            # From here on a run that ends in the middle leaves both folders: so the next one can
            # tell that the old one belongs in its place.
            files.cancelDeleteOnExit(writing)
            _replace(files, rename, writing, target, replaced if overwrite else None, path)
        done = True
    finally:
        if not done:
            # What was asked of Java before an interrupt may still be at work there, and make the
            # folder anew.
            looks = 0 if isinstance(sys.exception(), KassignError) else _LOOKS

            # In a thread of its own, which has its own connection to Java: an interrupt leaves the
            # one of this thread in the middle of an answer.
            def tidy() -> None:
                with suppress(Py4JError):
                    if files.exists(replaced) and not files.exists(target):
                        rename(replaced, target)
                    files.delete(writing, True)
                    for _ in range(looks):
                        time.sleep(_LOOK_SECONDS)
                        files.delete(writing, True)
                    files.cancelDeleteOnExit(writing)
                    for parent in missing:  # if they are empty
                        files.delete(parent, False)

            tidying = threading.Thread(target=tidy)
            tidying.start()
            tidying.join()


def same_or_inside(spark: SparkSession, path: str, folder: str) -> bool:
    """Whether ``path`` is ``folder`` or lies in it."""
    inner, _ = _locate(spark, path)
    outer, _ = _locate(spark, folder)
    return f"{inner.toUri()}/".startswith(f"{outer.toUri()}/")


@contextmanager
def _explained(path: str) -> Iterator[None]:
    try:
        yield
    except Py4JJavaError as error:
        raise OutputError(f"output {path}: {spark_message(error)}") from None


def _locate(spark: SparkSession, path: str) -> tuple[Any, Any]:
    """The path, absolute, and its file system."""
    if not path.strip():
        raise OutputError("output: the name of the folder is empty")
    with _explained(path):
        given = _hadoop(spark).Path(path)
        files = given.getFileSystem(spark.sparkContext._jsc.hadoopConfiguration())
        target = files.makeQualified(given)
    if target.getParent() is None:
        raise OutputError(f"output {path}: is the root of its file system; name a new folder")
    return target, files


def _hadoop(spark: SparkSession) -> Any:
    jvm: Any = spark._jvm
    return jvm.org.apache.hadoop.fs


def _child(spark: SparkSession, folder: Any, name: str) -> Any:
    return _hadoop(spark).Path(folder, name)


def _missing_parents(files: Any, target: Any) -> list[Any]:
    """Folders above the target that are still to be made, the innermost first."""
    missing = []
    parent = target.getParent()
    while parent is not None and not files.exists(parent):
        missing.append(parent)
        parent = parent.getParent()
    return missing


def _check_target(files: Any, target: Any, path: str, overwrite: bool) -> None:
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
    entries = {status.getPath().getName(): status for status in files.listStatus(target)}
    if MARK not in entries:
        return sorted(entries) or ["nothing at all"]
    plain = {MARK, *FILE_NAMES}
    ours = TABLE_NAMES | plain | {f".{name}.crc" for name in plain}
    foreign = sorted(set(entries) - ours)
    for name in sorted(TABLE_NAMES & set(entries)):
        inside = [each.getPath().getName() for each in files.listStatus(entries[name].getPath())]
        foreign += sorted(
            f"{name}/{each}"
            for each in inside
            if not each.removeprefix(".").startswith(("part-", "_SUCCESS"))
        )
    return foreign


def _renaming(spark: SparkSession, files: Any) -> Callable[[Any, Any], None]:
    """Rename; unlike FileSystem.rename, FileContext's refuses a target that exists."""
    gateway: Any = spark.sparkContext._gateway
    no_options = gateway.new_array(_hadoop(spark).Options.Rename, 0)

    def rename(source: Any, target: Any) -> None:
        context = _hadoop(spark).FileContext.getFileContext(files.getUri(), files.getConf())
        context.rename(source, target, no_options)

    return rename


def _replace(
    files: Any,
    rename: Callable[[Any, Any], None],
    writing: Any,
    target: Any,
    replaced: Any | None,
    path: str,
) -> None:
    """Put a folder in its place; what is there goes to ``replaced`` for a moment, if that is given.

    Raises:
        OutputError: another run was faster.
        Py4JJavaError: it cannot be put there; what was there is in ``replaced`` then.
    """
    if replaced is not None:
        try:
            rename(target, replaced)
        except Py4JJavaError:  # nothing there, or another run has just moved it
            if files.exists(target):
                raise
    try:
        rename(writing, target)
        # A local file system looks and renames in two steps: where another run's folder comes in
        # between, this one goes into it.
        lost = bool(files.delete(target.suffix(f"/{writing.getName()}"), True))
    except Py4JJavaError:
        lost = files.exists(target)
        if not lost:
            raise
    if replaced is not None:
        files.delete(replaced, True)
    if lost:
        raise OutputError(
            f"output {path}: another run has written it meanwhile; this run's result is dropped"
        )
