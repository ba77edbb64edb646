"""Kafka's sticky assignors: equal subscriptions exactly as the client, others at the optimum."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kassign_spark.assignors.constrained import assign_constrained
from kassign_spark.eligibility.claims import read_claims
from kassign_spark.eligibility.groups import Eligible
from kassign_spark.settings import Settings


def assign_sticky(eligible: Eligible, settings: Settings) -> DataFrame:
    """Assign as ``StickyAssignor`` does where all members of a group subscribe alike.

    Returns:
        The columns of ``schemas.ASSIGNMENT``.
    """
    return _target(eligible, settings).drop("is_moving")


def assign_cooperative_sticky(eligible: Eligible, settings: Settings) -> DataFrame:
    """Assign as ``CooperativeStickyAssignor`` does in one rebalance.

    That is `sticky` without the partitions that change hands: their owners must give them up
    first, and the rebalance after this one hands them over.

    Returns:
        The columns of ``schemas.ASSIGNMENT``.
    """
    return _target(eligible, settings).where(~F.col("is_moving")).drop("is_moving")


def _target(eligible: Eligible, settings: Settings) -> DataFrame:
    """The assignment that is aimed at, with is_moving boolean."""
    claims = None if eligible.owned is None else read_claims(eligible, eligible.owned)
    return assign_constrained(eligible, claims)
