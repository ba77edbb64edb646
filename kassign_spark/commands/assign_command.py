"""``kassign-spark assign``: plan every group of a snapshot, check and measure the plan."""

import argparse
import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from operator import itemgetter

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from kassign_spark.assignors import ASSIGNORS
from kassign_spark.commands.assign_lines import lines
from kassign_spark.commands.choosing import named_arguments, settings_of
from kassign_spark.commands.common import (
    Facts,
    Outcome,
    first_rows,
    misled_facts,
    open_output,
    session_reading,
    topic_facts,
    write_to,
)
from kassign_spark.commands.documents import COUNTS, GROUP, TOPIC_RANGES, record, rows
from kassign_spark.commands.parser import About, Parser
from kassign_spark.conforming import conform, fill_cluster_id, has_cluster_id, restore_cluster_id
from kassign_spark.expressions import is_group_of
from kassign_spark.groups.paths import Paths
from kassign_spark.measures.balance import balance
from kassign_spark.measures.partition_ranges import holdings
from kassign_spark.measures.violations import hidden_claims, plan_violations
from kassign_spark.measures.violations_tasks import UNKNOWN_TOPIC
from kassign_spark.plans.assign import assign_on_paths
from kassign_spark.report.plan import BALANCE, VIOLATIONS
from kassign_spark.schemas import ASSIGNMENT, CLUSTER_ID, GROUP_KEY, MEMBERS, OWNED, VERDICTS
from kassign_spark.settings.computing import Settings
from kassign_spark.spark.iteration import materialize
from kassign_spark.tables.origin import note_snapshot
from kassign_spark.tables.snapshots import (
    empty_table,
    read_snapshot,
    read_table,
    write_table,
)

_COOPERATIVE = "cooperative-sticky"

DOCUMENT = record(
    "snapshot string, output string?, group_count int, member_count int, partition_count int, "
    "idle_group_count int, "
    "violation_count int, misled_count int, round_count int, groups_not_shown int",
    violations=rows(VIOLATIONS),
    misled=rows(VERDICTS),
    paths=COUNTS,
    rounds=COUNTS,
    balance=rows(BALANCE),
    assignments=rows(
        f"{GROUP}, assignor string?, members_not_shown int",
        members=rows(
            "member_id string, partition_count int, topics_not_shown int", topics=TOPIC_RANGES
        ),
    ),
)
ABOUT = About(
    description="Assign the partitions of every group of a snapshot as each group's assignor\n"
    "does in one rebalance; check and measure the plan and, with --output, write it to a\n"
    "new folder.",
    finds="the plan violates a rule, a group gets nothing, or claims mislead Kafka's own client",
    example="kassign-spark assign examples/fleet --output build/plan --assignor range",
)


def add_options(parser: Parser) -> None:
    """Add what it takes."""
    parser.add_snapshot()
    parser.add_output("the tables assignment and balance")
    parser.add_assignor(ASSIGNORS)
    parser.add_settings()
    parser.add_argument(
        "--progress",
        action="store_true",
        help="show each round of groups too large for a task: its purpose, and how much is open",
    )
    parser.add_show("print at most N groups, members of each, and topics of each member")


def run(args: argparse.Namespace) -> Outcome:
    """Run the command."""
    settings = settings_of(args)
    with (
        session_reading(args, f"assigning {args.snapshot}", args.snapshot) as spark,
        open_output(spark, args) as folder,
    ):
        facts = _plan(spark, folder, args, settings)
    is_bad = facts["violation_count"] or facts["misled_count"] or facts["idle_group_count"]
    return Outcome(1 if is_bad else 0, facts, lines(facts))


