"""Shared by the commands that go by weight: where weights come from, and their options."""

import argparse
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from kassign_spark.assignors.weighted.options import COSTS, KICKS
from kassign_spark.commands.choosing import named_arguments, settings_of
from kassign_spark.commands.common import Facts, first_rows
from kassign_spark.commands.documents import rows
from kassign_spark.commands.parser import Parser
from kassign_spark.display import lay_out_rows, not_shown, plural
from kassign_spark.errors import InputError
from kassign_spark.plans.offset_weights import partition_weights
from kassign_spark.schemas import OFFSETS, WEIGHTS
from kassign_spark.spark.iteration import materialize
from kassign_spark.tables.snapshots import has_table, read_named_table, read_table
from kassign_spark.validation.unused_weights import unused_weights

LAG, RATE = "lag", "rate"


def add_weights(parser: Parser) -> None:
    """Add what both commands read, and what they make of it."""
    parser.add_snapshot()
    add_source(parser, required=True)
    parser.add_argument(
        "--cost", choices=COSTS, default="moves", help="what to keep low (default: moves)"
    )
    parser.add_argument(
        "--effort", choices=list(KICKS), default="default", help="how thoroughly to search"
    )
    parser.add_settings()
    parser.add_show("print at most N groups")


def add_source(parser: Parser, *, required: bool) -> None:
    """Add where weights are from."""
    parser.add_argument(
        "--weights",
        metavar="lag|rate|FILE",
        required=required,
        help="lag or rate, from the table offsets of SNAPSHOT; or the table weights: a file (csv, "
        "json, parquet), or a folder that has it",
    )
    parser.add_argument(
        "--before",
        metavar="SNAPSHOT",
        help="an earlier snapshot, whose table offsets gives the rates",
    )
    parser.add_argument(
        "--horizon",
        metavar="TIME",
        default="1h",
        help="with rate: time in which the lag must be read, too (default: 1h)",
    )
    parser.add_argument(
        "--missing-weight",
        metavar="X",
        type=number,
        help="weight of partitions without one (default: refuse them)",
    )
    parser.add_argument(
        "--base-weight", metavar="X", type=number, default=0.0, help="added to every partition"
    )


def number(text: str) -> float:
    """Return the type of an option that takes a finite number from 0 on."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number >= 0")
    return value


def inputs_of(args: argparse.Namespace) -> list[str]:
    """Return the folders that the arguments name."""
    arguments = vars(args) | {"weights": None if args.weights in (LAG, RATE) else args.weights}
    folders = map(arguments.get, ("plan", "snapshot", "weights", "before", "history"))
    return [folder for folder in folders if folder is not None]


def read_weights(
    spark: SparkSession, args: argparse.Namespace, snapshot: str | None = None
) -> DataFrame:
    """Read weights from where the arguments say; ``snapshot`` is that of the arguments.

    Raises:
        InputError: a table does not exist, or rates are wanted of one snapshot alone.
    """
    if args.weights not in (LAG, RATE):
        if args.before is not None:
            raise InputError("--before is for --weights rate: a table of weights needs no other")
        return read_named_table(spark, args.weights, WEIGHTS)
    offsets = _offsets(spark, snapshot or args.snapshot)
    if args.weights == LAG:
        if args.before is not None:
            raise InputError("--before is for --weights rate: lag is of one moment")
        # In records, not by second: what a member has before it.
        of_groups = partition_weights(offsets).where(F.col("group_id").isNotNull())
        return of_groups.withColumn("weight", F.col("lag").cast("double"))
    if args.before is None:
        raise InputError("--weights rate: needs --before SNAPSHOT, an earlier one of the cluster")
    return partition_weights(offsets, _offsets(spark, args.before), horizon=args.horizon)


def _offsets(spark: SparkSession, folder: str) -> DataFrame:
    if not has_table(spark, folder, OFFSETS.name):
        raise InputError(
            f"snapshot {folder}: has no table offsets, which lag and rate are from; take it with "
            "kassign-spark snapshot --offsets, or give weights of your own: --weights FILE"
        )
    return read_table(spark, folder, OFFSETS)


def options(args: argparse.Namespace) -> dict[str, Any]:
    """Return the arguments that ``plan_by_weight`` and ``tradeoff`` have in common."""
    return {
        **named_arguments(args, "cost", "missing_weight", "base_weight", "effort"),
        "settings": settings_of(args),
    }


UNUSED_WEIGHTS = rows(
    "cluster_id? string?, group_id string?, problem string, topic string?, partition int?, "
    "detail string"
)


def unused_facts(
    args: argparse.Namespace, weights: DataFrame | None, members: DataFrame, topics: DataFrame
) -> Facts:
    """Count and collect weights of missing partitions or groups; runs a query for given tables.

    Offsets are of all groups and topics of a cluster, also of those that nobody asks for.
    """
    if weights is None or args.weights in (LAG, RATE):
        return {"unused_weight_count": 0, "unused_weights": []}
    unused, totals = materialize(
        unused_weights(weights, members, topics).drop("member_id"), {"rows": F.count(F.lit(1))}
    )
    order: list[str | Column] = [
        "problem",
        F.col("group_id").asc_nulls_first(),
        "topic",
        "partition",
    ]
    shown = first_rows(unused, order, args.show) if totals["rows"] else []
    return {"unused_weight_count": totals["rows"], "unused_weights": shown}


def unused_lines(facts: Facts) -> list[str]:
    """Return the lines about weights of partitions or groups that do not exist."""
    count = facts["unused_weight_count"]
    if not count:
        return []
    columns = {"group": "group_id", "topic": "topic", "partition": "partition", "why": "detail"}
    return [
        "",
        f"{plural(count, 'weight')} not used, of missing partitions or groups",
        *lay_out_rows(facts["unused_weights"], columns)[1:],
        *not_shown(count - len(facts["unused_weights"]), "weight", shown=count),
    ]
