"""Kafka's sticky assignors: equal subscriptions exactly as the client, others at the optimum."""

import logging

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from kassign_spark.assignors.constrained_slices import assign_constrained_in_slices
from kassign_spark.assignors.constrained_tasks import assign_constrained_in_tasks
from kassign_spark.assignors.fresh import assign_fresh
from kassign_spark.assignors.general import assign_general
from kassign_spark.assignors.rack_aware import sticky_by_racks
from kassign_spark.eligibility.claims import subscribed_topics
from kassign_spark.eligibility.groups import Eligible
from kassign_spark.eligibility.prepare import restrict_to
from kassign_spark.rounds import Round, hold
from kassign_spark.schemas import GROUP_KEY
from kassign_spark.settings import Settings

_log = logging.getLogger(__name__)


def assign_sticky(eligible: Eligible, settings: Settings) -> DataFrame:
    """Assign as ``StickyAssignor`` does where all members of a group subscribe alike.

    Where they do not, the result is the best balance there is and, at that balance, the fewest
    moves; Kafka's own search may miss both. Of several such, the one with the fewest partitions
    that have no replica in their member's rack; with ``racks_before_moves`` that counts first.

    Returns:
        The columns of ``schemas.ASSIGNMENT``.
    """
    return sticky_target(eligible, settings).drop("is_moving")


def assign_cooperative_sticky(eligible: Eligible, settings: Settings) -> DataFrame:
    """Assign as ``CooperativeStickyAssignor`` does in one rebalance.

    That is `sticky` without the partitions that change hands: their owners must give them up
    first, and the rebalance after this one hands them over.

    Returns:
        The columns of ``schemas.ASSIGNMENT``.
    """
    return sticky_target(eligible, settings).where(~F.col("is_moving")).drop("is_moving")


def sticky_target(eligible: Eligible, settings: Settings) -> DataFrame:
    """Give the assignment that both sticky assignors aim at; runs jobs.

    Returns:
        The columns of ``schemas.ASSIGNMENT`` and is_moving boolean: a cooperative rebalance
        withholds the partition for one round.
    """
    return sticky_by_racks(eligible, settings, _without_racks)


def _without_racks(eligible: Eligible, settings: Settings) -> DataFrame:
    if not eligible.heterogeneous:
        return _alike(eligible, settings)
    alike = restrict_to(eligible, eligible.groups.where("is_homogeneous"))
    differing = restrict_to(eligible, eligible.groups.where(~F.col("is_homogeneous")))
    return _alike(alike._replace(heterogeneous=False), settings).unionByName(
        assign_general(differing, settings, _log_round).assignment
    )


def _alike(eligible: Eligible, settings: Settings) -> DataFrame:
    """The constrained pass: many groups in a task, or many tasks for a group."""
    if eligible.owned is None:
        return assign_fresh(eligible, settings)
    topics = subscribed_topics(eligible)
    limit = settings.partitions_per_slice
    if eligible.most_partitions <= limit:
        return assign_constrained_in_tasks(topics, eligible, settings)
    size = F.sum("num_partitions").over(Window.partitionBy(*GROUP_KEY))
    topics, found = hold(
        topics.withColumn("partition_count", size),
        {"fitting": F.count_if(F.col("partition_count") <= limit)},
    )
    giant = topics.where(F.col("partition_count") > limit)
    in_slices = assign_constrained_in_slices(giant, eligible, settings)
    if not found["fitting"]:
        return in_slices
    fitting = topics.where(F.col("partition_count") <= limit)
    return in_slices.unionByName(
        assign_constrained_in_tasks(fitting, restrict_to(eligible, fitting), settings)
    )


def _log_round(done: Round) -> None:
    measured = ", ".join(f"{name} {value}" for name, value in done.measured.items())
    _log.info("general pass, round %d (%s): %s", done.number, done.what, measured)
