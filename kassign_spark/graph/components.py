"""The eligibility graph of a fleet: who can take what, and what is independent of what.

Vertices are the members and the topic classes of every group (a class: the group's topics with the
same subscribers), edges are subscriptions. Groups share no edge, so one graph holds the whole
fleet. Its connected components are independent of each other: whatever happens in one, a join, a
leave, a new partition, changes nothing in the others.

Components come from GraphFrames where its package is on the session's class path, else from rounds
over DataFrames; both give the same result, and the answer says which one it was.
"""

import logging
import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from kassign_spark.errors import SettingsError
from kassign_spark.settings.computing import Settings
from kassign_spark.spark.iteration import Budget, converge, settle
from kassign_spark.spark.sessions import Py4JError, Py4JJavaError, is_connect
from kassign_spark.spark.spark_errors import spark_message
from kassign_spark.spark.spark_versions import GRAPHFRAMES_PACKAGE

GRAPHFRAMES, ROUNDS = "graphframes", "rounds"
_BUCKETS = 64
_NOT_THERE = (
    "GraphFrames is not installed; it takes the Python package graphframes-py and, on the "
    f"session's class path, the Spark package {GRAPHFRAMES_PACKAGE}"
)
_NOT_BY_CONNECT = "GraphFrames is not used behind Spark Connect; leave the setting out"
_log = logging.getLogger(__name__)


class Components(NamedTuple):
    """The connected components of a graph.

    Attributes:
        frame: id bigint, component bigint (the least id in it); vertices without edges are left
            out.
        by: who found them: `graphframes` or `rounds`.
        rounds: how many rounds over DataFrames that took; 0 for GraphFrames.
    """

    frame: DataFrame
    by: str
    rounds: int


def number_rows(frame: DataFrame, keys: Sequence[str], number: str) -> DataFrame:
    """Give each different row of ``keys`` a number >= 64 that follows from all of them alone.

    Returns:
        the keys, each once, and ``number`` bigint; no window is over all of them.
    """
    bucket = F.pmod(F.xxhash64(*keys), F.lit(_BUCKETS))
    in_bucket = Window.partitionBy("bucket").orderBy(*keys)
    return (
        frame.select(*keys, bucket.alias("bucket"))
        .select(*keys, "bucket", F.dense_rank().over(in_bucket).alias("place"))
        .distinct()  # needs no shuffle: equal rows are in one bucket
        .select(*keys, (F.col("place") * _BUCKETS + F.col("bucket")).alias(number))
    )


def connected_components(edges: DataFrame, settings: Settings, budget: Budget) -> Components:
    """Find the connected components; runs jobs, and logs who found them.

    Args:
        edges: src bigint, dst bigint; in any direction.
        settings: ``use_graphframes``: None takes it where it is there.
        budget: counts the rounds of the way without GraphFrames.

    Raises:
        SettingsError: ``use_graphframes`` is true and GraphFrames is not installed, or fails.
        NotConvergedError: the budget ended first.
    """
    components = components_by_graphframes(edges, settings)
    if components is not None:
        return Components(components, GRAPHFRAMES, 0)
    before = budget.used
    frame = _components_in_rounds(edges, budget)
    _log.info("connected components by %d rounds", budget.used - before)
    return Components(frame, ROUNDS, budget.used - before)


def components_by_graphframes(edges: DataFrame, settings: Settings) -> DataFrame | None:
    """Find the connected components where GraphFrames is there and may be used; else None.

    Arguments, columns and errors are as in ``connected_components``.
    """
    if settings.use_graphframes is False:
        return None
    try:
        components = _components_by_graphframes(edges)
    except GraphFramesError as error:
        if settings.use_graphframes:
            raise SettingsError(f"setting use_graphframes: {error}") from None
        if not isinstance(error, NoGraphFramesError):
            sentence = f"{error}; connected components come from rounds instead"
            warnings.warn(sentence, stacklevel=2)
        return None
    _log.info("connected components by GraphFrames")
    return components


class GraphFramesError(Exception):
    """GraphFrames cannot be used, or has failed; the text says why, in one line."""


class NoGraphFramesError(GraphFramesError):
    """One of its halves is missing or out of reach."""


