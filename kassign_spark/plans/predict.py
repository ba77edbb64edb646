"""Predict what Kafka itself will do with every group in its next rebalance, and whether it ends.

Its answer, and the rounds in which members come to it.
"""

from collections.abc import Callable, Iterable
from functools import partial
from typing import NamedTuple

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kassign_spark.assignors.assignor_protocols import check_protocol
from kassign_spark.assignors.in_tasks import KAFKAS
from kassign_spark.client.protocols import COOPERATIVE, COOPERATIVE_ASSIGNORS, EAGER
from kassign_spark.client_libraries import ASSIGNORS, CLIENTS, COORDINATOR_ASSIGNORS
from kassign_spark.conforming import has_cluster_id, short_assignor
from kassign_spark.errors import InputError
from kassign_spark.groups.eligible import Eligible
from kassign_spark.groups.rows import fold, run_in_tasks
from kassign_spark.plans.consumer_groups import (
    check_assignor,
    inspect_by_type,
    predict_consumer_groups,
)
from kassign_spark.plans.exact import RUNS, follow_exactly_arrow, predict_arrow
from kassign_spark.results import to_result
from kassign_spark.schemas import ASSIGNMENT, VERDICTS
from kassign_spark.spark.iteration import materialize

PREDICTED = KAFKAS
"""The assignors of Kafka's Java client."""


class Prediction(NamedTuple):
    """The client's assignment, and how it gets there; see ``predict``."""

    assignment: DataFrame
    verdicts: DataFrame


class PredictedRebalance(NamedTuple):
    """All steps, and how they end; see ``predict_rebalance``."""

    steps: DataFrame
    verdicts: DataFrame


