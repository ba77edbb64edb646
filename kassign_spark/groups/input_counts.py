"""How large the inputs are, and whether anything in them may be wrong: one query."""

from collections.abc import Collection
from typing import NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from kassign_spark.client_libraries import COORDINATOR_ASSIGNORS
from kassign_spark.groups.task_sizes import (
    ONE_FOLD_BYTES,
    ONE_FOLD_EDGES,
    ONE_TASK_BYTES,
    table_bytes,
)
from kassign_spark.inputs.checks import CONFLICTS
from kassign_spark.inputs.input_tables import Inputs
from kassign_spark.inputs.linear import may_not_end_in_sql
from kassign_spark.inputs.regexes import with_regex_problems
from kassign_spark.inputs.rules import (
    IS_CONSUMER_GROUP,
    any_broken,
    is_one_of,
    member_rules,
    owned_rules,
    regex_rules,
    rules_of_topics,
    target_rules,
    topic_id_rules,
)
from kassign_spark.limits import MEMBERS_OF_A_GROUP, PARTITIONS_OF_A_TOPIC
from kassign_spark.schemas import CLUSTER_ID, GROUP_KEY
from kassign_spark.spark.spark_versions import union_by_name

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
    "clients": "sum(clients)",
    "consumer_groups": "count_if(is_consumer)",
}
_OF_TOPICS = {
    "topics": "count(*)",
    "bad_topics": "count_if(bad_rows > 0 or is_inconsistent)",
    "topics_twice": "count_if(is_twice)",
    "most": "max(num_partitions)",
    "all_partitions": f"sum(least(num_partitions, {PARTITIONS_OF_A_TOPIC}))",
    "mean": f"ceil(avg(if(num_partitions > {_LARGEST}, {_LARGEST}, num_partitions)))",
}


class InputCounts(NamedTuple):
    """What one query counts about the inputs.

    Attributes:
        counts: by the names of ``_OF_GROUPS`` and ``_OF_TOPICS``, claims, bad_owned and bad_target.
        assignors: the names of the assignors that groups use, in order.
        estimated_bytes: Spark's estimate of all that is read; few rows may be left of much.
        is_small: whether one task reads all of it, by that estimate.
        one_folds: whether one task can fold members and topics.
    """

    counts: dict[str, int]
    assignors: list[str]
    estimated_bytes: float
    is_small: bool
    one_folds: bool


def count_inputs(
    inputs: Inputs, known_assignors: Collection[str] | None, both_types: bool
) -> InputCounts:
    """Count everything in one query; a table at a time would be a few small jobs more."""
    sizes = table_sizes(inputs)
    one_folds_members, one_folds_topics = (size <= ONE_FOLD_BYTES for size in sizes[:2])
    size = sum(sizes)
    is_small = size <= ONE_TASK_BYTES
    if is_small:
        inputs = in_one_partition(inputs)
    else:
        if one_folds_members:
            inputs = inputs._replace(members=inputs.members.coalesce(1))
        if one_folds_topics:
            inputs = inputs._replace(topics=inputs.topics.coalesce(1))
    of_members = _measure_members(inputs, known_assignors is None, both_types)
    rules, measures = rules_of_topics(inputs.topics_form), dict(_OF_TOPICS)
    if both_types and "topic_id" in inputs.topics.columns:
        rules += topic_id_rules()
        # A topic with two ids is one of those that appear twice.
        measures["bad_topics"] += f" + {measures['topics_twice']}"
    bad_topic = any_broken(rules)
    of_topics = fold_topics(inputs.topics, bad_row=bad_topic)
    none = F.expr("cast(array() as array<string>) as assignors")
    used = F.expr("collect_set(assignor) as assignors")
    parts = [
        of_members.agg(_to_counts(_OF_GROUPS), used),
        of_topics.agg(_to_counts(measures), none),
    ]
    if inputs.owned is not None:
        bad_claim = any_broken(owned_rules(has_positions=inputs.has_positions))
        of_claims = {"claims": "count(*)", "bad_owned": f"count_if({bad_claim})"}
        parts.append(inputs.owned.agg(_to_counts(of_claims), none))
    if inputs.target is not None:
        suspects = _target_suspects(inputs.members, inputs.target)
        parts.append(suspects.agg(_to_counts({"bad_target": "sum(suspects)"}), none))
    if not is_small:
        # What is behind a shuffle, of one row, is a stage of its own, beside the others.
        parts = [frame.repartition(1) for frame in parts]
    counts: dict[str, int] = {}
    assignors: list[str] = []
    for row in union_by_name(parts).collect():
        counts |= {name: int(count or 0) for name, count in row.counts.items()}
        assignors += row.assignors
    one_folds = one_folds_members and one_folds_topics and counts["all_edges"] <= ONE_FOLD_EDGES
    return InputCounts(counts, sorted(assignors), size, is_small, one_folds)


