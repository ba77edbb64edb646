"""``kassign-spark history --explain``: which generations are not what their assignor gives."""

import argparse
from collections.abc import Mapping
from typing import Any, NamedTuple

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from kassign_spark.commands.common import first_rows
from kassign_spark.commands.documents import record, rows
from kassign_spark.display import cell, not_shown, plural, printable, table
from kassign_spark.live.topics import read_topics
from kassign_spark.rounds import hold
from kassign_spark.schemas import TOPICS
from kassign_spark.tables.snapshots import read_table

DOCUMENT = record(
    "generation_count int, unknown_count int, not_explained_count int, group_count int, "
    "groups_not_shown int",
    groups=rows(
        "group_id string, generations int, assignor string?, explained_by string?, "
        "leader_client string?, detail string?"
    ),
)
"""What ``--json`` prints of it."""


class Asked(NamedTuple):
    """The rows of ``explain_history``, and what is said of them."""

    rows: DataFrame
    facts: dict[str, Any]


def topics_of(
    args: argparse.Namespace, properties: Mapping[str, str], spark: SparkSession
) -> DataFrame | None:
    """Give the topics that assignors are asked with; None: as each generation shows them.

    Raises:
        InputError: the folder of ``--topics`` does not have them.
        ClusterError: the cluster does not tell them.
    """
    if args.topics is not None:
        return read_table(spark, args.topics, TOPICS)
    if args.bootstrap_server is not None:
        return read_topics(args.bootstrap_server, properties, spark).topics
    return None


def ask(explained: DataFrame, show: int) -> Asked:
    """Hold the rows and find the groups with the most generations that are not explained.

    Args:
        explained: what ``explain_history`` gives.
        show: how many groups.
    """
    is_other = ~F.col("is_explained")
    held, counted = hold(
        explained,
        {
            "generation_count": F.count(F.lit(1)),
            "unknown_count": F.count_if(F.isnull("is_explained")),
            "not_explained_count": F.count_if(is_other),
        },
    )
    last = F.struct("assignor", "explained_by", "leader_client", "detail")
    by_group = (
        held.where(is_other)
        .groupBy("group_id")
        .agg(F.count(F.lit(1)).alias("generations"), F.max_by(last, "at").alias("last"))
        .select("group_id", "generations", "last.*")
    )
    groups, count = hold(by_group, {"groups": F.count(F.lit(1))})
    worst = first_rows(groups, [F.col("generations").desc(), "group_id"], show)
    not_listed = count["groups"] - len(worst)
    facts = {**counted, "group_count": count["groups"], "groups_not_shown": not_listed}
    return Asked(held, {**facts, "groups": worst})


def lines(facts: dict[str, Any]) -> list[str]:
    """Say it."""
    count = facts["not_explained_count"]
    are = "is not what its assignor gives" if count == 1 else "are not what their assignor gives"
    said = f"{plural(count, 'generation')} {are}, of {facts['generation_count']}"
    if facts["unknown_count"]:
        said += f"; of {facts['unknown_count']} nobody can tell"
    found = ["", f"{said}:" if facts["groups"] else said]
    if facts["groups"]:
        rows = (
            [
                printable(row["group_id"]),
                row["generations"],
                cell(row["assignor"]),
                cell(row["explained_by"]),
                cell(row["leader_client"]),
                cell(row["detail"]),
            ]
            for row in facts["groups"]
        )
        header = ["group", "generations", "assignor", "explained by", "leader", "the last of them"]
        found += ["", *table(header, rows)]
    return found + not_shown(facts["groups_not_shown"], "group", of=facts["group_count"])
