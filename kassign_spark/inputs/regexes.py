"""Subscriptions by a regex that the broker resolves (KIP-848, ``SubscriptionPattern``).

Unlike a client's pattern it finds internal topics too, and adds to the names that a member lists.
``re2j`` says in which engine it is resolved here; it runs in Spark's Python workers, once a regex.
"""

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.functions import arrow_udf  # type: ignore[attr-defined]

from kassign_spark.inputs import re2j
from kassign_spark.schemas import CLUSTER_ID, GROUP_KEY

_NAMES = "array<string>"


def regex_problem(regex: Column) -> Column:
    """What is wrong with a regex, as ``re2j.problem`` says it: string, null where nothing is."""
    problem: Column = arrow_udf(_problems, "string")(regex)
    return problem


def match_regexes(members: DataFrame, topics: DataFrame) -> DataFrame:
    """Find the topics of each regex of each group; runs no job.

    Args:
        members: ``schemas.MEMBERS``, conforming; what cannot be resolved finds nothing.
        topics: cluster_id string, topic string; any number of times each.

    Returns:
        cluster_id string, group_id string, topics_regex string, names array<string>: in order; no
        row where the cluster has no topic.
    """
    regexes = members.where("topics_regex IS NOT NULL").select(*GROUP_KEY, "topics_regex")
    names = topics.groupBy(CLUSTER_ID).agg(F.array_sort(F.collect_set("topic")).alias("names"))
    found = arrow_udf(_matching, _NAMES)("topics_regex", "names").alias("names")
    return (
        regexes.distinct()
        .join(F.broadcast(names), on=CLUSTER_ID, how="inner")
        .select(*GROUP_KEY, "topics_regex", found)
    )


def with_regex_topics(members: DataFrame, topics: DataFrame) -> DataFrame:
    """Add to each member's topics those of its regex; what cannot be resolved adds nothing."""
    both = F.array_union(
        F.coalesce("topics", F.array().cast(_NAMES)), F.coalesce("names", F.array().cast(_NAMES))
    )
    found = F.when(F.col("topics_regex").isNotNull(), both).otherwise(F.col("topics"))
    names = match_regexes(members, topics)
    return members.join(names, on=[*GROUP_KEY, "topics_regex"], how="left").select(
        *((found if name == "topics" else F.col(name)).alias(name) for name in members.columns)
    )


def _problems(regexes: pa.Array) -> pa.Array:
    """``re2j.problem`` of each regex; members of a group mostly have the same."""
    seen = {
        regex: re2j.problem(regex) for regex in regexes.unique().to_pylist() if regex is not None
    }
    return pa.array([seen.get(regex) for regex in regexes.to_pylist()], pa.string())


def _matching(regexes: pa.Array, names: pa.Array) -> pa.Array:
    """``re2j.matching`` of each regex among the names beside it."""
    found = [
        re2j.matching(regex, of_cluster.values)
        for regex, of_cluster in zip(regexes.to_pylist(), names, strict=True)
    ]
    return pa.array([matched.to_pylist() for matched in found], pa.list_(pa.string()))
