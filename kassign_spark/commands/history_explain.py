"""``kassign-spark history --explain``: which generations are not what their assignor gives."""

import argparse
from collections.abc import Mapping

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from kassign_spark.commands.common import Facts, first_rows
from kassign_spark.commands.documents import record, rows
from kassign_spark.display import lay_out_first_rows, plural
from kassign_spark.live.live_snapshot import read_topics
from kassign_spark.schemas import TOPICS
from kassign_spark.spark.iteration import materialize
from kassign_spark.tables.snapshots import read_table

_COLUMNS = {
    "group": "group_id",
    "generations": "generations",
    "assignor": "assignor",
    "explained by": "explained_by",
    "leader": "leader_client",
    "the last of them": "detail",
}
DOCUMENT = record(
    "generation_count int, unknown_count int, not_explained_count int, group_count int, "
    "groups_not_shown int",
    groups=rows(
        "group_id string, generations int, assignor string?, explained_by string?, "
        "leader_client string?, detail string?"
    ),
)
"""The JSON document of ``--explain``."""


def topics_of(
    args: argparse.Namespace, properties: Mapping[str, str], spark: SparkSession
) -> DataFrame | None:
    """Return the topics that assignors are asked with; None: as each generation shows them.

    Raises:
        InputError: the folder of ``--topics`` does not have them.
        ClusterError: the cluster does not return them.
    """
    if args.topics is not None:
        return read_table(spark, args.topics, TOPICS)
    if args.bootstrap_server is not None:
        return read_topics(args.bootstrap_server, properties, spark).topics
    return None


def ask(explained: DataFrame, show: int) -> tuple[DataFrame, Facts]:
    """Hold the rows and find the groups with the most generations that are not explained.

    Args:
        explained: what ``explain_history`` gives.
        show: how many groups.
    """
    is_other = ~F.col("is_explained")
    answers, totals = materialize(
        explained,
        {
            "generation_count": F.count(F.lit(1)),
            "unknown_count": F.count_if(F.isnull("is_explained")),
            "not_explained_count": F.count_if(is_other),
        },
    )
    last = F.struct("assignor", "explained_by", "leader_client", "detail")
    by_group = (
        answers.where(is_other)
        .groupBy("group_id")
        .agg(F.count(F.lit(1)).alias("generations"), F.max_by(last, "at").alias("last"))
        .select("group_id", "generations", "last.*")
    )
    groups, count = materialize(by_group, {"group_count": F.count(F.lit(1))})
    worst = first_rows(groups, [F.col("generations").desc(), "group_id"], show)
    not_listed = count["group_count"] - len(worst)
    return answers, {**totals, **count, "groups_not_shown": not_listed, "groups": worst}


def lines(facts: Facts) -> list[str]:
    """Return the lines to print."""
    count = facts["not_explained_count"]
    are = "is not what its assignor gives" if count == 1 else "are not what their assignor gives"
    heading = f"{plural(count, 'generation')} {are}, of {facts['generation_count']}"
    if facts["unknown_count"]:
        heading += f"; {facts['unknown_count']} cannot be judged"
    text = ["", f"{heading}:" if facts["groups"] else heading]
    return text + lay_out_first_rows(facts, "group", _COLUMNS)
