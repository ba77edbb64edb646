"""One look at the inputs before anything is computed: whether they are fit, and how large."""

from collections.abc import Collection
from functools import reduce
from typing import NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from kassign_spark.coordinator.assignor_votes import ASSIGNORS as COORDINATORS
from kassign_spark.groups.eligible import Eligible, fold_topics
from kassign_spark.groups.rows import tasks_for
from kassign_spark.groups.task_sizes import (
    ONE_FOLD_BYTES,
    ONE_FOLD_EDGES,
    ONE_GROUP_BYTES,
    ONE_TASK_BYTES,
)
from kassign_spark.inputs.checks import (
    Inputs,
    group_refusals,
    refusals,
    refuse_problems,
    row_refusals,
    size_refusals,
    unknown_assignors,
)
from kassign_spark.inputs.linear import may_not_end_in_sql
from kassign_spark.inputs.patterns import with_topics
from kassign_spark.inputs.regexes import with_regex_problems
from kassign_spark.inputs.rules import (
    IS_CONSUMER_GROUP,
    any_broken,
    is_consumer_group,
    is_one_of,
    member_rules,
    not_allowed,
    owned_rules,
    rules_of_topics,
)
from kassign_spark.inputs.target_rules import (
    consumer_problems,
    regex_rules,
    target_suspects,
    topic_id_rules,
)
from kassign_spark.iteration import hold
from kassign_spark.limits import (
    MEMBERS_OF_A_GROUP,
    PARTITIONS_OF_A_GROUP,
    PARTITIONS_OF_A_TOPIC,
)
from kassign_spark.schemas import CLUSTER_ID, GROUP_KEY
from kassign_spark.sessions import estimated_bytes


class InputSummary(NamedTuple):
    """The eligible frames of all groups, and the names of the assignors that the groups use."""

    eligible: Eligible
    assignors: list[str]
    had_patterns: bool


_LARGEST = 100_000
"""Cap for the mean size of topics: an unread topic may claim to have two thousand million."""

_OF_GROUPS = {
    "groups": "count(*)",
    "members": "sum(members)",
    "most_members": "max(members)",
    "bad_members": "count_if(is_bad)",
    "patterns": "sum(patterns)",
    "unending": "sum(unending)",
    "differing": "count_if(may_differ)",
    "most_topics": "max(topic_count)",
    "all_topics": "sum(topic_count)",
    "most_edges": "max(edges)",
    "all_edges": "sum(edges)",
    "racked": "sum(racked)",
}
_OF_TOPICS = {
    "topics": "count(is_twice)",
    "bad_topics": "count_if(bad_rows > 0 or is_inconsistent)",
    "topics_twice": "count_if(is_twice)",
    "most": "max(num_partitions)",
    "all_partitions": f"sum(least(num_partitions, {PARTITIONS_OF_A_TOPIC}))",
    "mean": f"ceil(avg(if(num_partitions > {_LARGEST}, {_LARGEST}, num_partitions)))",
}
_OF_CLAIMS = {
    "claims": "sum(claims)",
    # What no topic is called that the cluster has may be what none can be called.
    "bad_owned": f"sum(bad_owned) + count_if(is_twice is null and {not_allowed('topic')})",
    "missing_claims": "count_if(highest >= num_partitions)",
    "hidden_topics": "count_if(claims > 0 and is_twice is null)",
}
"""Columns of topics with their claims; a topic that does not exist has only claims."""


class _InputCounts(NamedTuple):
    counts: dict[str, int]
    assignors: list[str]
    estimated_bytes: float
    """By Spark, of what is read: few rows may be left of much."""
    one_folds: bool
    """Return whether, by the same estimate, one task can fold members and topics."""


