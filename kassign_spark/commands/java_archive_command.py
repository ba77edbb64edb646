"""``kassign-spark java-archive``: an archive of Java's classes, for commands that start sooner."""

import argparse
import os
import tempfile
from pathlib import Path

from pyspark.sql import SparkSession

from kassign_spark.commands.common import Outcome, announced, has_other_spark
from kassign_spark.commands.documents import record
from kassign_spark.commands.parser import About, Parser
from kassign_spark.display import printable
from kassign_spark.errors import KassignError
from kassign_spark.launch.command_session import end_java, open_session
from kassign_spark.launch.java import archive_path, archiving_options
from kassign_spark.measures.balance import balance
from kassign_spark.plans.assign import assign
from kassign_spark.plans.rebalance import rebalance
from kassign_spark.tables.snapshots import Snapshot, read_snapshot, write_snapshot, write_table
from kassign_spark.validation.validate import validate

DOCUMENT = record("archive string, bytes int?")

_MEMBERS = "group_id string, member_id string, topics array<string>, generation bigint"
ABOUT = About(
    description="Write an archive of the classes that Java loads for a command, about 170 MB.\n"
    "All later commands with this Java and this PySpark start from it, some seconds sooner.\n"
    "It is in $XDG_CACHE_HOME/kassign-spark, or else in ~/.cache/kassign-spark.",
    example="kassign-spark java-archive --json",
)


def add_options(parser: Parser) -> None:
    """Add what it takes."""
    parser.add_argument("--remove", action="store_true", help="delete the archive instead")


def run(args: argparse.Namespace) -> Outcome:
    """Run the command."""
    path = archive_path()
    if args.remove:
        was_there = path.exists()
        path.unlink(missing_ok=True)
        sentence = "removed" if was_there else "there is none:"
        return Outcome(
            0, {"archive": str(path), "bytes": None}, [f"{sentence} {printable(str(path))}"]
        )
    if has_other_spark():
        raise KassignError(
            "an archive is for the Java that commands start themselves; run "
            "kassign-spark java-archive without spark-submit"
        )
    with announced("writing an archive of Java's classes"):
        _write(path, args.verbose)
    size = path.stat().st_size
    line = f"{size / 1e6:.0f} MB in {printable(str(path))}: commands start sooner from now on"
    return Outcome(0, {"archive": str(path), "bytes": size}, [line])


def _write(path: Path, verbose: bool) -> None:
    """Write the archive: it appears whole or not at all."""
    unfinished = path.with_suffix(f".{os.getpid()}.jsa")
    options = archiving_options(unfinished)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise KassignError(f"folder {path.parent}: cannot be made: {error.strerror}") from None
    try:
        with tempfile.TemporaryDirectory() as folder:
            try:
                with open_session(folder, verbose=verbose, java_options=options) as session:
                    _load_classes(session, folder)
            finally:
                end_java()
        if not unfinished.is_file():
            raise KassignError(
                f"Java wrote no archive to {path.parent}: it needs 200 MB there, and no folder "
                "with files on its class path (HADOOP_CONF_DIR, SPARK_DIST_CLASSPATH)"
            )
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


def _load_classes(session: SparkSession, folder: str) -> None:
    """Load the classes that most commands use."""
    member_rows = [("group", member, ["orders", "payments"], 1) for member in ("a", "b")]
    snapshot = Snapshot(
        members=session.createDataFrame(member_rows, _MEMBERS),
        topics=session.createDataFrame(
            [("orders", 3), ("payments", 2)], "topic string, num_partitions int"
        ),
        owned=session.createDataFrame(
            [("group", "a", "orders", 0)],
            "group_id string, member_id string, topic string, partition int",
        ),
    )
    write_snapshot(snapshot, f"{folder}/snapshot")
    members, topics, owned = read_snapshot(f"{folder}/snapshot", session)[:3]
    for name in ("sticky", "range"):
        plan = assign(members, topics, owned, assignor=name)
        write_table(plan, folder, f"plan-{name}")
        write_table(balance(plan, members, owned, topics), folder, f"balance-{name}", "json")
    write_table(rebalance(members, topics, owned, assignor="sticky"), folder, "rebalance", "csv")
    validate(members, topics, owned).collect()
