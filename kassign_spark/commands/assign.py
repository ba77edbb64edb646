"""``kassign-spark assign``: plan every group of a snapshot, check and measure the plan."""

import argparse
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from kassign_spark.assignors import ASSIGNORS
from kassign_spark.commands.common import (
    Facts,
    Outcome,
    add_output,
    add_show,
    announced,
    new_parser,
    refuse_output_over_input,
    top,
)
from kassign_spark.display import cell, group_name, plural, printable, table, topic_ranges
from kassign_spark.measures.balance import balance
from kassign_spark.measures.holdings import holdings
from kassign_spark.measures.violations import violations
from kassign_spark.pipeline import assign
from kassign_spark.schemas import (
    ASSIGNMENT,
    GROUP_KEY,
    MEMBERS,
    OWNED,
    conform,
    has_cluster_id,
    restore_cluster_id,
)
from kassign_spark.session import open_session
from kassign_spark.settings import Settings, load_settings
from kassign_spark.tables import (
    Snapshot,
    new_folder,
    read_snapshot,
    read_table,
    write_table,
)

_COLUMNS = {
    "assignor": "assignor",
    "members": "member_count",
    "partitions": "partition_count",
    "min": "min_assigned",
    "max": "max_assigned",
    "mean": "mean_assigned",
    "stddev": "stddev_assigned",
    "kept": "kept_count",
    "moved": "moved_count",
}


def add_parser(commands: Any) -> None:
    """Add the command to the parser."""
    parser = new_parser(
        commands,
        "assign",
        summary="plan what every group of a snapshot would own",
        description="Assign the partitions of every group of a snapshot as each group's assignor\n"
        "does in one rebalance; check and measure the plan and write it to a new folder.\n"
        "Exits 0 when done, 1 when the plan violates a rule, 2 on an error.",
        example="kassign-spark assign examples/fleet --output build/plan --assignor range",
    )
    parser.add_argument("snapshot", metavar="SNAPSHOT", help="folder with members, topics, owned")
    add_output(parser, "the tables assignment and balance", required=True)
    parser.add_argument(
        "--assignor",
        choices=sorted(ASSIGNORS),
        help="one assignor for all groups (default: each group's own)",
    )
    parser.add_argument("--settings", metavar="FILE.toml", help="settings, as in conf/settings.toml")
    add_show(parser, "print at most N groups, members of each, and topics of each member")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> Outcome:
    """Run the command."""
    settings = load_settings(args.settings) if args.settings else Settings()
    with open_session(verbose=args.verbose) as spark, announced(f"assigning {args.snapshot}"):
        refuse_output_over_input(spark, args.output, args.snapshot)
        with new_folder(spark, args.output, overwrite=args.overwrite) as folder:
            snapshot = read_snapshot(args.snapshot, spark)
            facts = _plan(spark, snapshot, folder, args, settings)
    return Outcome(1 if facts["violation_count"] else 0, facts, _lines(facts))


def _plan(
    spark: SparkSession,
    snapshot: Snapshot,
    folder: str,
    args: argparse.Namespace,
    settings: Settings,
) -> Facts:
    members, topics, owned = snapshot
    assignment = assign(members, topics, owned, assignor=args.assignor, settings=settings)
    write_table(assignment, folder, "assignment", args.format)
    written = read_table(spark, folder, ASSIGNMENT)
    if not written.columns:  # JSON lines without a line
        written = assignment.limit(0)
    of_groups = _assignors(members, args.assignor)
    withholding = _withholding(members, owned, of_groups)
    found = top(
        violations(written, members, topics, withholding),
        ["group_id", "rule", "topic", "partition"],
        args.show,
        {"count": F.count(F.lit(1))},
    )
    if found.measured["count"]:
        write_table(
            violations(written, members, topics, withholding), folder, "violations", args.format
        )
    measured = _measured(written, members, owned, of_groups)
    write_table(measured, folder, "balance", args.format)
    worst = top(
        measured,
        [
            (F.col("max_assigned") - F.col("min_assigned")).desc(),
            F.col("stddev_assigned").desc(),
            *(name for name in GROUP_KEY if name in measured.columns),
        ],
        args.show,
        {
            "groups": F.count(F.lit(1)),
            "members": F.coalesce(F.sum("member_count"), F.lit(0)),
            "partitions": F.coalesce(F.sum("partition_count"), F.lit(0)),
        },
    )
    return {
        "snapshot": args.snapshot,
        "output": args.output,
        "group_count": worst.measured["groups"],
        "member_count": worst.measured["members"],
        "partition_count": worst.measured["partitions"],
        "violation_count": found.measured["count"],
        "violations": found.rows,
        "notes": _notes(members, topics, of_groups),
        "balance": worst.rows,
        "assignments": _assignments(written, members, worst.rows, args.show),
        "groups_not_shown": worst.measured["groups"] - len(worst.rows),
    }
