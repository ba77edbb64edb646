"""What Kafka itself will do with every group in its next rebalance, and whether it will end."""

from functools import partial
from typing import NamedTuple

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kassign_spark.assignors.in_tasks import KAFKAS
from kassign_spark.conforming import has_cluster_id
from kassign_spark.coordinator.choice import ASSIGNORS as COORDINATORS
from kassign_spark.errors import InputError
from kassign_spark.groups.eligible import Eligible
from kassign_spark.groups.look import look
from kassign_spark.groups.rows import Kernel, fold, in_tasks
from kassign_spark.inputs.checks import conform_inputs
from kassign_spark.plans.consumer_groups import predict_consumer_groups, split_by_type
from kassign_spark.plans.exact import predict_arrow
from kassign_spark.plans.runs import RUNS
from kassign_spark.results import answer
from kassign_spark.rounds import hold
from kassign_spark.schemas import ASSIGNMENT, GROUP_KEY, VERDICTS

PREDICTED = KAFKAS
"""The assignors of Kafka's Java client."""


class Prediction(NamedTuple):
    """What the client does: an assignment, and how it comes to one; see ``predict``."""

    assignment: DataFrame
    verdicts: DataFrame


def predict(
    members: DataFrame,
    topics: DataFrame,
    owned: DataFrame | None = None,
    *,
    target: DataFrame | None = None,
    assignor: str | None = None,
) -> Prediction:
    """Give the exact answer of Kafka's Java client for every group, as of clients 3.8 and later.

    Groups of group_type `consumer` get the next target of the broker's own assignors instead; see
    ``predict_consumer_groups``, which gives the rounds to get there as well.

    `roundrobin`, and `range` where racks do not count, are computed as for ``assign``. The others
    are followed step by step, one group after the other in each task, racks included. All is
    computed, and held, before this returns.

    ``owned`` and ``members.generation`` are what the leader is told. `sticky` reads them from its
    user data: version 1 with a generation, version 0 without. `cooperative-sticky` reads them from
    the subscription. ``members.member_seq`` is the order of the JoinGroup response, which decides
    between members in one bucket of a Java hash map.

    Args:
        members: ``schemas.MEMBERS``; only group_id, member_id and topics must be there.
        topics: ``schemas.TOPICS``, or one row a partition (topic, partition). Of the racks of a
            topic that is given twice, the greater count.
        owned: ``schemas.OWNED``: claimed partitions, whether they exist and are the member's
            own or not. Rows of members that are not in ``members`` are left out.
        target: ``schemas.TARGET``: the last target of groups of group_type `consumer`.
        assignor: one of ``PREDICTED`` for all groups, or None for each group's own
            (``members.assignor``). Of groups of group_type `consumer` only `range` can be another.

    Returns:
        assignment: the columns of ``schemas.ASSIGNMENT``; no rows of groups that throw or never
            end. A partition that was claimed but does not exist can be in it, and can lead to
            others being there twice: so the client does it.
        verdicts: cluster_id string (where the inputs have it), group_id string, verdict string
            (ok | throws | never_ends | inexact | never_settles), detail string (null where ok: else
            the exception and what led to it, the pass after which a state came back or that the
            bound of passes was reached, or why the client may answer something else); one row a
            group. never_settles: the choice of a consumer group's assignor goes to and fro.

    Raises:
        SchemaError: columns are missing or of the wrong type.
        InputError: values that have no meaning, or an unknown assignor; lists every one.
    """
    if assignor is not None and assignor not in PREDICTED:
        raise InputError(f"unknown assignor {assignor!r}; known are {', '.join(sorted(PREDICTED))}")
    by_type = split_by_type(members, target)
    found = _predict_classic(by_type.classic, topics, owned, assignor)
    if not by_type.may_be_consumer:
        return found
    theirs = predict_consumer_groups(
        members,
        topics,
        owned,
        target=target,
        assignor=assignor if assignor in COORDINATORS else None,
        with_steps=False,
    )
    return Prediction(
        found.assignment.unionByName(theirs.assignment),
        found.verdicts.unionByName(theirs.verdicts),
    )


def _predict_classic(
    members: DataFrame, topics: DataFrame, owned: DataFrame | None, assignor: str | None
) -> Prediction:
    inputs = conform_inputs(members, topics, owned)
    eligible = look(inputs, PREDICTED if assignor is None else None).eligible
    number = None if assignor is None else PREDICTED.index(assignor)
    kernel = partial(predict_arrow, assignor=number)
    # Held: the two results are of one computation.
    judged = held_runs(eligible, kernel)
    has_cluster = has_cluster_id(members)
    return Prediction(
        answer(assigned_in(judged), ASSIGNMENT, has_cluster_id=has_cluster),
        answer(verdicts_in(judged), VERDICTS, has_cluster_id=has_cluster),
    )


def held_runs(eligible: Eligible, kernel: Kernel) -> DataFrame:
    """Let tasks answer all groups once, for results that are of one computation: ``RUNS``."""
    found = in_tasks(fold(eligible), kernel, RUNS, eligible.batches)
    return hold(found, {"rows": F.count(F.lit(1))}).frame


def assigned_in(runs: DataFrame) -> DataFrame:
    """The assignment in ``RUNS``."""
    return runs.where("verdict IS NULL").select(
        *GROUP_KEY, "member_id", "topic", F.explode("partitions").alias("partition")
    )


def verdicts_in(runs: DataFrame) -> DataFrame:
    """The verdicts in ``RUNS``."""
    return runs.where("verdict IS NOT NULL").select(*GROUP_KEY, "verdict", "detail")
