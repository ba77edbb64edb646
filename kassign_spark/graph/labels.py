"""Clusters of a graph with two sides, by label propagation in rounds over DataFrames."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kassign_spark.errors import SettingsError
from kassign_spark.graph.components import GraphFramesError, graphframe
from kassign_spark.rounds import Budget, converge, settle
from kassign_spark.settings.computing import Settings

_ROUNDS_OF_GRAPHFRAMES = 5


def spread_labels(
    vertices: DataFrame, edges: DataFrame, settings: Settings, budget: Budget
) -> DataFrame:
    """Find clusters of a graph with two sides by label propagation; runs jobs.

    Every vertex has its own id for a label at first. In each round the vertices on the right take
    the label that most of their neighbours have, and then those on the left do; who has one of
    several most frequent ones keeps it, or else takes the least. Each change makes more edges join
    equal labels, so there is an end, and it is the same however the rows lie.

    Args:
        vertices: id bigint.
        edges: src bigint (on the left), dst bigint (on the right); each once.
        settings: ``use_graphframes``: only where it is true GraphFrames answers, in five rounds of
            its own, whose ties are broken by chance.
        budget: counts the rounds of the way without GraphFrames.

    Returns:
        id bigint, label bigint: the least id among those that have ended with the same label.

    Raises:
        SettingsError: ``use_graphframes`` is true and GraphFrames is not there, or fails.
        NotConvergedError: the budget ended first.
    """
    if settings.use_graphframes:
        try:
            with graphframe(vertices, edges) as graph:
                labels = graph.labelPropagation(maxIter=_ROUNDS_OF_GRAPHFRAMES)
        except GraphFramesError as error:
            raise SettingsError(f"setting use_graphframes: {error}") from None
    else:
        labels = _labels_in_rounds(vertices, edges, budget)
    least = labels.groupBy("label").agg(F.min("id").alias("least"))
    return settle(
        labels.join(least, on="label", how="inner").select("id", F.col("least").alias("label"))
    ).frame


def _labels_in_rounds(vertices: DataFrame, edges: DataFrame, budget: Budget) -> DataFrame:
    def step(labels: DataFrame) -> DataFrame:
        right = _most_frequent(labels, edges, at="dst", of="src")
        left = _most_frequent(right, edges, at="src", of="dst")
        before = labels.select("id", F.col("label").alias("before"))
        return left.join(before, on="id", how="inner").select(
            "id", "label", (F.col("label") != F.col("before")).alias("is_moved")
        )

    start = vertices.select("id", F.col("id").alias("label"), F.lit(True).alias("is_moved"))
    return converge(start, step, F.count_if("is_moved"), what="labels", budget=budget)


def _most_frequent(labels: DataFrame, edges: DataFrame, *, at: str, of: str) -> DataFrame:
    """Give the vertices ``at`` the ends of edges the label of most of the others' ends."""
    theirs = labels.select(F.col("id").alias(of), F.col("label").alias("theirs"))
    counted = edges.join(theirs, on=of, how="inner").groupBy(at, "theirs").count()
    own = labels.select(F.col("id").alias(at), "label")
    choice = F.struct("count", F.col("theirs") == F.col("label"), -F.col("theirs"))
    taken = (
        counted.join(own, on=at, how="inner")
        .groupBy(at)
        .agg(F.max_by("theirs", choice).alias("new"))
    )
    renamed = taken.withColumnRenamed(at, "id")
    return labels.join(renamed, on="id", how="left").select(
        "id", F.coalesce("new", "label").alias("label")
    )
