"""``kassign-spark advise``: what would help the worst groups, and what it would cost."""

import argparse
from itertools import groupby
from operator import itemgetter

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from kassign_spark.commands.choosing import named_arguments, only_group
from kassign_spark.commands.common import Facts, Outcome, session_reading, write_tables
from kassign_spark.commands.documents import GROUP, record, rows
from kassign_spark.commands.parser import About, Parser
from kassign_spark.conforming import fill_cluster_id
from kassign_spark.display import group_name, not_shown, plural, printable, written
from kassign_spark.inputs.rules import is_consumer_group
from kassign_spark.schemas import CLUSTER_ID, GROUP_KEY
from kassign_spark.spark.iteration import materialize
from kassign_spark.tables.snapshots import read_snapshot
from kassign_spark.whatif.advise import advise

_SHOWN_OF_GROUP = 3
"""Changes in a group's paragraph: the best by price, and the one that gains most."""

DOCUMENT = record(
    "snapshot string, output string?, group string?, group_count int, consumer_group_count int, "
    "advised_count int, "
    "restarting_count int, groups_not_shown int",
    groups=rows(
        f"{GROUP}, max_before int, spread_before int, idle_before int, reason string",
        changes=rows(
            "rank int, change string, detail string, assignor string?, member_ids array<string>?, "
            "topics array<string>?, member_count int?, num_partitions int?, max_after int, "
            "spread_after int, idle_after int, moved int, paused int, rounds int, gain int, "
            "restart_moved int?"
        ),
    ),
)
ABOUT = About(
    description="Try other assignors, more subscriptions, more or fewer members, and more\n"
    "partitions on every group, each computed with the real assignors. Print, worst group\n"
    "first, the changes that gain most for what they move.",
    example="kassign-spark advise examples/fleet --group orders-notifications",
)


def add_options(parser: Parser) -> None:
    """Add what it takes."""
    parser.add_snapshot()
    parser.add_group()
    parser.add_output("the table advice")
    parser.add_show("print at most N groups, the worst first")


def run(args: argparse.Namespace) -> Outcome:
    """Run the command."""
    with session_reading(args, f"advising {args.snapshot}", args.snapshot) as spark:
        snapshot = only_group(read_snapshot(args.snapshot, spark), args.group)
        advice = materialize(advise(*snapshot)).frame
        write_tables(spark, args, advice=advice)
        count, groups = _worst(advice, args.show)
        restarting = advice.where("restart_moved > 0").count()
        of_new = is_consumer_group() if "group_type" in snapshot.members.columns else F.lit(False)
        advice_rows = (
            fill_cluster_id(snapshot.members).groupBy(*GROUP_KEY).agg(F.max(of_new).alias("new"))
        )
        totals = advice_rows.agg(
            F.count(F.lit(1)).alias("groups"), F.count_if("new").alias("new")
        ).collect()[0]
    facts: Facts = {
        **named_arguments(args, "snapshot", "output", "group"),
        "group_count": totals["groups"],
        "consumer_group_count": totals["new"],
        "advised_count": count,
        "restarting_count": restarting,
        "groups_not_shown": count - len(groups),
        "groups": groups,
    }
    return Outcome(0, facts, _lines(facts))


def _worst(advice: DataFrame, show: int) -> tuple[int, list[Facts]]:
    """Return the number of groups, and the first of them with their rows."""
    keyed = fill_cluster_id(advice)
    worst: list[str | Column] = [F.desc("spread_before"), F.desc("max_before"), *GROUP_KEY]
    is_first = (F.col("rank") == 1) & (F.col("gain") > 0)
    firsts, totals = materialize(keyed.where(is_first), {"groups": F.count(F.lit(1))})
    names = firsts.orderBy(*worst).limit(show).select(*GROUP_KEY)
    rows = keyed.join(F.broadcast(names), on=list(GROUP_KEY), how="left_semi")
    listed = [row.asDict(recursive=True) for row in rows.orderBy(*worst, "rank").collect()]
    about = (*GROUP_KEY, "max_before", "spread_before", "idle_before", "reason")
    groups: list[Facts] = []
    for _, of_group in groupby(listed, key=itemgetter(*GROUP_KEY)):
        changes = list(of_group)
        first = changes[0]
        groups.append(
            {
                **{name: first[name] for name in about if name != CLUSTER_ID or first[name]},
                "changes": [{n: v for n, v in row.items() if n not in about} for row in changes],
            }
        )
    return totals["groups"], groups


def _lines(facts: Facts) -> list[str]:
    count, advised = facts["group_count"], facts["advised_count"]
    lines = [f"{plural(count, 'group')}: something would make {advised:,} more even"]
    if facts["consumer_group_count"]:
        lines.append(
            f"{plural(facts['consumer_group_count'], 'group')} of the new protocol left out: their "
            "coordinator assigns, and what is tried here are assignors of clients"
        )
    restarting = facts["restarting_count"]
    if restarting:
        lines.append(f"a restart moves partitions in {restarting:,}: group.instance.id keeps them")
    for group in facts["groups"]:
        lines += ["", *_paragraph(group)]
    if facts["groups_not_shown"]:
        lines += ["", *not_shown(facts["groups_not_shown"], "group", shown=advised)]
    return lines + written(facts["output"], "the table advice is in")


def _paragraph(group: Facts) -> list[str]:
    """Explain why a group is as it is, and what would help."""
    changes = group["changes"]
    shown = _select_changes(changes)
    most, spread = group["max_before"], group["spread_before"]
    lines = [
        f"{group_name(group)}: {plural(most, 'partition')} at most, {most - spread:,} at least; "
        f"{printable(group['reason'])}"
    ]
    for row in shown:
        effect = f": {_effect(group, row)}" if row["gain"] else ""
        lines.append(f"  {row['rank']}. {printable(row['detail'])}{effect}")
    hidden = len(changes) - len(shown)
    if hidden:
        lines.append(f"  {plural(hidden, 'more change')} would help (--json has all)")
    return lines


def _select_changes(changes: list[Facts]) -> list[Facts]:
    """Pick the first ones by rank, the one that gains most always among them."""
    best = max(changes, key=lambda row: (row["gain"], -row["rank"]))
    first = [row for row in changes if row is not best][: _SHOWN_OF_GROUP - 1]
    return sorted([*first, best], key=lambda row: int(row["rank"]))


def _effect(group: Facts, row: Facts) -> str:
    """Return what a change would lead to."""
    least = row["max_after"] - row["spread_after"]
    after = f"{row['max_after']:,} at most, {least:,} at least"
    idle = group["idle_before"] - row["idle_after"]
    costs = (
        f"{plural(idle, 'member')} less with nothing" if idle > 0 else "",
        f"moves {row['moved']:,}",
        f"pauses {row['paused']:,}",
        f"in {plural(row['rounds'], 'round')}",
    )
    return f"{after}; {', '.join(filter(None, costs))}"