@contextmanager
def graphframe(vertices: DataFrame, edges: DataFrame) -> Iterator[Any]:
    """Return a GraphFrame to work with.

    Args:
        vertices: id bigint.
        edges: src bigint, dst bigint.

    Raises:
        NoGraphFramesError: its Python or its JVM half is missing or out of reach.
        GraphFramesError: they are of different versions, or something failed inside of it.
    """
    if is_connect(edges.sparkSession):
        raise NoGraphFramesError(_NOT_BY_CONNECT)
    try:
        import graphframes
    except ImportError:
        raise NoGraphFramesError(_NOT_THERE) from None
    try:
        graph = graphframes.GraphFrame(vertices, edges)
    except Py4JError as error:
        if _is_without_classes(error):
            raise NoGraphFramesError(_NOT_THERE) from None
        raise _explain_failure(graphframes, error) from error
    python_version, jvm_version = str(graphframes.__version__), _jvm_version(graph)
    if jvm_version is not None and python_version.split(".")[:2] != jvm_version.split(".")[:2]:
        raise GraphFramesError(
            f"graphframes-py {python_version} does not fit the Spark package "
            f"{GRAPHFRAMES_PACKAGE}:{jvm_version}: take the same version of both"
        )
    try:
        yield graph
    except (Py4JError, PySparkException) as error:
        raise _explain_failure(graphframes, error) from error


def _explain_failure(graphframes: Any, error: Py4JError | PySparkException) -> GraphFramesError:
    # What one half calls and the other has not, py4j says in the second line of a plain error.
    lacks = re.search(r"Py4JException: (.+)", str(error))
    reason = lacks[1] if lacks else spark_message(error)
    return GraphFramesError(f"GraphFrames {graphframes.__version__} failed: {reason}")


def _is_without_classes(error: Py4JError) -> bool:
    """Return whether the Python half of GraphFrames is installed and the JVM half is missing."""
    if not isinstance(error, Py4JJavaError):
        return False
    return str(error.java_exception.getClass().getName()).endswith("ClassNotFoundException")


def _jvm_version(graph: Any) -> str | None:
    """Return the version that the jar says; None where it says none, as one built by hand may."""
    package = graph._impl._jvm_graph.getClass().getPackage()
    version = package.getImplementationVersion() if package is not None else None
    return None if version is None else str(version)


def _components_by_graphframes(edges: DataFrame) -> DataFrame:
    """Return GraphFrames' components, named by their least ids."""
    ids = edges.select(F.col("src").alias("id")).union(edges.select("dst")).distinct()
    with graphframe(ids, edges) as graph:
        # graphx: the fastest of its algorithms on long ids, and it needs no checkpoint folder; a
        # broadcastThreshold other than -1 would switch adaptive execution off for the session.
        components = graph.connectedComponents(algorithm="graphx", broadcastThreshold=-1)
        least = components.groupBy("component").agg(F.min("id").alias("least"))
        labels = components.join(least, on="component", how="inner").select(
            "id", F.col("least").alias("component")
        )
        try:
            return settle(labels).frame
        finally:
            components.unpersist()


def _components_in_rounds(edges: DataFrame, budget: Budget) -> DataFrame:
    """Turn every component into a star around its least id, by large and small stars in turn.

    "Connected Components in MapReduce and Beyond", Kiveris and others, 2014: rounds grow like the
    logarithm of a component's size, not like its diameter.
    """
    downward = edges.selectExpr("greatest(src, dst) as id", "least(src, dst) as lower").distinct()
    stars = converge(
        downward.withColumn("is_moved", F.lit(True)),
        _large_and_small_star,
        F.count_if("is_moved"),
        kind="components",
        budget=budget,
    ).select("id", F.col("lower").alias("component"))
    centres = stars.select(F.col("component").alias("id"), "component").distinct()
    return stars.unionByName(centres)


def _large_and_small_star(links: DataFrame) -> DataFrame:
    """Link higher neighbours, then lower ones, to the least neighbour; one row a link.

    ``is_moved`` where a link changed in either; a link that two rows make counts once.
    """
    of_id = Window.partitionBy("id")
    both_ways = links.select("id", F.col("lower").alias("other")).union(
        links.select("lower", F.col("id"))
    )
    large = (
        both_ways.withColumn("least", F.least(F.min("other").over(of_id), F.col("id")))
        .where("other > id")
        .selectExpr("other as id", "least as lower", "least != id as is_moved")
    )
    small = large.withColumn("least", F.min("lower").over(of_id)).selectExpr(
        "if(lower = least, id, lower) as id",
        "least as lower",
        "is_moved or lower != least as is_moved",
    )
    return small.groupBy("id", "lower").agg(F.max("is_moved").alias("is_moved"))
