"""``kassign-spark simulate``: let events happen to a snapshot, and see what they start."""

import argparse
import textwrap
from collections.abc import Sequence
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from kassign_spark.commands.choosing import settings_of
from kassign_spark.commands.common import (
    Facts,
    Outcome,
    first_rows,
    open_output,
    session_reading,
    write_to,
)
from kassign_spark.commands.documents import GROUP, one_of, optional, record, rows
from kassign_spark.commands.parser import About, Parser
from kassign_spark.conforming import has_cluster_id
from kassign_spark.display import counts, group_name, table, written
from kassign_spark.inputs.rules import CONSUMER
from kassign_spark.schemas import GROUP_KEY
from kassign_spark.settings.computing import Settings
from kassign_spark.simulation.event_file import EventFile, read_events
from kassign_spark.simulation.events import KINDS
from kassign_spark.simulation.simulate import simulate, summarize_events
from kassign_spark.simulation.sweep import sweep
from kassign_spark.spark.iteration import materialize
from kassign_spark.tables.snapshots import Snapshot, read_snapshot

_EVENT_COLUMNS = {
    "event": "event",
    "kind": "kind",
    "rebalance": "rebalance",
    "rounds": "rounds",
    "moved": "moved_count",
    "paused": "paused_count",
    "stopped": "stopped_count",
    "noticed in": "noticed_within_ms",
    "computed in": "computed_within_ms",
    "epoch": "group_epoch",
    "verdict": "verdict",
    "why": "reason",
    "how sure": "detail",
}
_SWEEP_COLUMNS = {
    "variant": "variant",
    "members": "member_count",
    "partitions": "partition_count",
    "min": "min_assigned",
    "max": "max_assigned",
    "idle": "idle_count",
    "moved": "moved_count",
    "paused": "paused_count",
    "rounds": "rounds",
    "note": "detail",
}


def _describe_columns(kind: str) -> str:
    """List in lines of help the columns that an event of this kind needs and [may have]."""
    needs, may = (", ".join(names) for names in (KINDS[kind].needs, KINDS[kind].may))
    text = f"  {kind}: {needs}" + (f" [{may}]" if may else "")
    return textwrap.fill(text, 90, subsequent_indent="    ") + "\n"


DOCUMENT = optional(
    record(
        "snapshot string, events_file string, output string?, event_count int, "
        "rebalance_count int, moved_count int, unsettled_count int, misled_count int, "
        "events_not_shown? int, "
        "sweep_not_shown? int"
    ),
    events=rows(
        f"{GROUP}, event int, stage int, rebalance boolean, reason string, assignor string?, "
        "protocol string?, noticed_within_ms int?, joined_within_ms int?, "
        "computed_within_ms int?, settled_within_ms int?, group_epoch int?, verdict string?, "
        "detail string?, rounds int, partition_count int, moved_count int, paused_count int, "
        "paused_member_count int, stopped_count int, settles boolean",
        kind=one_of(list(KINDS)),
    ),
    sweep=rows(
        f"{GROUP}, sweep int, variant string, member_change int, partition_times int, "
        "partition_more int, member_count int, partition_count int?, min_assigned int?, "
        "max_assigned int?, idle_count int?, moved_count int?, paused_count int?, rounds int?, "
        "settles boolean?, detail string?"
    ),
)
ABOUT = About(
    description="Apply events to the groups of a snapshot, one after the other. Show what\n"
    "starts a rebalance and why, or why not, how soon it is noticed, the rounds it takes,\n"
    "what moves and who pauses. Each event starts from the state that the one before left.\n\n"
    "The file is YAML (.yaml, .yml) with a list of events, or with the sections timeouts,\n"
    "events and sweeps; or JSON with one event on each line. An event has a kind and:\n"
    + "".join(_describe_columns(kind) for kind in KINDS)
    + "Any event may have its own timeouts, such as session_timeout_ms; if the snapshot has\n"
    "several clusters, it needs cluster_id. A sweep asks a what-if question: members: -3..+3,\n"
    "partitions: x2.",
    finds="a group never settles, or claims mislead Kafka's own client",
    example="kassign-spark simulate examples/fleet --events examples/events.yaml",
)


def add_options(parser: Parser) -> None:
    """Add what it takes."""
    parser.add_snapshot()
    parser.add_argument("--events", metavar="FILE", required=True, help="what happens, in order")
    parser.add_output("the tables steps and events, and sweep where the file has sweeps")
    parser.add_settings()
    parser.add_show("print at most N events with their groups, and variants")


