"""``kassign-spark plan``: who should read what by weight, with how few moves."""

import argparse

from pyspark.sql import functions as F

from kassign_spark.assignors.weighted.options import Bounds, Limit
from kassign_spark.commands.choosing import named_arguments
from kassign_spark.commands.common import Facts, Outcome, first_rows, session_reading
from kassign_spark.commands.documents import COUNTS, record, rows
from kassign_spark.commands.parser import About, Parser, whole_number
from kassign_spark.commands.weighted import (
    UNUSED_WEIGHTS,
    add_weights,
    inputs_of,
    number,
    options,
    read_weights,
    unused_facts,
    unused_lines,
)
from kassign_spark.display import Columns, group_name, lay_out_first_rows, plural, written
from kassign_spark.measures.balance import balance
from kassign_spark.plans.by_weight import WEIGHT_VERDICTS, plan_by_weight
from kassign_spark.schemas import GROUP_KEY
from kassign_spark.tables.origin import note_snapshot
from kassign_spark.tables.snapshots import new_folder, read_snapshot, write_table

_DONE = ("within_limit", "nothing_to_do")

DOCUMENT = record(
    "snapshot string, output string?, group_count int, unused_weight_count int, "
    "groups_not_shown int",
    verdicts=COUNTS,
    unused_weights=UNUSED_WEIGHTS,
    groups=rows(WEIGHT_VERDICTS),
)
ABOUT = About(
    description="Plan every group by the weight of its partitions: members within a limit\n"
    "of load, the fewest moves, and a verdict with its proof. The output is a plan that\n"
    "diff, report, violations and deliver read.",
    finds="there are weights of groups, topics or partitions that do not exist",
    example="kassign-spark plan examples/fleet --weights build/weights --output build/plan",
)


def add_options(parser: Parser) -> None:
    """Add what it takes."""
    add_weights(parser)
    limits = parser.add_mutually_exclusive_group()
    limits.add_argument(
        "--tolerance", metavar="X", type=number, help="share above the best load (default: 0.05)"
    )
    limits.add_argument("--max-skew", metavar="X", type=number, help="times the fair load")
    limits.add_argument("--max-load", metavar="X", type=number, help="load by capacity")
    parser.add_argument("--max-moves", metavar="N", type=whole_number(least=0))
    parser.add_argument("--max-moved-weight", metavar="X", type=number)
    parser.add_argument("--max-count-difference", metavar="N", type=whole_number(least=0))
    parser.add_output("the tables assignment, verdicts and balance")


def run(args: argparse.Namespace) -> Outcome:
    """Run the command."""
    limit = Limit(args.tolerance, args.max_skew, args.max_load)
    bounds = Bounds(args.max_moves, args.max_moved_weight, args.max_count_difference)
    search_options = options(args)
    with session_reading(args, f"planning {args.snapshot}", *inputs_of(args)) as spark:
        members, topics, owned = read_snapshot(args.snapshot, spark)
        weights = read_weights(spark, args)
        plan = plan_by_weight(
            members, topics, weights, owned, limit=limit, bounds=bounds, **search_options
        )
        if args.output is not None:
            with new_folder(spark, args.output, overwrite=args.overwrite) as folder:
                write_table(plan.assignment, folder, "assignment", args.format)
                write_table(plan.verdicts, folder, "verdicts", args.format)
                loads = balance(
                    plan.assignment,
                    members,
                    owned,
                    topics,
                    weights=weights,
                    missing_weight=args.missing_weight,
                    base_weight=args.base_weight,
                )
                # No assignor made it; report goes by the groups' own where one is needed.
                nobody = loads.withColumn("assignor", F.lit(None).cast("string"))
                write_table(nobody, folder, "balance", args.format)
                note_snapshot(spark, folder, args.snapshot)
        skew = F.expr("max_load / nullif(fair_load, 0.0D)")
        order = [F.col("verdict").isin(*_DONE), F.desc_nulls_last(skew)]
        rows = first_rows(plan.verdicts, [*order, *GROUP_KEY], args.show)
        counts = {
            r["verdict"]: r["count"] for r in plan.verdicts.groupBy("verdict").count().collect()
        }
        unused = unused_facts(args, weights, members, topics)
    facts = {
        **named_arguments(args, "snapshot", "output"),
        "group_count": sum(counts.values()),
        "verdicts": dict(sorted(counts.items())),
        "groups_not_shown": sum(counts.values()) - len(rows),
        "groups": rows,
        **unused,
    }
    return Outcome(1 if facts["unused_weight_count"] else 0, facts, _lines(facts))


def _lines(facts: Facts) -> list[str]:
    counts = ", ".join(f"{count:,} {verdict}" for verdict, count in facts["verdicts"].items())
    lines = [f"{plural(facts['group_count'], 'group')}: {counts or 'none'}"]
    columns: Columns = {"group": group_name, "verdict": "verdict", "detail": "detail"}
    lines += lay_out_first_rows(facts, "group", columns)
    lines += unused_lines(facts)
    return lines + written(facts["output"], "the plan is in", "assignment, verdicts, balance")
