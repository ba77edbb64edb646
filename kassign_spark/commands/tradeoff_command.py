"""``kassign-spark tradeoff``: how low the greatest load gets by number of moves."""

import argparse

from kassign_spark.assignors.weighted.sentences import times
from kassign_spark.commands.choosing import named_arguments
from kassign_spark.commands.common import Facts, Outcome, session_reading, write_tables
from kassign_spark.commands.documents import GROUP, record, rows
from kassign_spark.commands.parser import About, Parser
from kassign_spark.commands.weighted import (
    UNUSED_WEIGHTS,
    add_weights,
    inputs_of,
    options,
    read_weights,
    unused_facts,
    unused_lines,
)
from kassign_spark.display import group_name, lay_out_first_rows, plural, written
from kassign_spark.plans.by_weight import TRADEOFF, tradeoff
from kassign_spark.schemas import GROUP_KEY
from kassign_spark.tables.snapshots import read_snapshot

DOCUMENT = record(
    "snapshot string, output string?, group_count int, unused_weight_count int, "
    "groups_not_shown int",
    unused_weights=UNUSED_WEIGHTS,
    groups=rows(f"{GROUP}, group string, says string", points=rows(TRADEOFF)),
)
ABOUT = About(
    description="Show for every group how low its greatest load gets with how many moves.\n"
    "1x is the fair load: what everybody would have if weight could be divided at will.",
    finds="there are weights of groups, topics or partitions that do not exist",
    example="kassign-spark tradeoff examples/fleet --weights build/weights",
)


def add_options(parser: Parser) -> None:
    """Add what it takes."""
    add_weights(parser)
    parser.add_output("the table tradeoff")


def run(args: argparse.Namespace) -> Outcome:
    """Run the command."""
    search_options = options(args)
    with session_reading(args, f"tracing {args.snapshot}", *inputs_of(args)) as spark:
        members, topics, owned = read_snapshot(args.snapshot, spark)
        weights = read_weights(spark, args)
        curve = tradeoff(members, topics, weights, owned, **search_options)
        write_tables(spark, args, tradeoff=curve)
        keys: list[str] = [name for name in GROUP_KEY if name in curve.columns]
        starts = curve.where("moves = 0").orderBy(curve["skew"].desc(), *keys)
        shown = starts.limit(args.show).select(*keys)
        count = curve.where("moves = 0").count()
        rows = [row.asDict() for row in curve.join(shown, on=keys, how="left_semi").collect()]
        unused = unused_facts(args, weights, members, topics)
    groups = _gather_curves(rows)
    facts = {
        **named_arguments(args, "snapshot", "output"),
        "group_count": count,
        "groups_not_shown": count - len(groups),
        "groups": groups,
        **unused,
    }
    return Outcome(1 if facts["unused_weight_count"] else 0, facts, _lines(facts))


def _lines(facts: Facts) -> list[str]:
    lines = [f"{plural(facts['group_count'], 'group')} with weights"]
    lines += lay_out_first_rows(facts, "group", {"group": "group", "what moves would give": "says"})
    lines += unused_lines(facts)
    return lines + written(facts["output"], "the curves are in", "tradeoff")


def _group_line(points: list[Facts]) -> str:
    """Return one group's curve in a line: how far the knee gets, what more gives, and the bound."""
    first, last = points[0], points[-1]
    knee = next((point for point in points if point["is_knee"]), first)
    fair = first["max_load"] / first["skew"] if first["skew"] else 1.0
    floor = f"no plan below {times(first['bound'] / fair)}" if fair else ""
    if last["moves"] == 0:
        return f"0 moves: {times(first['skew'])}; {floor}"
    parts = [f"0 moves: {times(first['skew'])}"]
    if knee["moves"]:
        unit = "move" if knee["moves"] == 1 else "moves"
        parts = [f"{knee['moves']} {unit}: {times(first['skew'])} -> {times(knee['skew'])}"]
    near = [p for p in points if p["moves"] > knee["moves"] and p["skew"] <= last["skew"] * 1.01]
    if near:
        parts.append(f"{near[0]['moves'] - knee['moves']} more: {times(near[0]['skew'])}")
    return "; ".join([*parts, floor])


def _gather_curves(rows: list[Facts]) -> list[Facts]:
    """Return curves of groups, those first that a few moves help most."""
    groups: dict[str, list[Facts]] = {}
    for row in rows:
        groups.setdefault(group_name(row), []).append(row)
    group_facts = []
    for name, points in groups.items():
        points.sort(key=lambda point: point["moves"])
        facts: Facts = {k: points[0][k] for k in GROUP_KEY if k in points[0]}
        group_facts.append({**facts, "group": name, "says": _group_line(points), "points": points})
    return sorted(group_facts, key=lambda group: (-group["points"][0]["skew"], group["group"]))
