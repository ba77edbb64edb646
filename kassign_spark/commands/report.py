"""``kassign-spark report``: one page for people that says what a plan does to a fleet."""

import argparse
from importlib.util import find_spec
from typing import Any

from kassign_spark.commands.common import (
    Facts,
    Outcome,
    add_settings,
    new_parser,
    refuse_output_over_input,
    session_reading,
    settings_of,
    whole_number,
)
from kassign_spark.commands.weighted import add_source, inputs_of, read_weights
from kassign_spark.display import plural, printable
from kassign_spark.report.by_weight import Weighing, collect_by_weight
from kassign_spark.report.charts import missing_extra
from kassign_spark.report.collect import collect
from kassign_spark.report.findings import findings
from kassign_spark.report.past import collect_past
from kassign_spark.report.plan import read_plan, snapshot_of
from kassign_spark.report.render import MARK, render
from kassign_spark.tables.output_file import check_new_file, write_file
from kassign_spark.tables.snapshots import whole_folder

_NEEDED = ("jinja2", "altair", "vl_convert")


def add_parser(commands: Any) -> None:
    """Add the command to the parser."""
    parser = new_parser(
        commands,
        "report",
        summary="write one page that says what a plan does to the fleet",
        description="Write one HTML page on a plan: what to look at first, groups worst first,\n"
        "the load of members before and after, what moves from whom to whom, rounds and pauses\n"
        "by protocol, the coordinators, the problems found. It opens from disk, without network.\n"
        "Exits 0 when done, 2 on an error.",
        example="kassign-spark report build/plan --output build/report.html",
    )
    parser.add_argument("plan", metavar="PLAN", help="folder that assign or plan wrote")
    parser.add_argument(
        "--output", metavar="FILE.html", required=True, help="new file to write, on this machine"
    )
    parser.add_argument(
        "--snapshot",
        metavar="SNAPSHOT",
        help="folder that the plan was made of (default: the one that the plan notes); with a\n"
        "table leaders, the coordinators are known too",
    )
    parser.add_argument(
        "--details",
        metavar="N",
        type=whole_number(least=0),
        default=200,
        help="members and moves of the N worst groups (default: 200)",
    )
    parser.add_argument(
        "--history",
        metavar="DIR",
        help="folder that kassign-spark history wrote: rebalances a day, and when the groups with\n"
        "the most had theirs",
    )
    add_source(parser, required=False)
    add_settings(parser)
    parser.add_argument(
        "--overwrite", action="store_true", help="replace FILE.html if kassign-spark wrote it"
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> Outcome:
    """Run the command."""
    if any(find_spec(name) is None for name in _NEEDED):
        raise missing_extra()
    settings = settings_of(args)
    check_new_file(args.output, mark=MARK, overwrite=args.overwrite)
    past_folders = [] if args.history is None else [args.history]
    inputs = [*inputs_of(args), *past_folders]
    with session_reading(args, f"reporting {args.plan}", *inputs) as spark:
        folder = whole_folder(spark, args.plan)
        snapshot = snapshot_of(spark, folder, args.snapshot)
        refuse_output_over_input(spark, args.output, snapshot)
        plan = read_plan(spark, folder, snapshot)
        found = collect(plan, settings, details=args.details)
        by_weight = None
        if args.weights is not None:
            weights = read_weights(spark, args, snapshot)
            weighing = Weighing(weights, args.missing_weight, args.base_weight)
            by_weight = collect_by_weight(plan, weighing)
        past = None if args.history is None else (args.history, collect_past(spark, args.history))
    listed = findings(found)
    page = render(
        found,
        listed,
        plan=args.plan,
        snapshot=args.snapshot or snapshot,
        details=args.details,
        by_weight=by_weight,
        past=past,
    )
    write_file(args.output, page, mark=MARK, overwrite=args.overwrite)
    facts = {
        "plan": args.plan,
        "snapshot": args.snapshot or snapshot,
        "output": args.output,
        "page_bytes": len(page.encode()),
        **found.totals,
        "problem_count": sum(row["count"] for row in found.problem_counts),
        "hot_coordinator_count": found.hot_count,
        "groups_listed": len(found.groups),
        "groups_with_details": len(found.details),
        "weighed_group_count": None if by_weight is None else by_weight.group_count,
        "past_rebalance_count": None if past is None else past[1].rebalance_count,
        "findings": [finding._asdict() for finding in listed],
    }
    return Outcome(0, facts, _lines(facts))


def _lines(facts: Facts) -> list[str]:
    counts = (
        plural(facts["group_count"], "group"),
        plural(facts["member_count"], "member"),
        plural(facts["partition_count"], "partition"),
    )
    lines = [", ".join(counts), ""]
    lines += [
        f"{finding['severity']:<8} {printable(finding['title'])}" for finding in facts["findings"]
    ]
    return [
        *lines,
        "",
        f"the report is in {printable(facts['output'])}, {facts['page_bytes'] / 1e6:.1f} MB",
    ]
