"""Kafka's sticky assignors: equal subscriptions exactly as the client, others at the optimum."""

import logging

from pyspark.sql import DataFrame

from kassign_spark.assignors.constrained_rounds import assign_constrained
from kassign_spark.assignors.general_rounds import assign_general
from kassign_spark.assignors.in_tasks import COOPERATIVE_STICKY, STICKY
from kassign_spark.assignors.task_groups import assign_in_tasks, split_by_size
from kassign_spark.groups.eligible import Eligible
from kassign_spark.settings.computing import Settings
from kassign_spark.spark.iteration import Round
from kassign_spark.spark.spark_versions import union_by_name

_log = logging.getLogger(__name__)


def assign_sticky(eligible: Eligible, settings: Settings) -> DataFrame:
    """Assign as ``StickyAssignor`` does where all members of a group subscribe alike.

    Where they do not, the result is the best balance there is and, at that balance, the fewest
    moves; Kafka's own search may miss both. Of several such, the one with the fewest partitions
    that have no replica in their member's rack; with ``racks_before_moves`` that counts first.

    Returns:
        The columns of ``schemas.ASSIGNMENT``.
    """
    return _assign(eligible, settings, STICKY)


def assign_cooperative_sticky(eligible: Eligible, settings: Settings) -> DataFrame:
    """Assign as ``CooperativeStickyAssignor`` does in one rebalance.

    That is `sticky` without the partitions that change hands: their owners must give them up
    first, and the rebalance after this one hands them over.

    Returns:
        The columns of ``schemas.ASSIGNMENT``.
    """
    return _assign(eligible, settings, COOPERATIVE_STICKY)


def _assign(eligible: Eligible, settings: Settings, assignor: int) -> DataFrame:
    """Assign groups that fit a task there, many in each, which runs no job; larger ones in rounds.

    Args:
        eligible: the groups.
        settings: how to compute it.
        assignor: which of them all groups have.

    Returns:
        The columns of ``schemas.ASSIGNMENT``.
    """
    sized = split_by_size(eligible, settings)
    parts = []
    if sized.alike is not None:
        parts.append(assign_constrained(sized.alike, settings, _log_round))
    for larger in (sized.differing, sized.racked):
        if larger is not None:
            with_racks = larger is sized.racked
            parts.append(assign_general(larger, settings, _log_round, with_racks=with_racks))
    if assignor == COOPERATIVE_STICKY:
        parts = [part.where("not is_moving") for part in parts]
    parts = [part.drop("is_moving") for part in parts]
    if sized.fitting is not None:
        parts.append(assign_in_tasks(sized.fitting, settings, assignor))
    return union_by_name(parts)


def _log_round(done: Round) -> None:
    measured = ", ".join(f"{name} {value}" for name, value in done.measured.items())
    _log.info("round %d (%s): %s", done.number, done.kind, measured)
