"""Kafka's sticky assignors: equal subscriptions exactly as the client, others at the optimum."""

import logging

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from kassign_spark.assignors.constrained import assign_constrained
from kassign_spark.assignors.constrained_tasks import assign_constrained_in_tasks
from kassign_spark.assignors.general import assign_general
from kassign_spark.assignors.rack_aware import sticky_by_racks
from kassign_spark.eligibility.claims import (
    Claims,
    claimed_partitions,
    read_claims,
    subscribed_topics,
    topic_number,
)
from kassign_spark.eligibility.groups import Eligible
from kassign_spark.rounds import Round, hold
from kassign_spark.schemas import GROUP_KEY
from kassign_spark.settings import Settings

_PARTITION_KEY = (*GROUP_KEY, "topic", "partition")

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
    if eligible.owned is None:
        return _in_steps(eligible, None, settings)
    topics = subscribed_topics(eligible)
    limit = settings.max_partitions_per_task
    if not eligible.heterogeneous and eligible.most_partitions <= limit:
        return assign_constrained_in_tasks(topics, eligible, settings)
    size = F.sum("num_partitions").over(Window.partitionBy(*GROUP_KEY))
    fits = F.col("is_homogeneous") & (size <= limit)
    topics, count = hold(
        topics.withColumns({"fits": fits, "topic_number": topic_number()}),
        {"fitting": F.count_if(F.col("fits"))},
    )
    if not count["fitting"]:
        return _in_steps(eligible, read_claims(eligible, topics), settings)
    fitting_topics, other_topics = topics.where("fits"), topics.where(~F.col("fits"))
    fitting, others = _of_groups(eligible, fitting_topics), _of_groups(eligible, other_topics)
    return _in_steps(others, read_claims(others, other_topics), settings).unionByName(
        assign_constrained_in_tasks(fitting_topics, fitting, settings)
    )


def _in_steps(eligible: Eligible, claims: Claims | None, settings: Settings) -> DataFrame:
    """Assign groups of any size, by DataFrame steps for those that subscribe alike."""
    target = assign_constrained(eligible, claims, settings)
    if eligible.heterogeneous:
        target = target.unionByName(_differing(eligible, claims, settings))
    return target


def _of_groups(eligible: Eligible, topics: DataFrame) -> Eligible:
    """Keep the groups that have ``topics``."""
    keys = topics.select(*GROUP_KEY).distinct()

    def of_groups(frame: DataFrame) -> DataFrame:
        return frame.join(keys, on=list(GROUP_KEY), how="left_semi")

    return eligible._replace(
        members=of_groups(eligible.members),
        groups=of_groups(eligible.groups),
        owned=None if eligible.owned is None else of_groups(eligible.owned),
    )


def _differing(eligible: Eligible, claims: Claims | None, settings: Settings) -> DataFrame:
    """The general pass, for the groups whose members' subscriptions differ."""
    groups = eligible.groups.where(~F.col("is_homogeneous"))
    members = eligible.members.join(groups.select(*GROUP_KEY), on=list(GROUP_KEY), how="left_semi")
    owned = None if claims is None else claimed_partitions(claims)
    differing = eligible._replace(members=members, groups=groups, owned=owned)
    target = assign_general(differing, settings, _log_round).assignment
    if eligible.owned is None:
        return target.withColumn("is_moving", F.lit(False))
    # What a member sent as owned counts here, also where its claim did not prevail.
    owners = (
        eligible.owned.join(
            members.select(*GROUP_KEY, "member_id"), on=[*GROUP_KEY, "member_id"], how="left_semi"
        )
        .groupBy(*_PARTITION_KEY)
        .agg(F.collect_set("member_id").alias("owners"))
    )
    is_moving = ~F.coalesce(F.array_contains("owners", F.col("member_id")), F.lit(True))
    return (
        target.join(owners, on=list(_PARTITION_KEY), how="left")
        .withColumn("is_moving", is_moving)
        .drop("owners")
    )


def _log_round(done: Round) -> None:
    measured = ", ".join(f"{name} {value}" for name, value in done.measured.items())
    _log.info("general pass, round %d (%s): %s", done.number, done.what, measured)