def run(args: argparse.Namespace) -> Outcome:
    """Run the command."""
    settings = settings_of(args)
    event_file = read_events(args.events)
    with (
        session_reading(args, f"simulating {args.events}", args.snapshot) as spark,
        open_output(spark, args) as folder,
    ):
        snapshot = read_snapshot(args.snapshot, spark)
        facts = _simulate(spark, snapshot, event_file, folder, args, settings)
    is_bad = facts["unsettled_count"] or facts["misled_count"]
    return Outcome(1 if is_bad else 0, facts, _lines(facts))


def _simulate(
    spark: SparkSession,
    snapshot: Snapshot,
    event_file: EventFile,
    folder: str | None,
    args: argparse.Namespace,
    settings: Settings,
) -> Facts:
    tables: dict[str, tuple[DataFrame, Sequence[str | Column], dict[str, Column]]] = {}
    if event_file.rows:
        events = event_file.events(spark, cluster_id=has_cluster_id(snapshot.members))
        steps = simulate(
            *snapshot,
            events,
            target=snapshot.target,
            timeouts=event_file.timeouts,
            settings=settings,
        )
        write_to(folder, args, steps=steps)
        most_first = (F.col("rebalance").desc(), F.col("moved_count").desc())
        sums = {
            "rebalance_count": F.count_if("rebalance"),
            "moved_count": F.coalesce(F.sum("moved_count"), F.lit(0)),
            # Classic groups have a verdict only where claims mislead Kafka's client.
            "misled_count": F.count_if(
                (F.col("protocol") != CONSUMER) & F.col("verdict").isNotNull()
            ),
        }
        by_event: list[str | Column] = ["event", "stage", *most_first, *GROUP_KEY]
        tables["events"] = (summarize_events(steps), by_event, sums)
    if event_file.sweeps:
        answers = sweep(*snapshot, event_file.sweeps, target=snapshot.target, settings=settings)
        by_variant = ("partition_times", "partition_more", "member_change")
        tables["sweep"] = (answers, ["sweep", *GROUP_KEY, *by_variant], {})
    facts: Facts = {
        "snapshot": args.snapshot,
        "events_file": args.events,
        "output": args.output,
        "event_count": len(event_file.rows),
        "rebalance_count": 0,
        "moved_count": 0,
        "unsettled_count": 0,
        "misled_count": 0,
    }
    of_both = {"rows": F.count(F.lit(1)), "unsettled": F.count_if(~F.col("settles"))}
    for name, (frame, order, sums) in tables.items():
        table, row_counts = materialize(frame, of_both | sums)
        write_to(folder, args, **{name: table})
        rows = first_rows(table, order, args.show)
        facts[name] = rows
        facts[f"{name}_not_shown"] = row_counts["rows"] - len(rows)
        facts["unsettled_count"] += row_counts["unsettled"]
        facts |= {name_of_sum: row_counts[name_of_sum] for name_of_sum in sums}
    return facts


def _lines(facts: Facts) -> list[str]:
    lines: list[str] = []
    if "events" in facts:
        totals = (
            *counts(facts, "event", "rebalance"),
            f"{facts['moved_count']:,} moved",
            *([f"{facts['unsettled_count']:,} not settling"] if facts["unsettled_count"] else []),
        )
        lines += [", ".join(totals), "", *_table(facts, "events", _EVENT_COLUMNS)]
    if "sweep" in facts:
        lines += [*([""] if lines else []), *_table(facts, "sweep", _SWEEP_COLUMNS)]
    names = [name for name in ("events", "sweep") if name in facts]
    tables = ", ".join(["steps", *names] if "events" in facts else names)
    return lines + written(facts["output"], "in", tables)


def _table(facts: Facts, name: str, columns: dict[str, str]) -> list[str]:
    rows, hidden = facts[name], facts[f"{name}_not_shown"]
    shown = [name for name, column in columns.items() if any(r[column] is not None for r in rows)]
    first, *others = shown or list(columns)
    body = (
        [
            _format_column(row, columns[first]),
            group_name(row),
            *(_format_column(row, columns[n]) for n in others),
        ]
        for row in rows
    )
    lines = table([first, "group", *others], body)
    if hidden:
        lines.append(f"{hidden:,} more not shown (--show {hidden + len(rows)} shows all)")
    return lines


def _format_column(row: dict[str, Any], column: str) -> object:
    value = row[column]
    if column == "event" and row["stage"] > 1:
        return f"{value}, {row['stage']}nd stage"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if column.endswith("_ms") and value is not None:
        return "at once" if value == 0 else f"{value / 1000:g} s"
    return value