def predict(
    members: DataFrame,
    topics: DataFrame,
    owned: DataFrame | None = None,
    *,
    target: DataFrame | None = None,
    assignor: str | None = None,
    leader: str | None = None,
) -> Prediction:
    """Return the exact answer of Kafka's Java client for every group, as of clients 3.8 and later.

    Groups of group_type `consumer` get the next target of the broker's own assignors instead; see
    ``predict_consumer_groups``, which gives the rounds to get there as well. Groups whose members
    name another library in ``members.client`` get that library's answer. Where they name several,
    ``members.is_leader`` says whose it is, or else ``leader``; without either all are asked, and
    where they differ the first member's answers, and the detail says how far the others differ.

    `roundrobin`, and `range` where racks do not count, are computed as for ``assign``. The others
    are followed step by step, one group after the other in each task, racks included. All is
    computed, and held, before this returns.

    ``owned`` and ``members.generation`` are what the leader receives. `sticky` reads them from its
    user data: version 1 with a generation, version 0 without. `cooperative-sticky` reads them from
    the subscription. ``members.member_seq`` is the order of the JoinGroup response, which decides
    between members in one bucket of a Java hash map.

    Args:
        members: ``schemas.MEMBERS``; only group_id, member_id and topics must be there.
        topics: ``schemas.TOPICS``, or one row per partition (topic, partition). Of the racks of a
            topic that is given twice, the greater count.
        owned: ``schemas.OWNED``: claimed partitions, whether they exist and are the member's
            own or not. Rows of members that are not in ``members`` are left out.
        target: ``schemas.TARGET``: the last target of groups of group_type `consumer`.
        assignor: one of ``PREDICTED`` for all groups, or None for each group's own
            (``members.assignor``). Of groups of group_type `consumer` only `range` can be another.
        leader: one of ``client_libraries.CLIENTS``: the library that leads groups whose members
            run several, where ``members.is_leader`` does not say; other groups have their own.

    Returns:
        assignment: the columns of ``schemas.ASSIGNMENT``; no rows of groups that throw or never
            end. A partition that was claimed but does not exist can be in it, and can lead to
            others being there twice: so the client does it.
        verdicts: cluster_id string (where the inputs have it), group_id string, verdict string
            (ok | throws | never_ends | inexact | never_settles; of other clients also starves:
            nobody gets anything, undefined: the library's code has no answer, drawn: chance
            decides, without rows in assignment), detail string (the exception and
            what led to it, where ok that partitions are given which do not exist, that topics are
            left out or the group gets nothing, or null, the pass after which a state came back
            or that the bound of passes was reached, or why the client may answer something else);
            one row per group. never_settles: the choice of a consumer group's assignor goes to
            and fro.

    Raises:
        SchemaError: columns are missing or of the wrong type.
        InputError: values that have no meaning, or an unknown assignor; lists every one. Or an
            unknown leader.
    """
    assignor = short_assignor(assignor)
    check_assignor(assignor, PREDICTED)
    if leader not in (None, *CLIENTS):
        raise InputError(f"unknown leader {leader!r}: it must be one of {', '.join(CLIENTS)}")
    known_assignors = ASSIGNORS if assignor is None else None
    eligible, _, consumer = inspect_by_type(members, topics, owned, target, known_assignors)
    rows, verdicts = _answers(eligible, assignor, partial(predict_arrow, leader=leader))
    has_clusters = has_cluster_id(members)
    of_classic = Prediction(
        to_result(rows, ASSIGNMENT, has_cluster_id=has_clusters),
        to_result(verdicts, VERDICTS, has_cluster_id=has_clusters),
    )
    if consumer is None:
        return of_classic
    of_consumers = predict_consumer_groups(
        consumer,
        assignor=assignor if assignor in COORDINATOR_ASSIGNORS else None,
        with_steps=False,
        has_cluster_id=has_clusters,
    )
    return Prediction(
        of_classic.assignment.unionByName(of_consumers.assignment),
        of_classic.verdicts.unionByName(of_consumers.verdicts),
    )


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
        topics: ``schemas.TOPICS``, or one row per partition.
        owned: ``schemas.OWNED``, what members own before.
        target: ``schemas.TARGET``, the last target of groups of group_type `consumer`.
        assignor: as for ``predict``.
        protocol: `eager` or `cooperative`; None for the assignor's own. Under `eager`
            `cooperative-sticky` does not know what members owned.

    Returns:
        steps: as ``rebalance`` gives them.
        verdicts: as in ``predict``, and verdict never_settles: the members come back to what they
            owned after an earlier round, and would go on for ever.

    Raises:
        SchemaError: columns are missing or of the wrong type.
        InputError: values that have no meaning, an unknown assignor or protocol, or an assignor
            that does not know the cooperative protocol.
    """
    assignor = short_assignor(assignor)
    check_assignor(assignor, PREDICTED)
    check_protocol(protocol)
    known_assignors = ASSIGNORS if assignor is None else None
    eligible, names, consumer = inspect_by_type(
        members, topics, owned, target, known_assignors, assignor, protocol
    )
    used = names if assignor is None else [assignor]
    if protocol == COOPERATIVE and not COOPERATIVE_ASSIGNORS.issuperset(used):
        raise InputError("only cooperative-sticky knows the cooperative protocol")
    kernel = partial(follow_exactly_arrow, is_eager=protocol == EAGER)
    rows, verdicts = _answers(eligible, assignor, kernel)
    has_clusters = has_cluster_id(members)
    of_classic = PredictedRebalance(
        to_result(rows, "predict_rebalance.steps", has_cluster_id=has_clusters),
        to_result(verdicts, "predict_rebalance.verdicts", has_cluster_id=has_clusters),
    )
    if consumer is None:
        return of_classic
    of_consumers = predict_consumer_groups(consumer, has_cluster_id=has_clusters)
    return PredictedRebalance(
        of_classic.steps.unionByName(of_consumers.steps),
        of_classic.verdicts.unionByName(of_consumers.verdicts),
    )


def _answers(
    eligible: Eligible, assignor: str | None, kernel: Callable[..., Iterable[pa.Table]]
) -> tuple[DataFrame, DataFrame]:
    """Predict all groups once in tasks: partitions and verdicts come from one held frame."""
    number = None if assignor is None else PREDICTED.index(assignor)
    answered = partial(kernel, assignor=number)
    runs = materialize(run_in_tasks(fold(eligible), answered, RUNS, eligible.batches)).frame
    rows = runs.where("verdict IS NULL").withColumn("partition", F.explode("partitions"))
    return rows, runs.where("verdict IS NOT NULL")
