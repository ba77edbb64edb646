"""``kassign-spark validate``: what to know about a snapshot before trusting a plan made of it."""

import argparse
from typing import Any

from pyspark.sql import functions as F

from kassign_spark.assignors import ASSIGNORS
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
from kassign_spark.commands.documents import record, rows
from kassign_spark.display import not_shown, plural, printable, table
from kassign_spark.rounds import hold
from kassign_spark.schemas import GROUP_KEY, WEIGHTS
from kassign_spark.tables.snapshots import new_folder, read_given_table, read_snapshot, write_table
from kassign_spark.validation.validate import validate

_ORDER = ["problem", *GROUP_KEY, "member_id", "topic", "partition", "detail"]


DOCUMENT = record(
    "snapshot string, output string?, problem_count int, problems_not_shown int",
    problems=rows(
        "cluster_id? string?, group_id string?, problem string, member_id string?, "
        "topic string?, partition int?, detail string"
    ),
)
"""What ``--json`` prints."""


def add_parser(commands: Any) -> None:
    """Add the command to the parser."""
    parser = new_parser(
        commands,
        "validate",
        summary="list what is wrong or odd in a snapshot",
        description="List what is wrong or odd in a snapshot, group by group: what assign\n"
        "refuses, and what Kafka passes over, such as topics without metadata.",
        finds="there are problems",
        document=DOCUMENT,
        example="kassign-spark validate examples/fleet",
    )
    add_snapshot(parser)
    parser.add_argument(
        "--weights",
        metavar="FILE",
        help="the table weights, to look at as well: a file, or a folder that has it",
    )
    add_output(parser, "the table problems")
    add_show(parser, "print at most N problems")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> Outcome:
    """Run the command."""
    with session_reading(args, f"validating {args.snapshot}", args.snapshot) as spark:
        snapshot = read_snapshot(args.snapshot, spark)
        weights = None if args.weights is None else read_given_table(spark, args.weights, WEIGHTS)
        found = validate(*snapshot, assignors=ASSIGNORS, weights=weights)
        problems = hold(found, {"count": F.count(F.lit(1))})
        if args.output is not None:
            with new_folder(spark, args.output, overwrite=args.overwrite) as folder:
                write_table(problems.frame, folder, "problems", args.format)
        count = problems.measured["count"]
        rows = first_rows(problems.frame, _ORDER, args.show) if count else []
    facts = {
        "snapshot": args.snapshot,
        "output": args.output,
        "problem_count": count,
        "problems_not_shown": count - len(rows),
        "problems": rows,
    }
    return Outcome(1 if facts["problem_count"] else 0, facts, _lines(facts))


def _lines(facts: Facts) -> list[str]:
    count = facts["problem_count"]
    lines = [f"{printable(facts['snapshot'])}: {plural(count, 'problem') if count else 'all well'}"]
    if facts["problems"]:
        columns = [name for name in facts["problems"][0] if name != "problem"]
        rows = ([row[name] for name in ("problem", *columns)] for row in facts["problems"])
        lines += ["", *table(["problem", *columns], rows)]
    lines += not_shown(facts["problems_not_shown"], "problem", of=count)
    if facts["output"] is not None:
        lines += ["", f"the table problems is in {printable(facts['output'])}"]
    return lines
