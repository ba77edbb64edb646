"""``kassign-spark report``: one page for people that says what a plan does to a fleet."""

import argparse
from importlib.util import find_spec

from kassign_spark.commands.choosing import settings_of
from kassign_spark.commands.common import Facts, Outcome, refuse_output_over_input, session_reading
from kassign_spark.commands.documents import one_of, record, rows
from kassign_spark.commands.parser import About, Parser, whole_number
from kassign_spark.commands.weighted import add_source, inputs_of, read_weights
from kassign_spark.display import counts, printable
from kassign_spark.history.rebalance_columns import REBALANCES
from kassign_spark.report.charts import missing_extra
from kassign_spark.report.collect import collect
from kassign_spark.report.findings import ERROR, GOOD, NOTE, WARNING, findings
from kassign_spark.report.past import collect_past
from kassign_spark.report.plan import read_plan, snapshot_of
from kassign_spark.report.render import MARK, render
from kassign_spark.report.weight_section import Weighing, collect_by_weight
from kassign_spark.schemas import BALANCE
from kassign_spark.tables.output_file import check_new_file, write_file
from kassign_spark.tables.snapshots import one_run

_NEEDED = ("jinja2", "altair", "vl_convert")

DOCUMENT = record(
    "plan string, snapshot string, output string, page_bytes int, "
    "knows_owned boolean, knows_leaders boolean, problem_count int, hot_coordinator_count int, "
    "groups_listed int, groups_with_details int, weighed_group_count int?, "
    "past_rebalance_count int?",
    "group_count int, member_count int, partition_count int, idle_before int?, idle_after int, "
    "idle_group_count int, uneven_count int, least_moves int?, cross_rack_count int?, "
    "cross_rack_group_count int, moving_group_count int, moved int?, withheld_count int, "
    "unsettled_count int, violation_count int, problem_group_count int, eager_group_count int, "
    + ", ".join(
        f"{protocol}_moved int?, {protocol}_paused int, {protocol}_rounds int, "
        f"{protocol}_paused_groups int"
        for protocol in ("planned", "eager", "cooperative")
    ),
    findings=rows(
        "title string, text string, only string, link string",
        severity=one_of([ERROR, WARNING, NOTE, GOOD]),
    ),
)
ABOUT = About(
    description="Write one HTML page about a plan: what to look at first; groups, worst\n"
    "first; the load of members before and after; what moves from whom to whom; rounds and\n"
    "pauses by protocol; the coordinators; the problems found. It opens from disk and needs\n"
    "no network.",
    example="kassign-spark report build/plan --output build/report.html",
)


def add_options(parser: Parser) -> None:
    """Add what it takes."""
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
    parser.add_settings()
    parser.add_argument(
        "--overwrite",
        action="store_true",
        help="replace FILE.html if kassign-spark wrote it and nobody edited it since",
    )


def run(args: argparse.Namespace) -> Outcome:
    """Run the command."""
    if any(find_spec(name) is None for name in _NEEDED):
        raise missing_extra()
    settings = settings_of(args)
    check_new_file(args.output, mark=MARK, overwrite=args.overwrite)
    with session_reading(args, f"reporting {args.plan}", *inputs_of(args)) as spark:
        args.plan = one_run(spark, args.plan, BALANCE.name)
        snapshot = snapshot_of(spark, args.plan, args.snapshot)
        refuse_output_over_input(spark, args.output, snapshot)
        plan = read_plan(spark, args.plan, snapshot)
        contents = collect(plan, settings, details=args.details)
        by_weight = None
        if args.weights is not None:
            weights = read_weights(spark, args, snapshot)
            weighing = Weighing(weights, args.missing_weight, args.base_weight)
            by_weight = collect_by_weight(plan, weighing)
        if args.history is not None:
            args.history = one_run(spark, args.history, REBALANCES.name)
        past = None if args.history is None else (args.history, collect_past(spark, args.history))
    report_findings = findings(contents)
    page = render(
        contents,
        report_findings,
        plan=args.plan,
        snapshot=args.snapshot or snapshot,
        details=args.details,
        by_weight=by_weight,
        past=past,
    )
    page_bytes = write_file(args.output, page, mark=MARK, overwrite=args.overwrite)
    facts = {
        "plan": args.plan,
        "snapshot": args.snapshot or snapshot,
        "output": args.output,
        "page_bytes": page_bytes,
        **contents.totals,
        "problem_count": sum(row["count"] for row in contents.problem_counts),
        "hot_coordinator_count": contents.hot_count,
        "groups_listed": len(contents.groups),
        "groups_with_details": len(contents.details),
        "weighed_group_count": None if by_weight is None else by_weight.group_count,
        "past_rebalance_count": None if past is None else past[1].rebalance_count,
        "findings": [finding._asdict() for finding in report_findings],
    }
    return Outcome(0, facts, _lines(facts))


def _lines(facts: Facts) -> list[str]:
    lines = [", ".join(counts(facts, "group", "member", "partition")), ""]
    lines += [
        f"{finding['severity']:<8} {printable(finding['title'])}" for finding in facts["findings"]
    ]
    return [
        *lines,
        "",
        f"the report is in {printable(facts['output'])}, {facts['page_bytes'] / 1e6:.1f} MB",
    ]
