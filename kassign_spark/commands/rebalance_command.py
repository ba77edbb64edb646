"""``kassign-spark rebalance``: what every group goes through, round by round."""

import argparse
from operator import itemgetter

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from kassign_spark.assignors import ASSIGNORS
from kassign_spark.client.group_state import FAILING, INEXACT, NEVER_SETTLES, OK, WORST_FIRST
from kassign_spark.client.protocols import COOPERATIVE, EAGER
from kassign_spark.commands.choosing import named_arguments, settings_of
from kassign_spark.commands.common import (
    Facts,
    Outcome,
    first_rows,
    misled_facts,
    misled_lines,
    open_output,
    place_in,
    session_reading,
    write_to,
)
from kassign_spark.commands.documents import GROUP, one_of, record, rows
from kassign_spark.commands.parser import About, Parser
from kassign_spark.conforming import fill_cluster_id, has_cluster_id, restore_cluster_id
from kassign_spark.display import (
    Columns,
    counts,
    group_name,
    lay_out_rows,
    not_shown,
    plural,
    printable,
    table,
    written,
)
from kassign_spark.expressions import is_group_of
from kassign_spark.groups.paths import Paths
from kassign_spark.measures.violations import hidden_claims
from kassign_spark.plans.listener import listener_calls
from kassign_spark.plans.rebalance import rebalance, rebalance_on_paths
from kassign_spark.plans.summary import summarize
from kassign_spark.report.plan import VIOLATIONS
from kassign_spark.schemas import CLUSTER_ID, GROUP_KEY, VERDICTS
from kassign_spark.settings.computing import Settings
from kassign_spark.spark.iteration import materialize
from kassign_spark.tables.snapshots import Snapshot, read_snapshot

_COLUMNS = {
    "rounds": "rounds",
    "partitions": "partition_count",
    "moved": "moved_count",
    "paused": "paused_count",
    "verdict": "verdict",
}
ACTIONS = ("retained", "revoked", "assigned", "withheld")

DOCUMENT = record(
    "snapshot string, output string?, is_exact boolean, group_count int, partition_count int, "
    "moved_count int, paused_count int, max_rounds int, unsettled_count int, failing_count int, "
    "inexact_count int, misled_count int, hidden_count int, groups_not_shown int",
    misled=rows(VERDICTS),
    hidden=rows(VIOLATIONS),
    groups=rows(
        f"{GROUP}, rounds int?, partition_count int?, moved_count int?, paused_count int?, "
        "settles boolean?, detail string?, rounds_not_shown int",
        verdict=one_of(WORST_FIRST),
        by_round=rows("round int, retained int, revoked int, assigned int, withheld int"),
    ),
)
ABOUT = About(
    description="Follow the rebalance of every group of a snapshot until nothing is withheld:\n"
    "what each member keeps, gives up and receives, and what its rebalance listener receives.\n"
    "With --exact each round is the answer of Kafka's own client, which may also throw or\n"
    "never end: the table verdicts says so, and the table listener leaves such groups out.",
    finds="a group never settles, throws or never ends, claims mislead Kafka's own client, or "
    "members own topics that the snapshot does not have",
    example="kassign-spark rebalance examples/fleet --output build/rounds",
)


def add_options(parser: Parser) -> None:
    """Add what it takes."""
    parser.add_snapshot()
    parser.add_output("the tables steps, listener and summary")
    parser.add_assignor(ASSIGNORS)
    parser.add_argument(
        "--protocol",
        choices=(EAGER, COOPERATIVE),
        help="one protocol for all groups (default: the assignor's own)",
    )
    parser.add_argument(
        "--exact", action="store_true", help="answer each round exactly as Kafka's own client does"
    )
    parser.add_settings()
    parser.add_show("print at most N groups, and the rounds of each")


def run(args: argparse.Namespace) -> Outcome:
    """Run the command."""
    settings = settings_of(args)
    with (
        session_reading(args, f"rebalancing {args.snapshot}", args.snapshot) as spark,
        open_output(spark, args) as folder,
    ):
        facts = _follow(read_snapshot(args.snapshot, spark), folder, args, settings)
    bad = ("unsettled_count", "failing_count", "misled_count", "hidden_count")
    return Outcome(1 if any(facts[name] for name in bad) else 0, facts, _lines(facts))


def _follow(
    snapshot: Snapshot, folder: str | None, args: argparse.Namespace, settings: Settings
) -> Facts:
    options = {"assignor": args.assignor, "protocol": args.protocol}
    verdicts, paths = None, Paths()
    if args.exact:
        step_rows, verdicts = rebalance(*snapshot, target=snapshot.target, **options, exact=True)
        write_to(folder, args, verdicts=verdicts)
    else:
        step_rows = rebalance_on_paths(
            *snapshot, target=snapshot.target, **options, settings=settings, paths=paths
        )
        snapshot = snapshot._replace(members=paths.without_patterns(snapshot.members))
    steps = materialize(step_rows).frame
    write_to(folder, args, steps=steps)
    listening = snapshot.members if verdicts is None else _keep_answered(snapshot.members, verdicts)
    write_to(folder, args, listener=listener_calls(steps, listening, **options))
    summary = summarize(steps, snapshot.owned)
    measures = _totals()
    judged, totals = materialize(_add_verdicts(summary, verdicts), measures)
    # A group that has an answer in no round is judged, but has nothing to be summed up.
    of_steps = judged.where(F.col("rounds").isNotNull()).select(*summary.columns)
    write_to(folder, args, summary=of_steps)
    place = place_in(WORST_FIRST, "verdict")
    most = [F.desc(name) for name in ("paused_count", "moved_count", "rounds")]
    worst = first_rows(judged, [place, *most, *GROUP_KEY], args.show)
    return {
        **named_arguments(args, "snapshot", "output"),
        "is_exact": args.exact,
        **{name: totals[name] for name in measures},
        **misled_facts(paths, args.show, cluster_id=has_cluster_id(snapshot.members)),
        **_hidden_facts(snapshot, args.show, may_be=args.exact or paths.has_hidden_topics),
        "groups_not_shown": totals["group_count"] - len(worst),
        "groups": [
            {**row, **rounds}
            for row, rounds in zip(worst, _rounds(steps, worst, args.show), strict=True)
        ],
    }


