"""``kassign-spark validate``: what to know about a snapshot before trusting a plan made of it."""

import argparse

from pyspark.sql import functions as F

from kassign_spark.assignors import ASSIGNORS
from kassign_spark.commands.choosing import named_arguments
from kassign_spark.commands.common import Facts, Outcome, first_rows, session_reading, write_tables
from kassign_spark.commands.documents import record, rows
from kassign_spark.commands.parser import About, Parser
from kassign_spark.display import lay_out_first_rows, plural, printable, written
from kassign_spark.schemas import GROUP_KEY, WEIGHTS
from kassign_spark.spark.iteration import materialize
from kassign_spark.tables.snapshots import read_named_table, read_snapshot
from kassign_spark.validation.validate import validate

_ORDER = ["problem", *GROUP_KEY, "member_id", "topic", "partition", "detail"]

DOCUMENT = record(
    "snapshot string, output string?, problem_count int, problems_not_shown int",
    problems=rows(
        "cluster_id? string?, group_id string?, problem string, member_id string?, "
        "topic string?, partition int?, detail string"
    ),
)
ABOUT = About(
    description="List what is wrong or odd in a snapshot, group by group: what assign\n"
    "refuses, and what Kafka ignores, such as topics without metadata.",
    finds="there are problems",
    example="kassign-spark validate examples/fleet",
)


def add_options(parser: Parser) -> None:
    """Add what it takes."""
    parser.add_snapshot()
    parser.add_argument(
        "--weights",
        metavar="FILE",
        help="also check the table weights: a file, or a folder that contains it",
    )
    parser.add_output("the table problems")
    parser.add_show("print at most N problems")


def run(args: argparse.Namespace) -> Outcome:
    """Run the command."""
    with session_reading(args, f"validating {args.snapshot}", args.snapshot) as spark:
        snapshot = read_snapshot(args.snapshot, spark)
        weights = None if args.weights is None else read_named_table(spark, args.weights, WEIGHTS)
        problem_rows = validate(*snapshot, assignors=ASSIGNORS, weights=weights)
        problems, totals = materialize(problem_rows, {"count": F.count(F.lit(1))})
        write_tables(spark, args, problems=problems)
        count = totals["count"]
        rows = first_rows(problems, _ORDER, args.show) if count else []
    facts = {
        **named_arguments(args, "snapshot", "output"),
        "problem_count": count,
        "problems_not_shown": count - len(rows),
        "problems": rows,
    }
    return Outcome(1 if count else 0, facts, _lines(facts))


def _lines(facts: Facts) -> list[str]:
    count = facts["problem_count"]
    lines = [f"{printable(facts['snapshot'])}: {plural(count, 'problem') if count else 'all well'}"]
    columns = {"problem": "problem"} | {name: name for row in facts["problems"][:1] for name in row}
    lines += lay_out_first_rows(facts, "problem", columns)
    return lines + written(facts["output"], "the table problems is in")
