"""``kassign-spark explain``: which assignor made what is observed, or which comes nearest."""

import argparse
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from kassign_spark.commands.common import (
    Facts,
    Outcome,
    add_output,
    add_show,
    add_snapshot,
    first_rows,
    new_parser,
    read_assigned,
    session_reading,
)
from kassign_spark.commands.documents import GROUP, record, rows
from kassign_spark.conforming import has_cluster_id
from kassign_spark.display import cell, group_name, not_shown, plural, printable, table
from kassign_spark.errors import InputError
from kassign_spark.plans.predict import PREDICTED
from kassign_spark.rounds import hold
from kassign_spark.schemas import ASSIGNMENT, GROUP_KEY
from kassign_spark.tables.snapshots import (
    Snapshot,
    empty_table,
    new_folder,
    read_snapshot,
    write_table,
)
from kassign_spark.whatif.explain import explain

DOCUMENT = record(
    "snapshot string, assigned string?, output string?, group_count int, explained_count int, "
    "groups_not_shown int",
    by_assignor=record(", ".join(f"{name} int" for name in PREDICTED)),
    groups=rows(f"{GROUP}, assignor string?, differing_count int, detail string?"),
)
"""What ``--json`` prints."""


def add_parser(commands: Any) -> None:
    """Add the command to the parser."""
    parser = new_parser(
        commands,
        "explain",
        summary="say which assignor made an assignment, or comes nearest to it",
        description="Say for every group which of Kafka's assignors gives the assignment that is\n"
        "observed, and whose stale claims decided, or which one comes nearest and what differs.\n"
        "SNAPSHOT is the state before, ASSIGNED the plan (table assignment) or snapshot (table\n"
        "owned) after. Without ASSIGNED it is what the members of SNAPSHOT own: would the\n"
        "assignor leave it as it is?",
        finds="a group's assignment is not explained",
        document=DOCUMENT,
        example="kassign-spark explain examples/fleet",
    )
    add_snapshot(parser)
    parser.add_argument(
        "assigned", metavar="ASSIGNED", nargs="?", help="folder of a plan or a snapshot"
    )
    add_output(parser, "the table explained")
    add_show(parser, "print at most N groups")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> Outcome:
    """Run the command."""
    inputs = [path for path in (args.snapshot, args.assigned) if path is not None]
    with session_reading(args, f"explaining {inputs[-1]}", *inputs) as spark:
        snapshot = read_snapshot(args.snapshot, spark)
        observed = _observed(spark, snapshot, args)
        by_assignor = {name: F.count_if(F.col("assignor") == name) for name in PREDICTED}
        explained, counted = hold(
            explain(observed, *snapshot), {"groups": F.count(F.lit(1)), **by_assignor}
        )
        if args.output is not None:
            with new_folder(spark, args.output, overwrite=args.overwrite) as folder:
                write_table(explained, folder, "explained", args.format)
        most = [F.col("assignor").isNotNull(), F.col("differing_count").desc()]
        groups = first_rows(explained, [*most, *GROUP_KEY], args.show)
    facts = {
        "snapshot": args.snapshot,
        "assigned": args.assigned,
        "output": args.output,
        "group_count": counted["groups"],
        "explained_count": sum(counted[name] for name in PREDICTED),
        "by_assignor": {name: counted[name] for name in PREDICTED},
        "groups_not_shown": counted["groups"] - len(groups),
        "groups": groups,
    }
    unexplained = facts["explained_count"] < facts["group_count"]
    return Outcome(1 if unexplained else 0, facts, _lines(facts))


def _observed(spark: SparkSession, snapshot: Snapshot, args: argparse.Namespace) -> DataFrame:
    if args.assigned is None:
        if snapshot.owned is None:
            raise InputError(
                f"folder {args.snapshot}: has no table owned, so nothing is observed: name ASSIGNED"
            )
        return snapshot.owned
    observed = read_assigned(spark, args.assigned)
    if observed.columns:
        return observed
    return empty_table(spark, ASSIGNMENT, cluster_id=has_cluster_id(snapshot.members))


def _lines(facts: Facts) -> list[str]:
    explained, count = facts["explained_count"], facts["group_count"]
    by = ", ".join(f"{number:,} {name}" for name, number in facts["by_assignor"].items() if number)
    lines = [
        f"{plural(count, 'group')}: {explained:,} explained{f' ({by})' if by else ''}, "
        f"{count - explained:,} not"
    ]
    if facts["groups"]:
        rows = (
            [group_name(row), row["assignor"], row["differing_count"], cell(row["detail"])]
            for row in facts["groups"]
        )
        lines += ["", *table(["group", "assignor", "differing", "detail"], rows)]
    lines += not_shown(facts["groups_not_shown"], "group", of=count)
    if facts["output"] is not None:
        lines += ["", f"the table explained is in {printable(facts['output'])}"]
    return lines
