"""Groups in which Kafka's client is misled by members' claims, reported with a plan."""

from functools import partial

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kassign_spark.assignors.in_tasks import KAFKAS
from kassign_spark.groups.eligible import Eligible
from kassign_spark.groups.paths import Paths
from kassign_spark.groups.rows import fold, run_in_tasks
from kassign_spark.plans.exact import MISLED, misled_arrow
from kassign_spark.schemas import CLUSTER_ID


def note_claims(
    eligible: Eligible, paths: Paths | None, assignor: object, protocol: str | None = None
) -> None:
    """Record in ``paths`` claims that the tables do not support; runs a query if there are claims.

    ``assignor`` is a name of ``KAFKAS`` for all groups, or None for each group's own; the assignors
    of others, and ``protocol``, are as in ``rebalance``.
    """
    if paths is None:
        return
    paths.had_patterns = eligible.had_patterns
    if eligible.owned is None:
        return
    highest = eligible.owned.groupBy(CLUSTER_ID, "topic").agg(F.max("partition").alias("highest"))
    sizes = highest.join(eligible.topics, on=[CLUSTER_ID, "topic"], how="left")
    (claims,) = sizes.agg(
        F.expr("bool_or(num_partitions IS NULL) AS has_hidden_topics"),
        F.expr("bool_or(highest >= num_partitions) AS has_missing_partitions"),
    ).collect()
    paths.has_hidden_topics = bool(claims.has_hidden_topics)
    if claims.has_missing_partitions:
        paths.misled = _find_misled(eligible, assignor, protocol)


def _find_misled(eligible: Eligible, assignor: object, protocol: str | None) -> DataFrame:
    number = None if assignor is None else KAFKAS.index(str(assignor))
    kernel = partial(misled_arrow, assignor=number, protocol=protocol)
    return run_in_tasks(fold(eligible), kernel, MISLED, eligible.batches)
