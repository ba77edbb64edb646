"""``kassign-spark touched-by``: what a change of topics touches."""

import argparse
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from kassign_spark.commands.common import (
    Facts,
    Outcome,
    add_output,
    add_show,
    add_snapshot,
    first_rows,
    new_parser,
    session_reading,
)
from kassign_spark.commands.documents import GROUP, record, rows
from kassign_spark.conforming import fill_cluster_id
from kassign_spark.display import group_name, not_shown, plural, printable, table
from kassign_spark.graph.fleet import touched_by
from kassign_spark.rounds import hold
from kassign_spark.schemas import GROUP_KEY
from kassign_spark.tables.snapshots import new_folder, read_snapshot, write_table

_COLUMNS = {
    "members": "group_member_count",
    "read it": "member_count",
    "partitions": "partition_count",
    "reassigned": "reassigned_count",
}


DOCUMENT = record(
    "snapshot string, topics array<string>, output string?, group_count int, member_count int, "
    "reassigned_count int, row_count int, rows_not_shown int",
    rows=rows(
        f"{GROUP}, topic string, member_count int, group_member_count int, partition_count int, "
        "reassigned_count int, other_topics array<string>"
    ),
)
"""What ``--json`` prints."""


def add_parser(commands: Any) -> None:
    """Add the command to the parser."""
    parser = new_parser(
        commands,
        "touched-by",
        summary="say which groups a change of topics touches, and how much of them",
        description="Say of every group that reads one of the topics what happens to it when the\n"
        "topic gets partitions or goes: how many members take part in the rebalance, how many\n"
        "partitions are revoked and handed out again, and which other topics these are of.",
        document=DOCUMENT,
        example="kassign-spark touched-by examples/fleet payments.refunds",
    )
    add_snapshot(parser)
    parser.add_argument("topics", metavar="TOPIC", nargs="+", help="name of a topic that changes")
    add_output(parser, "the table touched")
    add_show(parser, "print at most N rows, those first in which most is reassigned")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> Outcome:
    """Run the command."""
    with session_reading(args, f"reading {args.snapshot}", args.snapshot) as spark:
        snapshot = read_snapshot(args.snapshot, spark)
        found = touched_by(snapshot.members, snapshot.topics, args.topics)
        touched, counted = hold(found, {"rows": F.count(F.lit(1))})
        if args.output is not None:
            with new_folder(spark, args.output, overwrite=args.overwrite) as folder:
                write_table(touched, folder, "touched", args.format)
        totals = _totals(touched)
        most: list[str | Column] = [F.col("reassigned_count").desc(), *GROUP_KEY, "topic"]
        rows = first_rows(touched, most, args.show)
    facts: Facts = {
        "snapshot": args.snapshot,
        "topics": sorted(set(args.topics)),
        "output": args.output,
        **totals,
        "row_count": counted["rows"],
        "rows_not_shown": counted["rows"] - len(rows),
        "rows": rows,
    }
    return Outcome(0, facts, _lines(facts))


def _totals(touched: DataFrame) -> Facts:
    """Groups, members and partitions: a group counts once, however many of the topics it reads."""
    # Rows of a cooperative group count a topic each, and add up; those of an eager one count all
    # that the group reads, which is more than a topic where two of its topics are among them.
    is_eager = F.max("partition_count") < F.max("reassigned_count")
    by_group = (
        fill_cluster_id(touched)
        .groupBy(*GROUP_KEY)
        .agg(
            F.max("group_member_count").alias("members"),
            F.when(is_eager, F.max("reassigned_count"))
            .otherwise(F.sum("reassigned_count"))
            .alias("reassigned"),
        )
    )
    row = by_group.agg(
        F.count("*").alias("group_count"),
        F.coalesce(F.sum("members"), F.lit(0)).alias("member_count"),
        F.coalesce(F.sum("reassigned"), F.lit(0)).alias("reassigned_count"),
    ).collect()[0]
    return dict(row.asDict())


def _lines(facts: Facts) -> list[str]:
    lines = [
        f"{', '.join(map(printable, facts['topics']))}: {plural(facts['group_count'], 'group')}, "
        f"{plural(facts['member_count'], 'member')}, "
        f"{plural(facts['reassigned_count'], 'partition')} reassigned"
    ]
    if facts["rows"]:
        rows = (
            [
                printable(row["topic"]),
                group_name(row),
                *(row[column] for column in _COLUMNS.values()),
                ", ".join(map(printable, row["other_topics"])) or "-",
            ]
            for row in facts["rows"]
        )
        lines += ["", *table(["topic", "group", *_COLUMNS, "other topics"], rows)]
    lines += not_shown(facts["rows_not_shown"], "row", of=facts["row_count"])
    if facts["output"] is not None:
        lines += ["", f"the table touched is in {printable(facts['output'])}"]
    return lines
