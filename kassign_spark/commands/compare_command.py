"""``kassign-spark compare``: what every assignor would do to every group, beside the optimum."""

import argparse
from collections.abc import Mapping
from operator import itemgetter

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from kassign_spark.client.group_state import FAILING, NEVER_SETTLES, WORST_FIRST
from kassign_spark.commands.choosing import named_arguments, settings_of
from kassign_spark.commands.common import Facts, Outcome, first_rows, session_reading, write_tables
from kassign_spark.commands.documents import GROUP, one_of, record, rows
from kassign_spark.commands.parser import About, Parser
from kassign_spark.commands.weighted import (
    UNUSED_WEIGHTS,
    add_source,
    inputs_of,
    read_weights,
    unused_facts,
    unused_lines,
)
from kassign_spark.conforming import fill_cluster_id
from kassign_spark.display import group_name, lay_out_rows, not_shown, plural, written
from kassign_spark.expressions import is_group_of
from kassign_spark.schemas import GROUP_KEY
from kassign_spark.spark.iteration import materialize
from kassign_spark.tables.snapshots import read_snapshot
from kassign_spark.whatif.compare import compare

_KEY = {"assignor": "assignor", "protocol": "protocol"}
_OF_BOTH = {**_KEY, "moved": "moved", "least": "least_moves", "paused": "paused"}
_OF_ALL = {
    **_OF_BOTH,
    "rounds": "max_rounds",
    "spread": "max_spread",
    "of a topic": "max_topic_spread",
    "cross-rack": "cross_rack_more",
    "best balance": "balanced_count",
    "failing": "failing_count",
}
_OF_GROUP = {
    **_OF_BOTH,
    "rounds": "rounds",
    "spread": "spread",
    "of a topic": "topic_spread",
    "cross-rack": "cross_rack_more",
    "squares": "sum_of_squares",
    "least squares": "least_sum_of_squares",
    "verdict": "verdict",
}
_LOADS_OF_ALL = {
    "load": "max_load_skew",
    "least load": "max_least_skew",
    "moved weight": "moved_weight",
}
_LOADS_OF_GROUP = {
    "max load": "max_load",
    "load": "load_skew",
    "no load below": "load_bound",
    "moved weight": "moved_weight",
}
"""Columns that weights add; a load is relative to the fair load of its group, so 1 is even."""

DOCUMENT = record(
    "snapshot string, output string?, is_exact boolean, weights string?, group_count int, "
    "unused_weight_count int, groups_not_shown int",
    unused_weights=UNUSED_WEIGHTS,
    assignors=rows(
        "assignor string, protocol string, moved int?, least_moves int?, paused int?, "
        "max_rounds int?, max_spread int?, max_topic_spread int?, cross_rack_more int?, "
        "balanced_count int, failing_count int, max_load_skew? double?, max_least_skew? double?, "
        "moved_weight? double?"
    ),
    groups=rows(
        GROUP,
        by_assignor=rows(
            "assignor string, protocol string, moved int?, least_moves int?, paused int?, "
            "rounds int?, spread int?, topic_spread int?, cross_rack_more int?, "
            "sum_of_squares int?, least_sum_of_squares int?, detail string?, max_load? double?, "
            "load_skew? double?, load_bound? double?, moved_weight? double?",
            verdict=one_of(WORST_FIRST),
        ),
    ),
)
ABOUT = About(
    description="Follow a rebalance of every group under every assignor of Kafka, including\n"
    "those of the new protocol (protocol consumer). Show how many partitions move and pause,\n"
    "in how many rounds, and how even the result is, for all groups together and for each,\n"
    "next to the fewest possible moves at the best balance.",
    finds="there are weights of groups, topics or partitions that do not exist",
    example="kassign-spark compare examples/fleet",
)


def add_options(parser: Parser) -> None:
    """Add what it takes."""
    parser.add_snapshot()
    parser.add_output("the table comparison")
    parser.add_argument(
        "--exact", action="store_true", help="answer as Kafka's own client does, also if badly"
    )
    parser.add_settings()
    add_source(parser, required=False)
    parser.add_show("print at most N groups, those first in which most moves")


