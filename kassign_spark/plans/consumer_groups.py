"""Predict what the coordinator does with groups of the new protocol (KIP-848)."""

from collections.abc import Collection
from functools import partial
from typing import NamedTuple

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kassign_spark.conforming import (
    check_same_clusters,
    conform,
    has_cluster_id,
    short_assignor,
)
from kassign_spark.coordinator.arrow import PREDICTED, predict_batches
from kassign_spark.coordinator.assignor_votes import ASSIGNORS
from kassign_spark.errors import InputError
from kassign_spark.groups.consumer_inspection import refuse_consumer_groups
from kassign_spark.inputs.checks import Inputs, conform_inputs
from kassign_spark.inputs.regexes import match_regexes
from kassign_spark.inputs.rules import is_consumer_group
from kassign_spark.iteration import hold
from kassign_spark.results import answer
from kassign_spark.schemas import ASSIGNMENT, CLUSTER_ID, GROUP_KEY, MEMBERS, TARGET, VERDICTS
from kassign_spark.sessions import cores
from kassign_spark.workers import check_workers

_LISTS = {
    "topics": "topic: string, topic_id: string, num_partitions: int",
    "regexes": "topics_regex: string, names: array<string>",
    "target": "member_id: string, topic: string, partition: bigint, position: bigint",
    "held": "member_id: string, topic: string, partition: bigint",
}
"""The lists collected for a group, apart from its members: lists of structs of these fields."""


class ConsumerPrediction(NamedTuple):
    """The coordinator's result; see ``predict_consumer_groups``."""

    assignment: DataFrame
    verdicts: DataFrame
    steps: DataFrame


def split_by_type(
    members: DataFrame, target: DataFrame | None, *of_all: object
) -> tuple[DataFrame, bool]:
    """Part the groups of the new protocol from the others; runs no job.

    Args:
        members: ``schemas.MEMBERS``, as the caller gave them.
        target: ``schemas.TARGET`` or None; where there is one, there should be such groups.
        of_all: what the caller says of all groups; if anything, the clients of all assign.

    Returns:
        The members of groups whose clients assign: all of them where no column says otherwise;
        and whether there can be others, whose coordinator assigns.

    Raises:
        SessionError: the server of Spark Connect does not answer.
        WorkerError: the session's Python workers run an interpreter without our packages.
    """
    if any(table is not None for table in of_all):
        return members, False
    check_workers(members.sparkSession)  # the columns are the first that a server is asked for
    if dict(members.dtypes).get("group_type") != "string":
        return members, target is not None
    return members.where(~is_consumer_group()), True


def check_assignor(assignor: str | None, known: Collection[str]) -> None:
    """Refuse the name of an assignor that is none of those known.

    Raises:
        InputError: it is not.
    """
    if assignor is not None and assignor not in known:
        raise InputError(f"unknown assignor {assignor!r}; known are {', '.join(sorted(known))}")


