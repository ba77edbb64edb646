"""``kassign-spark tradeoff``: how low the greatest load gets with so many moves."""

import argparse
from typing import Any

from kassign_spark.commands.common import (
    Facts,
    Outcome,
    add_output,
    new_parser,
    session_reading,
)
from kassign_spark.commands.documents import GROUP, record, rows
from kassign_spark.commands.weighted import add_weights, by_group, inputs_of, options, read_weights
from kassign_spark.display import not_shown, plural, printable, table
from kassign_spark.plans.by_weight import TRADEOFF, tradeoff
from kassign_spark.schemas import GROUP_KEY
from kassign_spark.tables.snapshots import new_folder, read_snapshot, write_table

DOCUMENT = record(
    "snapshot string, output string?, group_count int, groups_not_shown int",
    groups=rows(f"{GROUP}, group string, says string", points=rows(TRADEOFF)),
)
"""What ``--json`` prints."""


def add_parser(commands: Any) -> None:
    """Add the command to the parser."""
    parser = new_parser(
        commands,
        "tradeoff",
        summary="show what each move would give: the curve of moves against load",
        description="Trace for every group how low its greatest load gets with so many moves.\n"
        "1x is the fair load: what everybody would have if weight could be cut at will.",
        document=DOCUMENT,
        example="kassign-spark tradeoff examples/fleet --weights build/weights",
    )
    add_weights(parser)
    add_output(parser, "the table tradeoff")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> Outcome:
    """Run the command."""
    chosen = options(args)
    with session_reading(args, f"tracing {args.snapshot}", *inputs_of(args)) as spark:
        members, topics, owned = read_snapshot(args.snapshot, spark)
        curve = tradeoff(members, topics, read_weights(spark, args), owned, **chosen)
        if args.output is not None:
            with new_folder(spark, args.output, overwrite=args.overwrite) as folder:
                write_table(curve, folder, "tradeoff", args.format)
        keys: list[str] = [name for name in GROUP_KEY if name in curve.columns]
        starts = curve.where("moves = 0").orderBy(curve["skew"].desc(), *keys)
        shown = starts.limit(args.show).select(*keys)
        count = curve.where("moves = 0").count()
        rows = [row.asDict() for row in curve.join(shown, on=keys, how="left_semi").collect()]
    groups = by_group(rows)
    facts = {
        "snapshot": args.snapshot,
        "output": args.output,
        "group_count": count,
        "groups_not_shown": count - len(groups),
        "groups": groups,
    }
    return Outcome(0, facts, _lines(facts))


def _lines(facts: Facts) -> list[str]:
    lines = [f"{plural(facts['group_count'], 'group')} with weights"]
    if facts["groups"]:
        rows = ([group["group"], group["says"]] for group in facts["groups"])
        lines += ["", *table(["group", "what moves would give"], rows)]
    lines += not_shown(facts["groups_not_shown"], "group", of=facts["group_count"])
    if facts["output"] is not None:
        lines += ["", f"the curves are in {printable(facts['output'])}: tradeoff"]
    return lines
