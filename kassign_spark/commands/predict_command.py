"""``kassign-spark predict``: what Kafka itself will do, and the groups in which that goes wrong."""

import argparse

from pyspark.sql import functions as F

from kassign_spark.client.group_state import (
    DRAWN,
    FAILING,
    INEXACT,
    NEVER_ENDS,
    NEVER_SETTLES,
    OK,
    STARVES,
    THROWS,
    UNDEFINED,
    WORST_FIRST,
)
from kassign_spark.client_libraries import CLIENTS
from kassign_spark.commands.choosing import named_arguments
from kassign_spark.commands.common import (
    Facts,
    Outcome,
    first_rows,
    place_in,
    session_reading,
    write_tables,
)
from kassign_spark.commands.documents import record, rows
from kassign_spark.commands.parser import About, Parser
from kassign_spark.display import Columns, group_name, lay_out_rows, not_shown, plural, written
from kassign_spark.plans.predict import PREDICTED, predict
from kassign_spark.schemas import GROUP_KEY, VERDICTS
from kassign_spark.spark.iteration import materialize
from kassign_spark.tables.snapshots import read_snapshot

_VERDICT_WORDS = {
    OK: "answered exactly",
    INEXACT: "maybe otherwise",
    THROWS: "throwing",
    NEVER_ENDS: "never ending",
    NEVER_SETTLES: "never settling",
    STARVES: "starving",
    UNDEFINED: "undefined",
    DRAWN: "drawn by lot",
}
_ALWAYS_SHOWN = (OK, INEXACT, THROWS, NEVER_ENDS)
"""Verdicts that any fleet may have; the others are of the new protocol and of other clients."""

DOCUMENT = record(
    "snapshot string, output string?, group_count int, groups_not_shown int",
    ", ".join(f"{verdict}_count int" for verdict in _VERDICT_WORDS) + ", noted_count int",
    groups=rows(VERDICTS),
)
ABOUT = About(
    description="Give the exact answer of Kafka's Java client for every group's next\n"
    "rebalance, and a verdict: ok, throws, never_ends, or inexact if something that decides\n"
    "is unknown or not modelled. Groups whose members name another client (column client)\n"
    "get that client's answer, or starves, undefined or drawn. Groups of the new protocol get\n"
    "their coordinator's answer, and never_settles if their members' votes for an assignor tie.",
    finds="a group has no answer or never settles, gets nothing, asks for topics that do not "
    "exist, or gets partitions that do not exist",
    example="kassign-spark predict examples/fleet",
)


def add_options(parser: Parser) -> None:
    """Add what it takes."""
    parser.add_snapshot()
    parser.add_output("the tables assignment and verdicts")
    parser.add_assignor(PREDICTED)
    parser.add_argument(
        "--leader",
        metavar="CLIENT",
        choices=CLIENTS,
        help="who leads groups whose members run several clients, if is_leader is not known: "
        f"one of {', '.join(CLIENTS)}",
    )
    parser.add_show("print at most N groups that are not ok, or of which there is something to say")


def run(args: argparse.Namespace) -> Outcome:
    """Run the command."""
    with session_reading(args, f"predicting {args.snapshot}", args.snapshot) as spark:
        snapshot = read_snapshot(args.snapshot, spark)
        assignment, verdict_rows = predict(
            *snapshot, target=snapshot.target, assignor=args.assignor, leader=args.leader
        )
        counts = {verdict: F.count_if(F.col("verdict") == verdict) for verdict in _VERDICT_WORDS}
        is_noted = (F.col("verdict") == OK) & F.col("detail").isNotNull()
        verdicts, totals = materialize(verdict_rows, {**counts, "noted": F.count_if(is_noted)})
        noted = totals.pop("noted")
        write_tables(spark, args, assignment=assignment, verdicts=verdicts)
        order = place_in(WORST_FIRST, "verdict")
        odd = first_rows(
            verdicts.where((F.col("verdict") != OK) | is_noted), [order, *GROUP_KEY], args.show
        )
    facts = {
        **named_arguments(args, "snapshot", "output"),
        "group_count": sum(totals.values()),
        **{f"{verdict}_count": totals[verdict] for verdict in _VERDICT_WORDS},
        "noted_count": noted,
        "groups_not_shown": sum(totals.values()) - totals[OK] + noted - len(odd),
        "groups": odd,
    }
    failing = noted or any(totals[verdict] for verdict in (*FAILING, NEVER_SETTLES))
    return Outcome(1 if failing else 0, facts, _lines(facts))


def _lines(facts: Facts) -> list[str]:
    counts = (
        f"{facts[f'{verdict}_count']:,} {words}"
        for verdict, words in _VERDICT_WORDS.items()
        if verdict in _ALWAYS_SHOWN or facts[f"{verdict}_count"]
    )
    noted = facts["noted_count"]
    note = f"; of these {noted:,} with something amiss" if noted else ""
    lines = [f"{plural(facts['group_count'], 'group')}: {', '.join(counts)}{note}"]
    columns: Columns = {"group": group_name, "verdict": "verdict", "detail": "detail"}
    lines += lay_out_rows(facts["groups"], columns)
    hidden = facts["groups_not_shown"]
    lines += not_shown(hidden, "group", shown=len(facts["groups"]) + hidden)
    return lines + written(facts["output"], "the answers are in", "assignment, verdicts")
