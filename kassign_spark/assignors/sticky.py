"""Kafka's sticky assignors: equal subscriptions exactly as the client, others at the optimum."""

import logging
from functools import reduce

from pyspark.sql import DataFrame

from kassign_spark.assignors.constrained import assign_constrained
from kassign_spark.assignors.general import assign_general
from kassign_spark.assignors.in_tasks import COOPERATIVE_STICKY, STICKY
from kassign_spark.assignors.one_task import assign_in_tasks
from kassign_spark.assignors.sizes import by_size
from kassign_spark.groups.batch import Moving
from kassign_spark.groups.eligible import Eligible
from kassign_spark.rounds import Round
from kassign_spark.settings.computing import Settings

_log = logging.getLogger(__name__)


def assign_sticky(eligible: Eligible, settings: Settings) -> DataFrame:
    """Assign as ``StickyAssignor`` does where all members of a group subscribe alike.

    Where they do not, the result is the best balance there is and, at that balance, the fewest
    moves; Kafka's own search may miss both. Of several such, the one with the fewest partitions
    that have no replica in their member's rack; with ``racks_before_moves`` that counts first.

    Returns:
        The columns of ``schemas.ASSIGNMENT``.
    """
    return sticky_target(eligible, settings, STICKY, "given")


def assign_cooperative_sticky(eligible: Eligible, settings: Settings) -> DataFrame:
    """Assign as ``CooperativeStickyAssignor`` does in one rebalance.

    That is `sticky` without the partitions that change hands: their owners must give them up
    first, and the rebalance after this one hands them over.

    Returns:
        The columns of ``schemas.ASSIGNMENT``.
    """
    return sticky_target(eligible, settings, COOPERATIVE_STICKY, "withheld")


def sticky_target(
    eligible: Eligible, settings: Settings, assignor: int, moving: Moving
) -> DataFrame:
    """Give the assignment that both sticky assignors aim at.

    Groups that fit a task are answered there, many of them in each; that runs no job. Larger ones
    go in rounds over DataFrames, which do.

    Args:
        eligible: the groups.
        settings: how to compute it.
        assignor: which of them all groups have.
        moving: what becomes of what a cooperative rebalance withholds for one round.

    Returns:
        The columns of ``schemas.ASSIGNMENT``, and is_moving boolean if that is ``told``.
    """
    sized = by_size(eligible, settings)
    parts = []
    if sized.fitting is not None:
        parts.append(assign_in_tasks(sized.fitting, settings, assignor, moving))
    if sized.alike is not None:
        constrained = assign_constrained(sized.alike, settings, _log_round)
        parts.append(_with_moving(constrained, moving))
    for larger in (sized.differing, sized.racked):
        if larger is not None:
            with_racks = larger is sized.racked
            general = assign_general(larger, settings, _log_round, with_racks=with_racks)
            parts.append(_with_moving(general, moving))
    return reduce(DataFrame.unionByName, parts)


def _with_moving(target: DataFrame, moving: Moving) -> DataFrame:
    """Leave is_moving, or do what is asked with what it tells."""
    if moving == "told":
        return target
    given = target.where("not is_moving") if moving == "withheld" else target
    return given.drop("is_moving")


def _log_round(done: Round) -> None:
    measured = ", ".join(f"{name} {value}" for name, value in done.measured.items())
    _log.info("round %d (%s): %s", done.number, done.what, measured)
