"""Groups in which Kafka's client is misled by members' claims, reported with a plan."""

from functools import partial

from pyspark.sql import DataFrame

from kassign_spark.assignors.in_tasks import KAFKAS
from kassign_spark.groups.eligible import Eligible
from kassign_spark.groups.paths import Paths
from kassign_spark.groups.rows import fold, run_in_tasks
from kassign_spark.plans.exact import MISLED, misled_arrow


def note_claims(
    eligible: Eligible, paths: Paths | None, assignor: object, protocol: str | None = None
) -> None:
    """Record in ``paths`` claims that the tables do not support; runs no job.

    ``assignor`` is a name of ``KAFKAS`` for all groups, or None for each group's own; the assignors
    of others, and ``protocol``, are as in ``rebalance``.
    """
    if paths is None:
        return
    paths.has_hidden_topics = eligible.has_hidden_topics
    paths.had_patterns = eligible.had_patterns
    if eligible.has_missing_claims:
        paths.misled = _find_misled(eligible, assignor, protocol)


def _find_misled(eligible: Eligible, assignor: object, protocol: str | None) -> DataFrame:
    number = None if assignor is None else KAFKAS.index(str(assignor))
    kernel = partial(misled_arrow, assignor=number, protocol=protocol)
    return run_in_tasks(fold(eligible), kernel, MISLED, eligible.batches)
