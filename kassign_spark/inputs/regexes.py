"""Subscriptions by a regex that the broker resolves (KIP-848, ``SubscriptionPattern``).

Unlike a client's pattern it finds internal topics too, and adds to the names that a member lists.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kassign_spark.schemas import CLUSTER_ID, GROUP_KEY


def match_regexes(members: DataFrame, topics: DataFrame) -> DataFrame:
    """Find the topics of each regex of each group; runs no job.

    Args:
        members: ``schemas.MEMBERS``, conforming; the regexes are fit for use.
        topics: cluster_id string, topic string; any number of times each.

    Returns:
        cluster_id string, group_id string, topics_regex string, names array<string>: in order; no
        row where the cluster has no topic.
    """
    regexes = members.where("topics_regex IS NOT NULL").select(*GROUP_KEY, "topics_regex")
    whole = F.concat(F.lit(r"\A(?:"), F.col("topics_regex"), F.lit(r")\z"))
    found = F.when(F.rlike("topic", whole), F.col("topic"))
    return (
        regexes.distinct()
        .join(topics.select(CLUSTER_ID, "topic").distinct(), on=CLUSTER_ID, how="inner")
        .groupBy(*GROUP_KEY, "topics_regex")
        .agg(F.array_sort(F.collect_list(found)).alias("names"))
    )


def with_regex_topics(members: DataFrame, topics: DataFrame) -> DataFrame:
    """Add to each member's topics those of its regex; what cannot be resolved adds nothing."""
    is_java = F.try_reflect(
        F.lit("java.util.regex.Pattern"), F.lit("compile"), F.col("topics_regex")
    ).isNotNull()
    names = match_regexes(members.where(is_java), topics)
    both = F.array_union(
        F.coalesce("topics", F.array().cast("array<string>")),
        F.coalesce("names", F.array().cast("array<string>")),
    )
    found = F.when(F.col("topics_regex").isNotNull(), both).otherwise(F.col("topics"))
    return members.join(names, on=[*GROUP_KEY, "topics_regex"], how="left").select(
        *((found if name == "topics" else F.col(name)).alias(name) for name in members.columns)
    )