def table_sizes(inputs: Inputs) -> list[float]:
    """Return Spark's estimate of the bytes of each table; 0 where it is absent."""
    return [0.0 if frame is None else table_bytes(frame) for frame in inputs[:4]]


def in_one_partition(inputs: Inputs) -> Inputs:
    """Return each table in one partition: shuffled neither to be joined nor to be counted."""
    members, topics = inputs.members.coalesce(1), inputs.topics.coalesce(1)
    owned, target = (
        None if frame is None else frame.coalesce(1) for frame in (inputs.owned, inputs.target)
    )
    return inputs._replace(members=members, topics=topics, owned=owned, target=target)


def _measure_members(inputs: Inputs, ignore_assignor: bool, both_types: bool) -> DataFrame:
    """Return one row per group: what the measures are of."""
    members = inputs.members
    is_bad = [
        f"count_if({any_broken(member_rules())}) > 0",
        # Two ids of one hash would have the problems looked for, and none found.
        "size(array_distinct(collect_list(xxhash64(member_id)))) < count(*)",
        *CONFLICTS.values(),
    ]
    is_mixed = "(count(assignor) != count(*) or min(assignor) != max(assignor))"
    assignor = "assignor"
    if both_types:
        is_unfit = f"not coalesce({is_one_of('assignor', COORDINATOR_ASSIGNORS)}, true)"
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
        # Lists in another order count as others: to sort them all takes as long as all the rest.
        "may_differ": "count(topics) < count(*) or min(topics) != max(topics)",
        "topic_count": "max(array_size(topics))",
        "edges": "sum(array_size(topics))",
        "assignor": f"min({assignor})",
        "racked": "count_if(length(rack_id) > 0)",
        "clients": "count(client)",
        "is_consumer": f"bool_or({IS_CONSUMER_GROUP})",
    }
    return members.groupBy(*GROUP_KEY).agg(
        *(F.expr(f"{value} as {name}") for name, value in measures.items())
    )


def _target_suspects(members: DataFrame, target: DataFrame) -> DataFrame:
    """Count in each group, as suspects, what may be wrong with its target; never too little.

    Rows that are there twice are found by their hashes: two of one hash count too.
    """
    of_members = members.selectExpr(*GROUP_KEY, f"{IS_CONSUMER_GROUP} as is_consumer")
    of_target = target.selectExpr(
        *GROUP_KEY,
        f"{any_broken(target_rules())} as is_bad",
        "xxhash64(topic, partition) as row",
        "if(position is null, null, xxhash64(member_id, position)) as place",
    )
    rows = of_members.unionByName(of_target, allowMissingColumns=True)
    suspects = (
        "count_if(is_bad)",
        "count(row) - size(collect_set(row))",
        "count(place) - size(collect_set(place))",
        "if(bool_and(not is_consumer), count(row), 0)",
        f"cast(count(is_consumer) > {MEMBERS_OF_A_GROUP} as int)",
    )
    return rows.groupBy(*GROUP_KEY).agg(F.expr(f"{' + '.join(suspects)} as suspects"))


def _to_counts(measures: dict[str, str]) -> Column:
    entries = (f"'{name}', cast({value} as bigint)" for name, value in measures.items())
    return F.expr(f"map({', '.join(entries)}) as counts")


def fold_topics(topics: DataFrame, *, bad_row: str, racks: bool = False) -> DataFrame:
    """Fold conforming topics, of either form, into one row per topic.

    Args:
        topics: ``schemas.TOPICS`` or ``schemas.TOPIC_PARTITIONS``.
        bad_row: SQL, boolean over the columns, never null: the row breaks a rule.
        racks: whether to return them.

    Returns:
        cluster_id string, topic string, num_partitions bigint, bad_rows bigint,
        is_inconsistent boolean: given twice with different counts, or partitions missing between,
        is_twice boolean: there are several rows; with ``racks`` also racks string: the replicas'
        as JSON, of rows that differ the greatest, null where the table does not have them.
    """
    rows = topics.selectExpr("*", f"{bad_row} as is_bad_row")
    if "num_partitions" in topics.columns:
        count = "max(num_partitions)"
        inconsistent = f"min(num_partitions) != {count}"
    else:
        count = "try_add(max(partition), 1)"
        inconsistent = f"count(distinct partition) != {count}"
    values = {
        "num_partitions": count,
        "bad_rows": "count_if(is_bad_row)",
        "is_inconsistent": f"coalesce({inconsistent}, false)",
        "is_twice": "count(*) > 1",
    }
    if racks:
        has_racks = "replica_racks" in topics.columns
        values["racks"] = "to_json(max(replica_racks))" if has_racks else "cast(null as string)"
    aggregates = (F.expr(f"{value} as {name}") for name, value in values.items())
    return rows.groupBy(CLUSTER_ID, "topic").agg(*aggregates)