def look(
    inputs: Inputs,
    known_assignors: Collection[str] | None,
    *,
    both_types: bool = False,
    topic_ids: bool = False,
    target: DataFrame | None = None,
) -> InputSummary:
    """Check the inputs and see how large they are; runs one query.

    Members that subscribe by a pattern are given its topics; they are held, and looked at again.

    Args:
        inputs: conforming tables.
        known_assignors: against which ``members.assignor`` is checked; None where the caller's
            own choice overrides that column.
        both_types: whether groups of group_type `consumer` are wanted as well: their members vote,
            may differ, have no vote or a regex.
        topic_ids: whether topics keep their ids; those of both types always do.
        target: of groups of group_type `consumer` where both types are wanted, conforming.

    Raises:
        InputError: values that have no meaning; lists every one.
    """
    summary = _query(inputs, known_assignors, both_types, target)
    had_patterns = bool(summary.counts["patterns"])
    if had_patterns:
        has_unending = bool(summary.counts["unending"])
        resolved = with_topics(inputs.members, inputs.topics, has_unending=has_unending)
        inputs = inputs._replace(members=hold(resolved, {"rows": F.count(F.lit(1))}).frame)
        summary = _query(inputs, known_assignors, both_types, target)
    counts = summary.counts
    unknown = known_assignors is not None and not set(summary.assignors) <= set(known_assignors)
    # A group whose members differ has no more topics than they name together.
    most_topics = counts["most_edges"] if counts["differing"] else counts["most_topics"]
    most_partitions = min(most_topics, counts["topics"]) * counts["most"]
    may_be_too_large = (
        counts["most_members"] > MEMBERS_OF_A_GROUP
        or min(most_partitions, counts["all_partitions"]) > PARTITIONS_OF_A_GROUP
    )
    tables = ("members", "topics", "owned", "target")
    is_bad = unknown or any(counts.get(f"bad_{table}") for table in tables)
    if is_bad or may_be_too_large:
        if both_types:
            refuse_problems(_problems_of_both(inputs, known_assignors, target))
        else:
            refuse_problems(refusals(inputs, known_assignors))
    about = min(counts["all_topics"] * counts["mean"], counts["groups"] * most_partitions)
    work = counts["members"] + counts.get("claims", 0) + about
    session = inputs.members.sparkSession
    is_small = summary.estimated_bytes <= ONE_TASK_BYTES
    if is_small and tasks_for(work + counts["topics"] * counts["mean"], session) == 1:
        inputs = inputs.in_one_partition()
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
        tasks=tasks_for(work, session),
        one_list=not counts["differing"],
        one_folds=summary.one_folds and counts["all_edges"] <= ONE_FOLD_EDGES,
        is_one_group=counts["groups"] == 1 and summary.estimated_bytes <= ONE_GROUP_BYTES,
        has_racks=is_racked,
        has_missing_claims=bool(counts.get("missing_claims")),
        has_hidden_topics=bool(counts.get("hidden_topics")),
    )
    return InputSummary(eligible, summary.assignors, had_patterns)


def _query(
    inputs: Inputs,
    known_assignors: Collection[str] | None,
    both_types: bool,
    target: DataFrame | None,
) -> _InputCounts:
    """Count everything in one query; a table at a time would be a few small jobs more."""
    tables = (*inputs[:3], target)
    sizes = [0.0 if frame is None else estimated_bytes(frame) for frame in tables]
    one_folds_members, one_folds_topics = (size <= ONE_FOLD_BYTES for size in sizes[:2])
    size = sum(sizes)
    is_small = size <= ONE_TASK_BYTES
    if is_small:
        inputs = inputs.in_one_partition()
        target = None if target is None else target.coalesce(1)
    else:
        if one_folds_members:
            inputs = inputs._replace(members=inputs.members.coalesce(1))
        if one_folds_topics:
            inputs = inputs._replace(topics=inputs.topics.coalesce(1))
    of_members = _of_members(inputs, known_assignors is None, both_types)
    rules, measures = rules_of_topics(inputs.topics), dict(_OF_TOPICS)
    if both_types and "topic_id" in inputs.topics.columns:
        rules += topic_id_rules()
        # A topic with two ids is one of those that appear twice.
        measures["bad_topics"] += f" + {measures['topics_twice']}"
    of_topics = fold_topics(inputs.topics, bad_row=any_broken(rules))
    none = F.expr("cast(array() as array<string>) as assignors")
    used = F.expr("collect_set(assignor) as assignors")
    if inputs.owned is not None:
        of_topics = _beside_claims(of_topics, inputs.owned)
        measures |= _OF_CLAIMS
    parts = [of_members.agg(_named(_OF_GROUPS), used), of_topics.agg(_named(measures), none)]
    if target is not None:
        types = inputs.members.selectExpr(
            *GROUP_KEY,
            "false as is_bad",
            "cast(null as struct<kind: string, hashed: bigint>) as key",
            f"{IS_CONSUMER_GROUP} as is_consumer",
        )
        suspects = target_suspects(types, target)
        parts.append(suspects.agg(_named({"bad_target": "sum(suspects)"}), none))
    if not is_small:
        # What is behind a shuffle, of one row, is a stage of its own, beside the others.
        parts = [frame.repartition(1) for frame in parts]
    counts: dict[str, int] = {}
    assignors: list[str] = []
    for row in reduce(DataFrame.unionByName, parts).collect():
        counts |= {name: int(count or 0) for name, count in row.counts.items()}
        assignors += row.assignors
    return _InputCounts(counts, sorted(assignors), size, one_folds_members and one_folds_topics)


