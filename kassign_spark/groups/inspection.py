"""Check the inputs before anything is computed, and measure how large they are."""

from collections.abc import Collection
from typing import NamedTuple

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kassign_spark.groups.eligible import Eligible
from kassign_spark.groups.input_counts import count_inputs, in_one_partition
from kassign_spark.groups.rows import WORK_OF_ONE_TASK, tasks_for
from kassign_spark.groups.task_sizes import ONE_GROUP_BYTES
from kassign_spark.inputs.checks import input_checks
from kassign_spark.inputs.input_tables import Inputs
from kassign_spark.inputs.patterns import with_topics
from kassign_spark.inputs.problem_rows import refuse_problems
from kassign_spark.limits import MEMBERS_OF_A_GROUP, PARTITIONS_OF_A_GROUP
from kassign_spark.schemas import CLUSTER_ID
from kassign_spark.spark.iteration import materialize


class InputSummary(NamedTuple):
    """The eligible frames of all groups, and the names of the assignors that classic ones use.

    ``is_one_partition``: all is so small that each table is read in one partition.
    """

    eligible: Eligible
    assignors: list[str]
    has_consumer_groups: bool
    is_one_partition: bool


def inspect_inputs(
    inputs: Inputs,
    known_assignors: Collection[str] | None,
    *,
    both_types: bool = False,
    topic_ids: bool = False,
) -> InputSummary:
    """Check the inputs and measure how large they are; runs one query.

    Members that subscribe by a pattern get its topics; they are held, and counted again.

    Args:
        inputs: conforming tables.
        known_assignors: against which ``members.assignor`` is checked; None where the caller's
            own choice overrides that column.
        both_types: whether groups of group_type `consumer` are wanted as well: their members vote,
            may differ, have no vote or a regex.
        topic_ids: whether topics keep their ids; those of both types always do.

    Raises:
        InputError: values that have no meaning; lists every one.
    """
    input_counts = count_inputs(inputs, known_assignors, both_types)
    had_patterns = bool(input_counts.counts["patterns"])
    if had_patterns:
        has_unending = bool(input_counts.counts["unending"])
        resolved = with_topics(inputs.members, inputs.topics, has_unending=has_unending)
        inputs = inputs._replace(members=materialize(resolved).frame)
        input_counts = count_inputs(inputs, known_assignors, both_types)
    counts = input_counts.counts
    unknown = known_assignors is not None and not {*input_counts.assignors} <= {*known_assignors}
    # A group whose members differ has no more topics than they name together.
    most_topics = counts["most_edges"] if counts["differing"] else counts["most_topics"]
    most_partitions = min(most_topics, counts["topics"]) * counts["most"]
    may_be_too_large = (
        counts["most_members"] > MEMBERS_OF_A_GROUP
        or min(most_partitions, counts["all_partitions"]) > PARTITIONS_OF_A_GROUP
        # What a regex finds is not counted.
        or (inputs.has_regexes and both_types and counts["all_partitions"] > PARTITIONS_OF_A_GROUP)
    )
    tables = ("members", "topics", "owned", "target")
    is_bad = unknown or any(counts.get(f"bad_{table}") for table in tables)
    if is_bad or may_be_too_large:
        refuse_problems(input_checks(inputs, known_assignors, both_types=both_types))
    about = min(counts["all_topics"] * counts["mean"], counts["groups"] * most_partitions)
    work = counts["members"] + counts.get("claims", 0) + about
    all_work = work + counts["topics"] * counts["mean"]
    is_one_partition = input_counts.is_small and all_work <= WORK_OF_ONE_TASK
    if is_one_partition:
        inputs = in_one_partition(inputs)
    is_twice = bool(counts["topics_twice"])
    is_racked = bool(counts["racked"]) and "replica_racks" in inputs.topics.columns
    eligible = Eligible(
        inputs.members,
        _sizes(inputs.topics, is_twice, is_racked, both_types or topic_ids),
        inputs.owned,
        heterogeneous=bool(counts["differing"]),
        most_topics=counts["most_topics"],
        most_partitions=most_partitions,
        most_edges=counts["most_edges"],
        tasks=tasks_for(work, inputs.members.sparkSession),
        one_list=not counts["differing"],
        one_folds=input_counts.one_folds,
        is_one_group=counts["groups"] == 1 and input_counts.estimated_bytes <= ONE_GROUP_BYTES,
        has_racks=is_racked,
        had_patterns=had_patterns,
        has_clients=bool(counts["clients"]),
    )
    has_consumer_groups = bool(counts["consumer_groups"])
    return InputSummary(eligible, input_counts.assignors, has_consumer_groups, is_one_partition)


def _sizes(topics: DataFrame, is_twice: bool, is_racked: bool, has_ids: bool) -> DataFrame:
    """Return a row per topic that has partitions; of one that is given twice the greater racks."""
    more = ["replica_racks"] if is_racked else []
    if has_ids and "topic_id" in topics.columns:
        more.append("topic_id")
    if "num_partitions" not in topics.columns:
        topics = topics.groupBy(CLUSTER_ID, "topic").agg(
            F.expr("max(partition) + 1 as num_partitions")
        )
    elif is_twice:
        topics = topics.groupBy(CLUSTER_ID, "topic").agg(
            *(F.expr(f"max({name}) as {name}") for name in ["num_partitions", *more])
        )
    return topics.where("num_partitions > 0").selectExpr(
        CLUSTER_ID, "topic", "cast(num_partitions as int) as num_partitions", *more
    )
