"""``kassign-spark touched-by``: what a change of topics touches."""

import argparse

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kassign_spark.commands.common import Facts, Outcome, first_rows, session_reading, write_tables
from kassign_spark.commands.documents import GROUP, record, rows
from kassign_spark.commands.parser import About, Parser
from kassign_spark.conforming import fill_cluster_id
from kassign_spark.display import (
    Columns,
    counts,
    group_name,
    lay_out_first_rows,
    plural,
    printable,
    written,
)
from kassign_spark.graph.fleet import touched_by
from kassign_spark.schemas import GROUP_KEY
from kassign_spark.spark.iteration import materialize
from kassign_spark.tables.snapshots import read_snapshot

_COLUMNS: Columns = {
    "topic": "topic",
    "group": group_name,
    "members": "group_member_count",
    "read it": "member_count",
    "partitions": "partition_count",
    "reassigned": "reassigned_count",
    "other topics": lambda row: ", ".join(map(printable, row["other_topics"])) or "-",
}

DOCUMENT = record(
    "snapshot string, topics array<string>, output string?, group_count int, member_count int, "
    "reassigned_count int, row_count int, rows_not_shown int",
    rows=rows(
        f"{GROUP}, topic string, member_count int, group_member_count int, partition_count int, "
        "reassigned_count int, other_topics array<string>"
    ),
)
ABOUT = About(
    description="Show what happens to every group that reads one of the topics if the topic\n"
    "gains partitions or is deleted: how many members take part in the rebalance, how many\n"
    "partitions are revoked and assigned again, and the other topics of these partitions.",
    example="kassign-spark touched-by examples/fleet payments.refunds",
)


def add_options(parser: Parser) -> None:
    """Add what it takes."""
    parser.add_snapshot()
    parser.add_argument("topics", metavar="TOPIC", nargs="+", help="name of a topic that changes")
    parser.add_output("the table touched")
    parser.add_show("print at most N rows, those first in which most is reassigned")


def run(args: argparse.Namespace) -> Outcome:
    """Run the command."""
    with session_reading(args, f"reading {args.snapshot}", args.snapshot) as spark:
        snapshot = read_snapshot(args.snapshot, spark)
        touched_rows = touched_by(snapshot.members, snapshot.topics, args.topics)
        touched, row_counts = materialize(touched_rows, {"rows": F.count(F.lit(1))})
        write_tables(spark, args, touched=touched)
        totals = _totals(touched)
        rows = first_rows(touched, [F.desc("reassigned_count"), *GROUP_KEY, "topic"], args.show)
    facts: Facts = {
        "snapshot": args.snapshot,
        "topics": sorted(set(args.topics)),
        "output": args.output,
        **totals,
        "row_count": row_counts["rows"],
        "rows_not_shown": row_counts["rows"] - len(rows),
        "rows": rows,
    }
    return Outcome(0, facts, _lines(facts))


def _totals(touched: DataFrame) -> Facts:
    """Count groups, members and partitions: a group counts once, however many topics it reads."""
    # Rows of a cooperative group count a topic each, and add up; those of an eager one count all
    # that the group reads, which is more than a topic where two of its topics are among them.
    most = F.max("reassigned_count")
    is_eager = F.max("partition_count") < most
    by_group = (
        fill_cluster_id(touched)
        .groupBy(*GROUP_KEY)
        .agg(
            F.max("group_member_count").alias("member_count"),
            F.when(is_eager, most).otherwise(F.sum("reassigned_count")).alias("reassigned_count"),
        )
    )
    summed = ("member_count", "reassigned_count")
    sums = (F.coalesce(F.sum(name), F.lit(0)).alias(name) for name in summed)
    return by_group.agg(F.count("*").alias("group_count"), *sums).collect()[0].asDict()


def _lines(facts: Facts) -> list[str]:
    reassigned = f"{plural(facts['reassigned_count'], 'partition')} reassigned"
    totals = ", ".join([*counts(facts, "group", "member"), reassigned])
    lines = [f"{', '.join(map(printable, facts['topics']))}: {totals}"]
    lines += lay_out_first_rows(facts, "row", _COLUMNS)
    return lines + written(facts["output"], "the table touched is in")
