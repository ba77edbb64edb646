"""``kassign-spark diff``: what changes hands between two plans, or a snapshot and a plan."""

import argparse

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from kassign_spark.commands.choosing import named_arguments
from kassign_spark.commands.common import (
    Facts,
    Outcome,
    first_rows,
    read_assigned,
    session_reading,
    topic_facts,
    write_tables,
)
from kassign_spark.commands.documents import GROUP, TOPIC_RANGES, one_of, record, rows
from kassign_spark.commands.parser import About, Parser
from kassign_spark.conforming import fill_cluster_id
from kassign_spark.display import (
    cell,
    group_name,
    lay_out_rows,
    not_shown,
    plural,
    table,
    topic_ranges,
    written,
)
from kassign_spark.measures.partition_ranges import with_ranges
from kassign_spark.plans.diff import diff
from kassign_spark.schemas import CLUSTER_ID, GROUP_KEY
from kassign_spark.spark.iteration import materialize

CHANGES = ("kept", "moved", "new", "dropped")

DOCUMENT = record(
    "before string, after string, output string?, group_count int, changed_group_count int, "
    "kept_count int, moved_count int, new_count int, dropped_count int, groups_not_shown int",
    groups=rows(
        f"{GROUP}, kept int, moved int, new int, dropped int",
        changes=rows(
            "from_member string?, to_member string?, partition_count int",
            change=one_of(CHANGES[1:]),
            topics=TOPIC_RANGES,
        ),
    ),
)
ABOUT = About(
    description="Compare who has which partition before and after. BEFORE and AFTER are\n"
    "each a plan (its table assignment) or a snapshot (its table owned).",
    example="kassign-spark diff examples/fleet build/plan",
)


def add_options(parser: Parser) -> None:
    """Add what it takes."""
    parser.add_argument("before", metavar="BEFORE", help="folder of a plan or a snapshot")
    parser.add_argument("after", metavar="AFTER", help="folder of a plan or a snapshot")
    parser.add_output("the table diff")
    parser.add_show("print at most N groups that change, and changes of each")


def run(args: argparse.Namespace) -> Outcome:
    """Run the command."""
    activity = f"comparing {args.before} and {args.after}"
    with session_reading(args, activity, args.before, args.after) as spark:
        before, after = read_assigned(spark, args.before, args.after)
        compared = materialize(diff(before, after)).frame
        write_tables(spark, args, diff=compared)
        facts = _facts(compared, args)
    return Outcome(0, facts, _lines(facts))


def _facts(compared: DataFrame, args: argparse.Namespace) -> Facts:
    keys = [name for name in GROUP_KEY if name in compared.columns]
    counts = {change: F.count_if(F.col("change") == change) for change in CHANGES}
    changed = F.col("moved") + F.col("new") + F.col("dropped")
    by_group, totals = materialize(
        compared.groupBy(*keys).agg(*(count.alias(name) for name, count in counts.items())),
        {
            "group_count": F.count(F.lit(1)),
            "changed_group_count": F.count_if(changed > 0),
            **{f"{name}_count": F.coalesce(F.sum(name), F.lit(0)) for name in CHANGES},
        },
    )
    most = first_rows(by_group.where(changed > 0), [changed.desc(), *keys], args.show)
    return {
        **named_arguments(args, "before", "after", "output"),
        **totals,
        "groups_not_shown": totals["changed_group_count"] - len(most),
        "groups": [
            {**row, "changes": changes}
            for row, changes in zip(most, _changes(compared, most, args.show), strict=True)
        ],
    }


def _changes(compared: DataFrame, shown: list[Facts], limit: int) -> list[list[Facts]]:
    """Return for each shown group the partitions that change hands, first rows by member."""
    if not shown:
        return []
    names = [(row.get(CLUSTER_ID) or "", row["group_id"]) for row in shown]
    shown_names = compared.sparkSession.createDataFrame(names, "cluster_id string, group_id string")
    changed = fill_cluster_id(compared).where(F.col("change") != "kept")
    of_shown = changed.join(F.broadcast(shown_names), on=list(GROUP_KEY), how="left_semi")
    ways = ["change", "from_member", "to_member"]
    spans = with_ranges(of_shown, [*GROUP_KEY, *ways, "topic"], limit=limit)
    by_way = spans.groupBy(*GROUP_KEY, *ways).agg(
        F.sum("partition_count").alias("partition_count"),
        F.sort_array(F.collect_list(F.struct("topic", "partition_count", "ranges"))).alias(
            "topics"
        ),
    )
    place = F.row_number().over(Window.partitionBy(*GROUP_KEY).orderBy(*ways))
    by_group: dict[tuple[str, str], list[Facts]] = {name: [] for name in names}
    first = by_way.withColumn("place", place).where(F.col("place") <= limit)
    for row in first.orderBy(*GROUP_KEY, "place").collect():
        by_group[row["cluster_id"], row["group_id"]].append(
            {
                **{name: row[name] for name in (*ways, "partition_count")},
                "topics": topic_facts(row.topics[:limit]),
            }
        )
    return [by_group[name] for name in names]


def _lines(facts: Facts) -> list[str]:
    counts = ", ".join(f"{facts[f'{name}_count']:,} {name}" for name in CHANGES)
    total = sum(facts[f"{name}_count"] for name in CHANGES)
    lines = [
        f"{plural(facts['group_count'], 'group')}, {plural(total, 'partition')}: {counts}; "
        f"{plural(facts['changed_group_count'], 'group')} changed"
    ]
    lines += lay_out_rows(
        facts["groups"], {"group": group_name, **{name: name for name in CHANGES}}
    )
    lines += not_shown(
        facts["groups_not_shown"], "changed group", shown=facts["changed_group_count"]
    )
    for group in facts["groups"]:
        lines += ["", group_name(group), *_change_lines(group)]
    return lines + written(facts["output"], "the table diff is in")


def _change_lines(group: Facts) -> list[str]:
    rows = [
        [
            f"  {change['change']}",
            f"{cell(change['from_member'])} -> {cell(change['to_member'])}",
            "  ".join(topic_ranges(topic) for topic in change["topics"]),
        ]
        for change in group["changes"]
    ]
    shown = sum(change["partition_count"] for change in group["changes"])
    hidden = group["moved"] + group["new"] + group["dropped"] - shown
    lines = table(["", "", ""], rows)[1:]
    return [*lines, f"  ... {plural(hidden, 'more partition')}"] if hidden else lines
