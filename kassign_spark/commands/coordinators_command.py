"""``kassign-spark coordinators``: which broker each group asks, and how they are loaded."""

import argparse

from pyspark.sql import functions as F

from kassign_spark.brokers.coordinator import (
    DEFAULT_OFFSETS_PARTITIONS,
    coordinator_load,
    coordinators,
)
from kassign_spark.commands.choosing import named_arguments
from kassign_spark.commands.common import Facts, Outcome, first_rows, session_reading, write_tables
from kassign_spark.commands.documents import GROUP, record, rows
from kassign_spark.commands.parser import About, Parser, whole_number
from kassign_spark.conforming import conform, has_cluster_id
from kassign_spark.display import (
    Columns,
    group_name,
    lay_out_first_rows,
    lay_out_rows,
    plural,
    written,
)
from kassign_spark.inputs.problem_rows import TableCheck, refuse_problems
from kassign_spark.inputs.rules import name_rule
from kassign_spark.schemas import GROUP_KEY, LEADERS, MEMBERS
from kassign_spark.spark.iteration import materialize
from kassign_spark.tables.snapshots import empty_table, read_snapshot

_LOAD: Columns = {
    "coordinator": "coordinator",
    "offsets partitions": "coordinator_partition_count",
    "groups": "group_count",
    "members": "member_count",
    "partitions": "partition_count",
    "load": "load_ratio",
    "hot": lambda broker: "yes" if broker["is_hot"] else "no",
}
_GROUPS: Columns = {
    "group": group_name,
    "offsets partition": "coordinator_partition",
    "coordinator": "coordinator",
}

DOCUMENT = record(
    "snapshot string, output string?, group_count int, hot_count int, groups_not_shown int",
    brokers=rows(
        "cluster_id? string?, coordinator int, coordinator_partition_count int, group_count int, "
        "member_count int, partition_count int?, load_ratio double?, is_hot boolean"
    ),
    groups=rows(f"{GROUP}, coordinator_partition int?, coordinator int?"),
)
ABOUT = About(
    description="Show which partition of __consumer_offsets each group of a snapshot belongs\n"
    "to. If the snapshot has a table leaders (topic, partition, leader: a broker's id), also\n"
    "show its broker, the load of each broker, and hot spots.",
    example="kassign-spark coordinators examples/fleet",
)


def add_options(parser: Parser) -> None:
    """Add what it takes."""
    parser.add_snapshot()
    parser.add_argument(
        "--num-partitions",
        metavar="N",
        type=whole_number(least=1),
        help="offsets.topic.num.partitions (default: as many as leaders shows, or "
        f"{DEFAULT_OFFSETS_PARTITIONS})",
    )
    parser.add_output("the tables coordinators and load")
    parser.add_show("print at most N brokers and groups")


def run(args: argparse.Namespace) -> Outcome:
    """Run the command."""
    with session_reading(args, f"reading {args.snapshot}", args.snapshot) as spark:
        snapshot = read_snapshot(args.snapshot, spark)
        members, leaders = snapshot.members, snapshot.leaders
        if leaders is None:
            leaders = empty_table(spark, LEADERS, cluster_id=has_cluster_id(members))
        knows_leaders = not leaders.isEmpty()
        count = args.num_partitions or (None if knows_leaders else DEFAULT_OFFSETS_PARTITIONS)
        of_groups = coordinators(members, leaders, num_partitions=count)
        of_brokers = coordinator_load(members, leaders, snapshot.owned, num_partitions=count)
        rule = name_rule("group_id")
        sums = {"groups": F.count(F.lit(1)), "unnamed": F.expr(f"count_if({rule.broken})")}
        by_group, totals = materialize(of_groups, sums)
        if totals["unnamed"]:
            refuse_problems([TableCheck(MEMBERS, conform(members, MEMBERS), [rule])])
        load = materialize(of_brokers).frame
        write_tables(spark, args, coordinators=by_group, load=load)
        brokers = load.where("coordinator IS NOT NULL")
        by = (F.desc_nulls_last("load_ratio"), "cluster_id", "coordinator")
        rows = first_rows(by_group, GROUP_KEY, args.show)
        facts = {
            **named_arguments(args, "snapshot", "output"),
            "group_count": totals["groups"],
            "brokers": first_rows(brokers, by, args.show) if knows_leaders else [],
            "hot_count": brokers.where("is_hot").count() if knows_leaders else 0,
            "groups_not_shown": totals["groups"] - len(rows),
            "groups": rows,
        }
    return Outcome(0, facts, _lines(facts))


def _lines(facts: Facts) -> list[str]:
    lines = [plural(facts["group_count"], "group")]
    if facts["brokers"]:
        lines[0] += f", {plural(facts['hot_count'], 'hot coordinator')}"
        lines += lay_out_rows(facts["brokers"], _LOAD)
    lines += lay_out_first_rows(facts, "group", _GROUPS)
    return lines + written(facts["output"], "in", "coordinators, load")