def _beside_claims(of_topics: DataFrame, owned: DataFrame) -> DataFrame:
    """Put what is owned of each topic beside ``fold_topics``: one row per topic of either."""
    is_bad = f"count_if({any_broken(owned_rules(names=False))})"
    measures = {"highest": "max(partition)", "claims": "count(*)", "bad_owned": is_bad}
    claimed = owned.groupBy(CLUSTER_ID, "topic").agg(
        *(F.expr(f"{value} as {name}") for name, value in measures.items())
    )
    both = of_topics.unionByName(claimed, allowMissingColumns=True)
    names = [name for name in both.columns if name not in (CLUSTER_ID, "topic")]
    return both.groupBy(CLUSTER_ID, "topic").agg(*(F.expr(f"max({n}) as {n}") for n in names))


def _of_members(inputs: Inputs, ignore_assignor: bool, both_types: bool) -> DataFrame:
    """One row per group: what the measures are of."""
    members = inputs.members
    is_bad = [
        f"count_if({any_broken(member_rules())}) > 0",
        # Two ids of one hash would have the problems looked for, and none found.
        "size(array_distinct(collect_list(xxhash64(member_id)))) < count(*)",
    ]
    is_mixed = "(count(assignor) != count(*) or min(assignor) != max(assignor))"
    assignor = "assignor"
    if both_types:
        is_unfit = f"not coalesce({is_one_of('assignor', COORDINATORS)}, true)"
        if inputs.has_regexes:
            # A regex is read in Python, which no aggregate takes.
            members = with_regex_problems(members)
            is_unfit = f"({is_unfit} or {any_broken(regex_rules())})"
        is_bad.append(f"count_if({IS_CONSUMER_GROUP} and {is_unfit}) > 0")
        is_mixed = f"({is_mixed} and not bool_or({IS_CONSUMER_GROUP}))"
        assignor = f"if({IS_CONSUMER_GROUP}, null, assignor)"
    if not ignore_assignor:
        is_bad.append(f"coalesce({is_mixed}, true)")
    measures = {
        "members": "count(*)",
        "is_bad": " or ".join(is_bad),
        "patterns": "count(topics_pattern)",
        "unending": f"count_if({may_not_end_in_sql('topics_pattern')})",
        # By hashes, as ``rows.fold`` tells lists apart. Lists in another order count as others: to
        # sort them all takes as long as all the rest.
        "may_differ": "count(topics) < count(*) or min(xxhash64(topics)) != max(xxhash64(topics))",
        "topic_count": "max(size(topics))",
        "edges": "sum(size(topics))",
        "assignor": f"min({assignor})",
        "racked": "count_if(length(rack_id) > 0)",
    }
    return members.groupBy(*GROUP_KEY).agg(
        *(F.expr(f"{value} as {name}") for name, value in measures.items())
    )


def _named(measures: dict[str, str]) -> Column:
    entries = (f"'{name}', cast({value} as bigint)" for name, value in measures.items())
    return F.expr(f"map({', '.join(entries)}) as counts")


def _problems_of_both(
    inputs: Inputs, known_assignors: Collection[str] | None, target: DataFrame | None
) -> DataFrame:
    """Return the problems of groups of both types: the columns of a problem."""
    is_theirs = is_consumer_group()
    classic, consumer = (inputs.members.where(condition) for condition in (~is_theirs, is_theirs))
    problems = [
        row_refusals(inputs),
        group_refusals(classic, known_assignors),
        group_refusals(consumer, None),
        size_refusals(inputs),
        unknown_assignors(consumer, COORDINATORS),
        *consumer_problems(inputs, consumer, target),
    ]
    return reduce(DataFrame.unionByName, problems)


def _sizes(topics: DataFrame, is_twice: bool, is_racked: bool, has_ids: bool) -> DataFrame:
    """One row per topic that has partitions; of one that is given twice the greater racks."""
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
