"""The rounds of every group's rebalance, each answered exactly as Kafka's client does it."""

from functools import partial
from typing import NamedTuple

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kassign_spark.assignors.protocols import check_protocol
from kassign_spark.client.protocols import COOPERATIVE, COOPERATIVE_ASSIGNORS, EAGER
from kassign_spark.conforming import has_cluster_id
from kassign_spark.errors import InputError
from kassign_spark.groups.look import look
from kassign_spark.inputs.checks import conform_inputs
from kassign_spark.plans.consumer_groups import predict_consumer_groups, split_by_type
from kassign_spark.plans.exact import follow_exactly_arrow
from kassign_spark.plans.predict import PREDICTED, held_runs, verdicts_in
from kassign_spark.results import answer
from kassign_spark.schemas import GROUP_KEY

_STEP = [*GROUP_KEY, "round", "member_id", "topic", "partition", "action"]


class PredictedRebalance(NamedTuple):
    """All steps, and how they end; see ``predict_rebalance``."""

    steps: DataFrame
    verdicts: DataFrame


def predict_rebalance(
    members: DataFrame,
    topics: DataFrame,
    owned: DataFrame | None = None,
    *,
    target: DataFrame | None = None,
    assignor: str | None = None,
    protocol: str | None = None,
) -> PredictedRebalance:
    """Follow the rebalance of every group as ``rebalance`` does, with the client's own answers.

    Where neither ``assignor`` nor ``protocol`` is given, groups of group_type `consumer` move by
    heartbeats to the target that their coordinator computes; see ``predict_consumer_groups``.

    Args:
        members: ``schemas.MEMBERS``; all of them take part in every round.
        topics: ``schemas.TOPICS``, or one row a partition.
        owned: ``schemas.OWNED``, what members own before.
        target: ``schemas.TARGET``, the last target of groups of group_type `consumer`.
        assignor: as for ``predict``.
        protocol: `eager` or `cooperative`; None for the assignor's own. Under `eager`
            `cooperative-sticky` knows nothing of what members owned.

    Returns:
        steps: as ``rebalance`` gives them.
        verdicts: as of ``predict``, and verdict never_settles: the members come back to what they
            owned after an earlier round, and would go on for ever.

    Raises:
        SchemaError: columns are missing or of the wrong type.
        InputError: values that have no meaning, an unknown assignor or protocol, or an assignor
            that does not know the cooperative protocol.
    """
    if assignor is not None and assignor not in PREDICTED:
        raise InputError(f"unknown assignor {assignor!r}; known are {', '.join(sorted(PREDICTED))}")
    check_protocol(protocol)
    if assignor is not None or protocol is not None:
        return _of_classic(members, topics, owned, assignor, protocol)
    by_type = split_by_type(members, target)
    found = _of_classic(by_type.classic, topics, owned, None, None)
    if not by_type.may_be_consumer:
        return found
    theirs = predict_consumer_groups(members, topics, owned, target=target)
    return PredictedRebalance(
        found.steps.unionByName(theirs.steps), found.verdicts.unionByName(theirs.verdicts)
    )


def _of_classic(
    members: DataFrame,
    topics: DataFrame,
    owned: DataFrame | None,
    assignor: str | None,
    protocol: str | None,
) -> PredictedRebalance:
    inputs = conform_inputs(members, topics, owned)
    eligible, names, _ = look(inputs, PREDICTED if assignor is None else None)
    used = names if assignor is None else [assignor]
    if protocol == COOPERATIVE and not COOPERATIVE_ASSIGNORS.issuperset(used):
        raise InputError("only cooperative-sticky knows the cooperative protocol")
    number = None if assignor is None else PREDICTED.index(assignor)
    kernel = partial(follow_exactly_arrow, assignor=number, is_eager=protocol == EAGER)
    # Held: the two results are of one computation.
    judged = held_runs(eligible, kernel)
    steps = judged.where("verdict IS NULL").select(
        *(F.explode("partitions").alias(n) if n == "partition" else n for n in _STEP)
    )
    given = has_cluster_id(members)
    return PredictedRebalance(
        answer(steps, "predict_rebalance.steps", has_cluster_id=given),
        answer(verdicts_in(judged), "predict_rebalance.verdicts", has_cluster_id=given),
    )