def predict_consumer_groups(
    members: DataFrame,
    topics: DataFrame,
    owned: DataFrame | None = None,
    *,
    target: DataFrame | None = None,
    assignor: str | None = None,
    with_steps: bool = True,
) -> ConsumerPrediction:
    """Predict the next target of every group of group_type `consumer`, and the way to it.

    As the group coordinator of Kafka 4.4.0: ``UniformAssignor``, ``RangeAssignor``,
    ``CurrentAssignmentBuilder``. Groups of other types are left out. All is computed, and held,
    before this returns.

    Args:
        members: ``schemas.MEMBERS``. member_seq is the place in the coordinator's list, generation
            the member's epoch (-2: static and away), assignor what the member votes for.
        topics: ``schemas.TOPICS``; topic_id decides between topics, and without it `uniform` is
            inexact.
        owned: ``schemas.OWNED``: what members have been given and have not said to have given up.
        target: ``schemas.TARGET``: the last target; None and groups without rows: there is none.
        assignor: `uniform` or `range` for all groups, or None for what the members' votes choose.
        with_steps: whether to return steps; else there are none.

    Returns:
        assignment: the columns of ``schemas.ASSIGNMENT``.
        verdicts: cluster_id string (where the inputs have it), group_id string, verdict string (ok
            | inexact | never_settles), detail string (why, and that topics are left out or the
            group gets nothing; else null), one row per group. inexact: something that decides is
            not known. never_settles: of two members one votes for `uniform` and one for `range`,
            and the group goes to and fro between them.
        steps: the columns of ``rebalance``: cluster_id string (where the inputs have it), group_id
            string, round int (of heartbeats, from 1 to at most 3), member_id string, topic string,
            partition int, action string (retained | revoked | withheld | assigned). A partition
            that is withheld in the last round waits for a static member that is away.

    Raises:
        SchemaError: columns are missing or of the wrong type.
        InputError: values that have no meaning, or an unknown assignor; lists every one.
    """
    assignor = short_assignor(assignor)
    check_assignor(assignor, ASSIGNORS)
    check_same_clusters([(MEMBERS, members), (TARGET, target)])
    inputs = conform_inputs(members, topics, owned)
    last = None if target is None else conform(target, TARGET)
    refuse_consumer_groups(inputs, last, ASSIGNORS if assignor is None else None)
    consumer_members = inputs.members.where(is_consumer_group())
    states = _fold_states(inputs._replace(members=consumer_members), last)
    with_steps = with_steps and (owned is not None or last is not None)
    kernel = partial(predict_batches, assignor=assignor, with_steps=with_steps)
    predicted = hold(states.mapInArrow(kernel, PREDICTED)).frame
    runs = predicted.select(*GROUP_KEY, F.inline("assigned"))
    assigned = runs.withColumn("partition", F.explode("partitions"))
    has_clusters = has_cluster_id(members)
    return ConsumerPrediction(
        answer(assigned, ASSIGNMENT, has_cluster_id=has_clusters),
        answer(predicted, VERDICTS, has_cluster_id=has_clusters),
        answer(
            predicted.select(*GROUP_KEY, F.inline("steps")),
            "rebalance",
            has_cluster_id=has_clusters,
        ),
    )


def _fold_states(inputs: Inputs, target: DataFrame | None) -> DataFrame:
    """Collect everything about a group in one row, as ``coordinator.arrow`` takes it.

    Args:
        inputs: conforming tables; members of such groups only.
        target: ``schemas.TARGET``, conforming, or None.

    Returns:
        cluster_id string, group_id string, members array<struct<member_seq, member_id,
        group_instance_id, topics, topics_regex, assignor, generation>>: in the coordinator's
        order, topics array<struct<topic, topic_id, num_partitions>>: those subscribed to and those
        of the target, regexes array<struct<topics_regex, names>>, target array<struct<member_id,
        topic, partition, position>>, held array<struct<member_id, topic, partition>>.
    """
    key = list(GROUP_KEY)
    sizes = _sizes(inputs.topics)
    matches = match_regexes(inputs.members, sizes)
    columns = ("member_seq", "member_id", "group_instance_id", "topics", "topics_regex")
    states = inputs.members.groupBy(*key).agg(
        F.sort_array(F.collect_list(F.struct(*columns, "assignor", "generation"))).alias("members")
    )
    # Most members of a group list the same topics.
    lists = inputs.members.select(*key, "topics").distinct()
    named = lists.select(*key, F.explode("topics").alias("topic"))
    named = named.unionByName(matches.select(*key, F.explode("names").alias("topic")))
    if target is not None:
        named = named.unionByName(target.select(*key, "topic"))
    sized = named.distinct().join(sizes, on=[CLUSTER_ID, "topic"], how="inner")
    rows = {"topics": sized, "regexes": matches, "target": target, "held": inputs.owned}
    for name, frame in rows.items():
        none = F.array().cast(f"array<struct<{_LISTS[name]}>>")
        if frame is None:
            states = states.withColumn(name, none)
        else:
            each = F.struct(*(field.split(":")[0] for field in _LISTS[name].split(", ")))
            listed = frame.groupBy(*key).agg(F.collect_list(each).alias(name))
            states = states.join(listed, key, "left").withColumn(name, F.coalesce(name, none))
    return states.repartition(cores(states.sparkSession), *key)


def _sizes(topics: DataFrame) -> DataFrame:
    """One row per topic: cluster_id, topic, num_partitions int, topic_id; any form of topics."""
    if "num_partitions" in topics.columns:
        size, topic_id = F.max("num_partitions"), F.max("topic_id")
    else:
        size, topic_id = F.count_distinct("partition"), F.lit(None).cast("string")
    return topics.groupBy(CLUSTER_ID, "topic").agg(
        size.cast("int").alias("num_partitions"), topic_id.alias("topic_id")
    )
