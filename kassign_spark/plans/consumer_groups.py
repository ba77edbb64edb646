"""Groups by who assigns them, and what the coordinator does with those of the new protocol."""

from collections.abc import Collection
from functools import partial
from typing import NamedTuple

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kassign_spark.errors import InputError
from kassign_spark.groups.eligible import Eligible, restrict_to_members
from kassign_spark.groups.inspection import inspect_inputs
from kassign_spark.groups.rows import fold, regex_rows, run_in_tasks, target_rows, topic_rows
from kassign_spark.inputs.input_tables import conform_inputs
from kassign_spark.inputs.regexes import match_regexes
from kassign_spark.inputs.rules import is_consumer_group
from kassign_spark.plans.consumer_tasks import PREDICTED, predict_consumer_arrow
from kassign_spark.results import to_result
from kassign_spark.schemas import ASSIGNMENT, CLUSTER_ID, GROUP_KEY, VERDICTS
from kassign_spark.spark.iteration import materialize
from kassign_spark.spark.spark_versions import union_by_name


class ConsumerGroups(NamedTuple):
    """The groups of group_type `consumer`, and their last target, conforming, or None.

    ``has_regexes``: members may subscribe by a regex.
    """

    eligible: Eligible
    target: DataFrame | None
    has_regexes: bool


class GroupsByType(NamedTuple):
    """Inspected inputs, by who assigns.

    Attributes:
        classic: the groups whose clients assign.
        assignors: the names of the assignors that they use.
        consumer: the groups whose coordinator assigns; None: there is none.
    """

    classic: Eligible
    assignors: list[str]
    consumer: ConsumerGroups | None


class ConsumerPrediction(NamedTuple):
    """The coordinator's result; see ``predict_consumer_groups``."""

    assignment: DataFrame
    verdicts: DataFrame
    steps: DataFrame


def inspect_by_type(
    members: DataFrame,
    topics: DataFrame,
    owned: DataFrame | None,
    target: DataFrame | None,
    known_assignors: Collection[str] | None,
    *choices: object,
) -> GroupsByType:
    """Check the inputs, and part the groups of the new protocol from the others; runs one query.

    Args:
        members: ``schemas.MEMBERS``, as the caller gave them.
        topics: ``schemas.TOPICS``, or one row per partition.
        owned: ``schemas.OWNED`` or None.
        target: ``schemas.TARGET`` or None; where there is one, there should be such groups.
        known_assignors: as for ``inspect_inputs``.
        choices: what the caller chose for all groups; with any, the clients of all assign.

    Raises:
        SchemaError: columns are missing or of the wrong type.
        InputError: values that have no meaning; lists every one.
    """
    is_chosen = any(choice is not None for choice in choices)
    inputs = conform_inputs(members, topics, owned, None if is_chosen else target)
    both_types = not is_chosen and (inputs.has_types or target is not None)
    summary = inspect_inputs(inputs, known_assignors, both_types=both_types)
    eligible = summary.eligible
    if not (both_types and summary.has_consumer_groups):
        return GroupsByType(eligible, summary.assignors, None)
    consumer = restrict_to_members(eligible, eligible.members.where(is_consumer_group()))
    classic = eligible._replace(members=eligible.members.where(~is_consumer_group()))
    return GroupsByType(
        classic, summary.assignors, ConsumerGroups(consumer, inputs.target, inputs.has_regexes)
    )


def check_assignor(assignor: str | None, known: Collection[str]) -> None:
    """Refuse the name of an assignor that is none of those known.

    Raises:
        InputError: it is not.
    """
    if assignor is not None and assignor not in known:
        raise InputError(f"unknown assignor {assignor!r}; known are {', '.join(sorted(known))}")


def predict_consumer_groups(
    groups: ConsumerGroups,
    *,
    assignor: str | None = None,
    with_steps: bool = True,
    has_cluster_id: bool,
) -> ConsumerPrediction:
    """Predict the next target of every group of group_type `consumer`, and the way to it.

    As the group coordinator of Kafka 4.4.0: ``UniformAssignor``, ``RangeAssignor``,
    ``CurrentAssignmentBuilder``. All is computed, and held, before this returns.

    Args:
        groups: as ``inspect_by_type`` gives them. members.member_seq is the place in the
            coordinator's list, generation the member's epoch (-2: static and away), assignor what
            the member votes for. topics.topic_id decides between topics, and without it `uniform`
            is inexact. owned is what members have been given and have not said to have given up.
        assignor: `uniform` or `range` for all groups, or None for what the members' votes choose.
        with_steps: whether to return steps; else there are none.
        has_cluster_id: whether the result has it.

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
    """
    eligible, target = groups.eligible, groups.target
    with_steps = with_steps and (eligible.owned is not None or target is not None)
    kernel = partial(predict_consumer_arrow, assignor=assignor, with_steps=with_steps)
    table = fold_consumer_groups(groups)
    predicted = materialize(run_in_tasks(table, kernel, PREDICTED, eligible.batches)).frame
    runs = predicted.select(*GROUP_KEY, F.inline("assigned"))
    assigned = runs.withColumn("partition", F.explode("partitions"))
    steps = predicted.select(*GROUP_KEY, F.inline("steps"))
    return ConsumerPrediction(
        to_result(assigned, ASSIGNMENT, has_cluster_id=has_cluster_id),
        to_result(predicted, VERDICTS, has_cluster_id=has_cluster_id),
        to_result(steps, "rebalance", has_cluster_id=has_cluster_id),
    )


def fold_consumer_groups(groups: ConsumerGroups) -> DataFrame:
    """Fold the groups and their last target into the rows of one table; runs no job.

    Returns:
        Rows as in ``rows.fold``, but MEMBER: texts has topics_regex as well; TOPIC: those too that
        a regex finds, or that the target names; and
        REGEX: topic (the regex), texts (the topics that it finds);
        TARGET: member_id, topic, number (partition), place (position, or -1).
    """
    eligible, target, has_regexes = groups
    parts, topic_frames = [fold(eligible, regexes=True)], []
    if has_regexes:
        matches = match_regexes(eligible.members, eligible.topics)
        parts.append(regex_rows(matches))
        topic_frames.append(matches.select(*GROUP_KEY, F.explode("names").alias("topic")))
    if target is not None:
        parts.append(target_rows(target))
        topic_frames.append(target.select(*GROUP_KEY, "topic").distinct())
    for topics in topic_frames:
        sized = topics.join(eligible.topics, on=[CLUSTER_ID, "topic"], how="inner")
        parts.append(topic_rows(sized))
    return union_by_name(parts)
