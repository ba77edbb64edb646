"""``kassign-spark explain``: which assignor made what is observed, or which comes nearest."""

import argparse

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from kassign_spark.commands.choosing import named_arguments
from kassign_spark.commands.common import (
    Facts,
    Outcome,
    first_rows,
    read_assigned,
    session_reading,
    write_tables,
)
from kassign_spark.commands.documents import GROUP, record, rows
from kassign_spark.commands.parser import About, Parser
from kassign_spark.conforming import has_cluster_id
from kassign_spark.display import Columns, group_name, lay_out_first_rows, plural, written
from kassign_spark.errors import InputError
from kassign_spark.schemas import GROUP_KEY
from kassign_spark.spark.iteration import materialize
from kassign_spark.tables.snapshots import Snapshot, read_snapshot
from kassign_spark.whatif.explain import explain
from kassign_spark.whatif.explained_variants import NAMES

_COLUMNS: Columns = {
    "group": group_name,
    "assignor": "assignor",
    "differing": "differing_count",
    "detail": "detail",
}
_ASSIGNORS = tuple(dict.fromkeys(NAMES))
DOCUMENT = record(
    "snapshot string, assigned string?, output string?, group_count int, explained_count int, "
    "by_another_count int, groups_not_shown int",
    by_assignor=record(", ".join(f"{name} int" for name in _ASSIGNORS)),
    groups=rows(
        f"{GROUP}, assignor string?, differing_count int, detail string?, own_assignor string?"
    ),
)
ABOUT = About(
    description="Find out for every group which of Kafka's assignors gives the observed\n"
    "assignment and whose stale claims decided, or which one comes nearest and what differs.\n"
    "SNAPSHOT is the state before, ASSIGNED the plan (table assignment) or snapshot (table\n"
    "owned) after. Without ASSIGNED it is what the members of SNAPSHOT own: would the\n"
    "assignor leave it as it is?",
    finds="no assignor explains a group's assignment; without ASSIGNED also if its own assignor "
    "does not",
    example="kassign-spark explain examples/fleet",
)


def add_options(parser: Parser) -> None:
    """Add what it takes."""
    parser.add_snapshot()
    parser.add_argument(
        "assigned", metavar="ASSIGNED", nargs="?", help="folder of a plan or a snapshot"
    )
    parser.add_output("the table explained")
    parser.add_show("print at most N groups")


def run(args: argparse.Namespace) -> Outcome:
    """Run the command."""
    inputs = [path for path in (args.snapshot, args.assigned) if path is not None]
    with session_reading(args, f"explaining {inputs[-1]}", *inputs) as spark:
        snapshot = read_snapshot(args.snapshot, spark)
        observed = _read_observed(spark, snapshot, args)
        by_assignor = {name: F.count_if(F.col("assignor") == name) for name in _ASSIGNORS}
        is_by_another = F.col("assignor") != F.col("own_assignor")
        explained, totals = materialize(
            explain(observed, *snapshot),
            {
                "groups": F.count(F.lit(1)),
                "by_another": F.count_if(is_by_another),
                **by_assignor,
            },
        )
        write_tables(spark, args, explained=explained)
        by_own = ~F.coalesce(is_by_another, F.lit(False))
        most = [F.col("assignor").isNotNull(), by_own, F.col("differing_count").desc()]
        groups = first_rows(explained, [*most, *GROUP_KEY], args.show)
    facts = {
        **named_arguments(args, "snapshot", "assigned", "output"),
        "group_count": totals["groups"],
        "explained_count": sum(totals[name] for name in _ASSIGNORS),
        "by_another_count": totals["by_another"],
        "by_assignor": {name: totals[name] for name in _ASSIGNORS},
        "groups_not_shown": totals["groups"] - len(groups),
        "groups": groups,
    }
    unexplained = facts["explained_count"] < facts["group_count"]
    would_move = args.assigned is None and facts["by_another_count"]
    return Outcome(1 if unexplained or would_move else 0, facts, _lines(facts))


def _read_observed(spark: SparkSession, snapshot: Snapshot, args: argparse.Namespace) -> DataFrame:
    if args.assigned is None:
        if snapshot.owned is None:
            raise InputError(
                f"folder {args.snapshot}: has no table owned, so nothing is observed: name ASSIGNED"
            )
        return snapshot.owned
    has_cluster = has_cluster_id(snapshot.members)
    return read_assigned(spark, args.assigned, cluster_id=has_cluster)[0]


def _lines(facts: Facts) -> list[str]:
    explained, count = facts["explained_count"], facts["group_count"]
    by = ", ".join(f"{number:,} {name}" for name, number in facts["by_assignor"].items() if number)
    lines = [
        f"{plural(count, 'group')}: {explained:,} explained{f' ({by})' if by else ''}, "
        f"{count - explained:,} not"
    ]
    if facts["by_another_count"]:
        lines.append(f"{facts['by_another_count']:,} by another than their own assignor")
    lines += lay_out_first_rows(facts, "group", _COLUMNS)
    return lines + written(facts["output"], "the table explained is in")