def _plan(
    spark: SparkSession, folder: str | None, args: argparse.Namespace, settings: Settings
) -> Facts:
    snapshot = read_snapshot(args.snapshot, spark)
    members, topics, owned = snapshot
    paths = Paths()
    with _rounds_shown(shown=args.progress):
        assignment = assign_on_paths(
            *snapshot,
            target=snapshot.target,
            assignor=args.assignor,
            settings=settings,
            paths=paths,
        )
        if folder is None:
            written = materialize(assignment).frame
        else:
            write_table(assignment, folder, "assignment", args.format)
            written = read_table(spark, folder, ASSIGNMENT)
    if not written.columns:  # JSON lines without a line have no columns
        written = empty_table(spark, ASSIGNMENT, cluster_id=has_cluster_id(members))
    members = paths.without_patterns(members)
    by_group = conform(members, MEMBERS).groupBy(*GROUP_KEY)
    assignors = by_group.agg(F.min("assignor").alias("assignor"))

    withheld = _withholding(owned, members, assignors, args.assignor)
    broken_rules = plan_violations(written, members, topics, withheld)
    if owned is not None and paths.has_hidden_topics:
        hidden = hidden_claims(members, topics, owned)
        fields = hidden.select(*(name for name in hidden.columns if name in (*GROUP_KEY, "topic")))
        broken_rules = broken_rules.join(
            fields.distinct().withColumn("rule", F.lit(UNKNOWN_TOPIC)),
            on=[*fields.columns, "rule"],
            how="left_anti",
        ).unionByName(hidden)
    violation_rows, row_counts = materialize(broken_rules, {"count": F.count(F.lit(1))})
    broken = []
    if row_counts["count"]:
        write_to(folder, args, violations=violation_rows)
        broken = first_rows(violation_rows, [*GROUP_KEY, "rule", "topic", "partition"], args.show)

    loads = balance(written, members, owned, topics)
    fields = _with_ways(loads, assignors, args.assignor, paths)
    sums = {
        "group_count": F.count(F.lit(1)),
        "member_count": F.coalesce(F.sum("member_count"), F.lit(0)),
        "partition_count": F.coalesce(F.sum("partition_count"), F.lit(0)),
        "idle_group_count": F.count_if(F.col("partition_count") == 0),
    }
    measured, totals = materialize(fields, sums)
    write_to(folder, args, balance=measured)
    if folder is not None:
        note_snapshot(spark, folder, args.snapshot)
    spread = F.col("max_assigned") - F.col("min_assigned")
    order = [spread.desc(), F.desc("stddev_assigned")]
    worst = first_rows(measured, [*order, *GROUP_KEY], args.show)
    return {
        **named_arguments(args, "snapshot", "output"),
        **{name: totals[name] for name in sums},
        "violation_count": row_counts["count"],
        "violations": broken,
        **misled_facts(paths, args.show, cluster_id=has_cluster_id(members)),
        "round_count": paths.rounds.total(),
        "rounds": dict(paths.rounds),
        "paths": _path_counts(measured, paths, totals["group_count"]),
        "groups_not_shown": totals["group_count"] - len(worst),
        "balance": worst,
        "assignments": _assignments(written, members, worst, args.show),
    }


def _withholding(
    owned: DataFrame | None, members: DataFrame, assignors: DataFrame, chosen: str | None
) -> DataFrame | None:
    """Return partitions that may stay unassigned: cooperative members still own them."""
    if owned is None or chosen not in (None, _COOPERATIVE):
        return None
    if chosen is not None:
        return owned
    cooperative = assignors.where(F.col("assignor") == _COOPERATIVE)
    claims = conform(owned, OWNED).join(cooperative, on=list(GROUP_KEY), how="left_semi")
    return restore_cluster_id(claims, has_cluster_id(members))


def _with_ways(
    measured: DataFrame, assignors: DataFrame, chosen: str | None, paths: Paths
) -> DataFrame:
    """Add assignor string, and path string: which way each group was computed."""
    loads, keys = fill_cluster_id(measured), list(GROUP_KEY)
    if chosen is None:
        loads = loads.join(assignors, on=keys, how="left")
    else:
        loads = loads.withColumn("assignor", F.lit(chosen))
    only, of_groups = paths.only(), paths.frame()
    if only is not None or of_groups is None:
        loads = loads.withColumn("path", F.lit(only).cast("string"))
    else:
        loads = loads.join(of_groups, on=keys, how="left")
    return restore_cluster_id(loads, has_cluster_id(measured))


def _path_counts(measured: DataFrame, paths: Paths, group_count: int) -> dict[str, int]:
    """Count the groups of each path."""
    only = paths.only()
    if only is not None:
        return {only: group_count}
    path_counts = measured.where("path IS NOT NULL").groupBy("path").count().collect()
    return {row["path"]: row["count"] for row in sorted(path_counts)}


def _assignments(
    assignment: DataFrame, members: DataFrame, shown: list[Facts], limit: int
) -> list[Facts]:
    """Return what each member of the shown groups would own."""
    if not shown:
        return []
    keys = [(row.get(CLUSTER_ID) or "", row["group_id"]) for row in shown]
    is_shown = is_group_of(keys)
    ranges = holdings(
        conform(assignment, ASSIGNMENT).where(is_shown),
        conform(members, MEMBERS).where(is_shown),
        limit=limit,
    )
    by_group: dict[tuple[str, str], list[Facts]] = {key: [] for key in keys}
    for row in sorted(ranges.collect(), key=itemgetter("member_id")):
        topics = topic_facts(row.topics or [])
        by_group[row.cluster_id, row.group_id].append(
            {
                "member_id": row.member_id,
                "partition_count": row.partition_count,
                "topics": topics,
                "topics_not_shown": row.topic_count - len(topics),
            }
        )
    return [
        {
            **{name: row[name] for name in (*GROUP_KEY, "assignor") if name in row},
            "members": by_group[key],
            "members_not_shown": row["member_count"] - len(by_group[key]),
        }
        for key, row in zip(keys, shown, strict=True)
    ]


class _Printer(logging.Handler):
    """Prints what is logged on the error stream."""

    def emit(self, record: logging.LogRecord) -> None:
        """Print it."""
        print(record.getMessage(), file=sys.stderr, flush=True)


@contextmanager
def _rounds_shown(*, shown: bool) -> Iterator[None]:
    """Show the rounds that the sticky assignors log meanwhile, if asked to."""
    log, printer = logging.getLogger("kassign_spark.assignors"), _Printer(logging.INFO)
    level = log.level
    if shown:
        log.addHandler(printer)
        log.setLevel(logging.INFO)
    try:
        yield
    finally:
        log.removeHandler(printer)
        log.setLevel(level)