def run(args: argparse.Namespace) -> Outcome:
    """Run the command."""
    settings = settings_of(args)
    with session_reading(args, f"comparing {args.snapshot}", *inputs_of(args)) as spark:
        snapshot = read_snapshot(args.snapshot, spark)
        weights = None if args.weights is None else read_weights(spark, args)
        comparison = compare(
            *snapshot,
            exact=args.exact,
            settings=settings,
            weights=weights,
            missing_weight=args.missing_weight,
            base_weight=args.base_weight,
        )
        compared = materialize(comparison).frame
        write_tables(spark, args, comparison=compared)
        facts = _facts(compared, args)
        facts |= unused_facts(args, weights, snapshot.members, snapshot.topics)
    return Outcome(1 if facts["unused_weight_count"] else 0, facts, _lines(facts))


def _facts(compared: DataFrame, args: argparse.Namespace) -> Facts:
    is_weighed = args.weights is not None
    sums = _sums(is_weighed)
    totals = compared.groupBy(*_KEY).agg(
        F.count("*").alias("group_count"), *(column.alias(name) for name, column in sums.items())
    )
    rows = [row.asDict() for row in sorted(totals.collect(), key=itemgetter(*_KEY))]
    count = rows[0]["group_count"] if rows else 0
    most = (
        fill_cluster_id(compared)
        .groupBy(*GROUP_KEY)
        .agg(F.max("moved").alias("moved"), F.max("paused").alias("paused"))
    )
    shown = first_rows(most, [F.col("moved").desc(), F.col("paused").desc(), *GROUP_KEY], args.show)
    return {
        **named_arguments(args, "snapshot", "output"),
        "is_exact": args.exact,
        "weights": args.weights,
        "group_count": count,
        "assignors": [{k: v for k, v in row.items() if k != "group_count"} for row in rows],
        "groups_not_shown": count - len(shown),
        "groups": _groups(compared, shown, _OF_GROUP | (_LOADS_OF_GROUP if is_weighed else {})),
    }


def _sums(is_weighed: bool) -> dict[str, Column]:
    failing = F.col("verdict").isin(*FAILING, NEVER_SETTLES)
    is_balanced = F.col("sum_of_squares") <= F.coalesce("least_sum_of_squares", F.lit(0))
    sums = {
        **{name: F.sum(name) for name in ("moved", "least_moves", "paused")},
        **{f"max_{name}": F.max(name) for name in ("rounds", "spread", "topic_spread")},
        "cross_rack_more": F.sum("cross_rack_more"),
        "balanced_count": F.count_if(~failing & is_balanced),
        "failing_count": F.count_if(failing),
    }
    if is_weighed:
        sums["max_load_skew"] = F.max("load_skew")
        sums["max_least_skew"] = F.max(F.expr("load_bound * load_skew / nullif(max_load, 0.0D)"))
        sums["moved_weight"] = F.sum("moved_weight")
    return sums


def _groups(compared: DataFrame, shown: list[Facts], columns: Mapping[str, str]) -> list[Facts]:
    """Collect the rows of the groups to show."""
    if not shown:
        return []
    names = [(row["cluster_id"], row["group_id"]) for row in shown]
    shown_rows = fill_cluster_id(compared).where(is_group_of(names)).collect()
    by_name: dict[tuple[str, str], list[Facts]] = {name: [] for name in names}
    for row in sorted(shown_rows, key=itemgetter(*_KEY)):
        by_name[row["cluster_id"], row["group_id"]].append(
            {name: row[name] for name in (*columns.values(), "detail")}
        )
    return [
        {**{key: row[key] for key in GROUP_KEY if row[key]}, "by_assignor": by_name[name]}
        for name, row in zip(names, shown, strict=True)
    ]


def _lines(facts: Facts) -> list[str]:
    lines = [plural(facts["group_count"], "group")]
    is_weighed = facts["weights"] is not None
    of_all = _OF_ALL | (_LOADS_OF_ALL if is_weighed else {})
    of_group = _OF_GROUP | (_LOADS_OF_GROUP if is_weighed else {})
    lines += lay_out_rows(facts["assignors"], of_all)
    for group in facts["groups"]:
        lines += ["", group_name(group), *lay_out_rows(group["by_assignor"], of_group)[1:]]
    if facts["groups_not_shown"]:
        lines += ["", *not_shown(facts["groups_not_shown"], "group", shown=facts["group_count"])]
    lines += unused_lines(facts)
    return lines + written(facts["output"], "the table comparison is in")