def _hidden_facts(snapshot: Snapshot, limit: int, *, may_be: bool) -> Facts:
    """Count and collect what members own of topics that the snapshot lacks: no round has it."""
    members, topics, owned = snapshot
    if owned is None or not may_be:
        return {"hidden_count": 0, "hidden": []}
    hidden, row_counts = materialize(
        hidden_claims(members, topics, owned), {"rows": F.count(F.lit(1))}
    )
    return {
        "hidden_count": row_counts["rows"],
        "hidden": first_rows(hidden, [*GROUP_KEY, "topic", "member_id"], limit),
    }


def _keep_answered(members: DataFrame, verdicts: DataFrame) -> DataFrame:
    """Return members of the groups whose leader answers in every round; the others wait for it."""
    failing = fill_cluster_id(verdicts).where(F.col("verdict").isin(*FAILING)).select(*GROUP_KEY)
    others = fill_cluster_id(members).join(failing, on=list(GROUP_KEY), how="left_anti")
    return restore_cluster_id(others, has_cluster_id(members))


def _add_verdicts(summary: DataFrame, verdicts: DataFrame | None) -> DataFrame:
    """Add verdict and detail to the summary, in which groups without a step have no row."""
    if verdicts is None:
        settled = F.when(F.col("settles"), OK).otherwise(NEVER_SETTLES)
        return summary.withColumns({"verdict": settled, "detail": F.lit(None).cast("string")})
    judged = fill_cluster_id(verdicts).join(
        fill_cluster_id(summary), on=list(GROUP_KEY), how="left"
    )
    return restore_cluster_id(
        judged.select(*GROUP_KEY, *_COLUMNS.values(), "settles", "detail"), has_cluster_id(verdicts)
    )


def _totals() -> dict[str, Column]:
    summed = ("partition_count", "moved_count", "paused_count")
    return {
        "group_count": F.count(F.lit(1)),
        **{name: F.coalesce(F.sum(name), F.lit(0)) for name in summed},
        "max_rounds": F.coalesce(F.max("rounds"), F.lit(0)),
        "unsettled_count": F.count_if(F.col("verdict") == NEVER_SETTLES),
        "failing_count": F.count_if(F.col("verdict").isin(*FAILING)),
        "inexact_count": F.count_if(F.col("verdict") == INEXACT),
    }


def _rounds(steps: DataFrame, shown: list[Facts], limit: int) -> list[Facts]:
    """Count what happens in each round of the shown groups."""
    if not shown:
        return []
    names = [(row.get(CLUSTER_ID) or "", row["group_id"]) for row in shown]
    by_round = (
        fill_cluster_id(steps)
        .where(is_group_of(names))
        .groupBy(*GROUP_KEY, "round")
        .agg(*(F.count_if(F.col("action") == action).alias(action) for action in ACTIONS))
    )
    by_group: dict[tuple[str, str], list[Facts]] = {name: [] for name in names}
    for row in sorted(by_round.collect(), key=itemgetter("round")):
        by_group[row["cluster_id"], row["group_id"]].append(
            {name: row[name] for name in ("round", *ACTIONS)}
        )
    return [
        {
            "by_round": by_group[name][:limit],
            "rounds_not_shown": max(0, len(by_group[name]) - limit),
        }
        for name in names
    ]


def _lines(facts: Facts) -> list[str]:
    unsettled, failing = facts["unsettled_count"], facts["failing_count"]
    totals = (
        *counts(facts, "group", "partition"),
        f"{facts['moved_count']:,} moved",
        f"{facts['paused_count']:,} paused",
        f"at most {plural(facts['max_rounds'], 'round')}",
        *([f"{plural(unsettled, 'group')} never settling"] if unsettled else []),
        *([f"{plural(failing, 'group')} without an answer"] if failing else []),
    )
    lines = [", ".join(totals)]
    lines += lay_out_rows(facts["groups"], {"group": group_name, **_COLUMNS})
    lines += not_shown(
        facts["groups_not_shown"], "group", ", less disturbed,", shown=facts["group_count"]
    )
    for group in facts["groups"]:
        per_round = ([row["round"], *(row[a] for a in ACTIONS)] for row in group["by_round"])
        lines += ["", group_name(group)]
        if group["detail"]:
            lines.append(f"  {group['verdict']}: {printable(group['detail'])}")
        lines += table(["  round", *ACTIONS], per_round)
        if group["rounds_not_shown"]:
            lines.append(f"  ... {plural(group['rounds_not_shown'], 'more round')}")
    lines += misled_lines(facts)
    lines += _hidden_lines(facts)
    tables = "steps, listener, summary" + (", verdicts" if facts["is_exact"] else "")
    return lines + written(facts["output"], "the rounds are in", tables)


def _hidden_lines(facts: Facts) -> list[str]:
    if not facts["hidden_count"]:
        return []
    columns: Columns = {
        "group": group_name,
        "member": "member_id",
        "topic": "topic",
        "detail": "detail",
    }
    return [
        "",
        "members own partitions of topics that the table topics does not have; what happens to "
        "these is not known",
        *lay_out_rows(facts["hidden"], columns)[1:],
        *not_shown(
            facts["hidden_count"] - len(facts["hidden"]), "row", shown=facts["hidden_count"]
        ),
    ]
