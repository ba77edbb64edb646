"""Weights of what does not exist: passed over by plans, and told here."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kassign_spark.inputs.checks import as_problems
from kassign_spark.schemas import CLUSTER_ID
from kassign_spark.validation.problem_texts import no_such_weight_says


def unknown_weights(weights: DataFrame, topics: DataFrame) -> DataFrame:
    """List weights of topics and partitions that there are not; runs no job.

    Args:
        weights: ``schemas.WEIGHTS``, conforming.
        topics: conforming, in either form.

    Returns:
        the columns of a problem; group_id is null of weights for all groups.
    """
    key = [CLUSTER_ID, "topic"]
    next_partition = F.try_add(F.max("partition"), F.lit(1)) if "partition" in topics.columns else (
        F.max("num_partitions")
    )  # fmt: skip
    counts = topics.groupBy(*key).agg(next_partition.alias("count"))
    unknown = weights.join(counts, on=key, how="left").where(
        F.col("count").isNull() | (F.col("partition") >= F.col("count"))
    )
    return as_problems(unknown, "weight_of_unknown_partition", no_such_weight_says("count"))
