"""Subscriptions by a regex that the broker resolves (KIP-848, ``SubscriptionPattern``).

Unlike a client's pattern it finds internal topics too, and adds to the names that a member lists.
``re2j`` says in which engine it is resolved here; it runs in Spark's Python workers, once a regex.
"""

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from kassign_spark.inputs import re2j
from kassign_spark.schemas import CLUSTER_ID, GROUP_KEY
from kassign_spark.spark.spark_versions import arrow_udf

REGEX_PROBLEM = "regex_problem"
_NAMES = "array<string>"


def regex_problem(regex: Column) -> Column:
    """Return the problem of a regex as ``re2j.problem`` words it: string, null for none."""
    return arrow_udf(_problems, "string")(regex)


def with_regex_problems(frame: DataFrame) -> DataFrame:
    """Add regex_problem string, of ``topics_regex``; in Python, so ask where there may be one."""
    return frame.withColumn(REGEX_PROBLEM, regex_problem(F.col("topics_regex")))


def match_regexes(members: DataFrame, topics: DataFrame) -> DataFrame:
    """Find the topics of each regex of each group; runs no job.

    Args:
        members: ``schemas.MEMBERS``, conforming; what cannot be resolved finds nothing.
        topics: cluster_id string, topic string; any number of times each.

    Returns:
        cluster_id string, group_id string, topics_regex string, names array<string>: in order; no
        row where the cluster has no topic.
    """
    nothing = F.lit(None)
    regexes = members.where("topics_regex IS NOT NULL").select(
        CLUSTER_ID, F.struct("group_id", "topics_regex").alias("regex"), nothing.alias("topic")
    )
    topic_rows = topics.select(CLUSTER_ID, nothing.alias("regex"), "topic")
    of_clusters = (
        regexes.unionByName(topic_rows)
        .groupBy(CLUSTER_ID)
        .agg(F.collect_set("regex").alias("regexes"), F.collect_set("topic").alias("names"))
        .where("size(names) > 0")
    )
    matching = arrow_udf(_matching, f"array<{_NAMES}>")(F.col("regexes")["topics_regex"], "names")
    matches = of_clusters.withColumn("matches", matching).select(
        CLUSTER_ID, F.explode(F.arrays_zip("regexes", "matches")).alias("pair")
    )
    return matches.select(CLUSTER_ID, "pair.regexes.*", F.array_sort("pair.matches").alias("names"))


def with_regex_topics(members: DataFrame, topics: DataFrame) -> DataFrame:
    """Add to each member's topics those of its regex; what cannot be resolved adds nothing."""
    both = F.array_union(
        F.coalesce("topics", F.array().cast(_NAMES)), F.coalesce("names", F.array().cast(_NAMES))
    )
    all_topics = F.when(F.col("topics_regex").isNotNull(), both).otherwise(F.col("topics"))
    names = match_regexes(members, topics)
    return members.join(names, on=[*GROUP_KEY, "topics_regex"], how="left").select(
        *((all_topics if name == "topics" else F.col(name)).alias(name) for name in members.columns)
    )


def _problems(regexes: pa.Array) -> pa.Array:
    """Call ``re2j.problem`` for each different regex; members of a group mostly have the same."""
    seen = {
        regex: re2j.problem(regex) for regex in regexes.unique().to_pylist() if regex is not None
    }
    return pa.array([seen.get(regex) for regex in regexes.to_pylist()], pa.string())


def _matching(regexes: pa.Array, names: pa.Array) -> pa.Array:
    """Call ``re2j.matching`` for each regex of a cluster and the cluster's names."""
    lists = []
    for regexes_of_cluster, of_cluster in zip(regexes.to_pylist(), names, strict=True):
        by_regex = {
            regex: re2j.matching(regex, of_cluster.values).to_pylist()
            for regex in set(regexes_of_cluster)
        }
        lists.append([by_regex[regex] for regex in regexes_of_cluster])
    return pa.array(lists, pa.list_(pa.list_(pa.string())))
