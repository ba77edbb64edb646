"""What a person should know about the inputs before trusting a plan made of them."""

from collections.abc import Collection
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from kassign_spark.conforming import check_same_clusters, conform, has_cluster_id
from kassign_spark.groups.eligible import fold_topics
from kassign_spark.groups.task_sizes import MOST_ROWS_OF_A_GROUP, task_sizes
from kassign_spark.inputs.checks import (
    Inputs,
    as_problems,
    assignor_problem,
    conform_inputs,
    duplicate_says,
    group_refusals,
    resolved,
    row_refusals,
)
from kassign_spark.inputs.rules import INT_MAX, says, shown, text
from kassign_spark.results import answer
from kassign_spark.schemas import GROUP_KEY, MEMBERS, WEIGHTS
from kassign_spark.sessions import cores
from kassign_spark.validation.member_order import lost_orders, order_says, unknown_orders
from kassign_spark.validation.tasks import found_in_tasks

_LEFT_OUT = {
    "topic_without_metadata": "unknown to the table topics",
    "topic_without_partitions": "has no partitions",
}


def validate(
    members: DataFrame,
    topics: DataFrame,
    owned: DataFrame | None = None,
    *,
    assignors: Collection[str] | None = None,
    weights: DataFrame | None = None,
) -> DataFrame:
    """List what is wrong or odd in the inputs, group by group.

    Args:
        members: ``schemas.MEMBERS``.
        topics: ``schemas.TOPICS``, or one row a partition.
        owned: ``schemas.OWNED``.
        assignors: names that ``members.assignor`` may hold; None: that column is not looked at.
        weights: ``schemas.WEIGHTS``; whether their values have a meaning is said by whoever plans.

    Returns:
        cluster_id string (where the inputs have it), group_id string (null: of the cluster),
        member_id string, topic string, partition int, problem string, detail string; empty where
        all is well. An assignment is refused for the problems that ``checks.refusals`` lists;
        these do not hinder one:
        `topic_without_metadata`, `topic_without_partitions` (left out, as Kafka does),
        `topic_listed_twice` (counts once), `pattern_without_match` (no topic matches now),
        `duplicate_group_instance_id` (a broker fences the
        older member), `owned_partition_missing` (dropped), `owner_not_in_group` (the member left),
        `claimed_twice` (the highest generation wins, equal ones dispute),
        `hash_order_not_reproduced` (which sticky members keep one partition more may differ),
        `member_order_unknown` (likewise, as ``member_seq`` is not given),
        `weight_of_unknown_partition` (passed over).

    Raises:
        SchemaError: columns are missing or of the wrong type.
    """
    conforming = conform_inputs(members, topics, owned)
    # Pattern and topics of one row: a pattern that was resolved is gone from its own column.
    known = conforming._replace(
        members=conforming.members.withColumn("pattern", F.col("topics_pattern"))
    )
    problems = _problems(resolved(known), assignors, MOST_ROWS_OF_A_GROUP)
    if weights is not None:
        check_same_clusters([(MEMBERS, members), (WEIGHTS, weights)])
        unknown = _beyond(conform(weights, WEIGHTS), _counts(conforming.topics))
        detail = _beyond_says("num_partitions", "the weight is passed over")
        passed_over = as_problems(unknown, "weight_of_unknown_partition", detail)
        problems = problems.unionByName(passed_over)
    problems = problems.withColumn("partition", F.expr("try_cast(partition as int)"))
    return answer(problems, "validate", has_cluster_id=has_cluster_id(members))


def _problems(inputs: Inputs, assignors: Collection[str] | None, most_rows: int) -> DataFrame:
    """Look at rows and topics one by one, at groups in tasks, and at larger groups by steps."""
    frames = [inputs.members, *([] if inputs.owned is None else [inputs.owned])]
    cut = task_sizes(frames, most_rows)
    small, large = inputs, None
    if cut.is_large is not None:
        small, large = _where(inputs, ~cut.is_large), _where(inputs, cut.is_large)
    found = [
        row_refusals(inputs),
        _repeated(inputs.members),
        _idle_patterns(inputs.members),
        lost_orders(inputs.members),
        _told(found_in_tasks(small, cut.tasks), assignors),
        *([] if large is None else _of_groups_in_steps(large, assignors)),
    ]
    # A few rows from each of many parts: no task for every part.
    return reduce(DataFrame.unionByName, found).coalesce(cores(inputs.members.sparkSession))


def _where(inputs: Inputs, condition: Column) -> Inputs:
    owned = None if inputs.owned is None else inputs.owned.where(condition)
    return Inputs(inputs.members.where(condition), inputs.topics, owned)


def _told(found: DataFrame, assignors: Collection[str] | None) -> DataFrame:
    """Put what tasks found into words."""
    of_problem = {
        "duplicate_member": duplicate_says("number"),
        **{problem: _left_out_says(problem, "number") for problem in _LEFT_OUT},
        "duplicate_group_instance_id": _instance_says("text", "texts"),
        "owned_partition_missing": _beyond_says("number"),
        "owner_not_in_group": _stranger_says("number"),
        "claimed_twice": _claims_say("texts", "numbers"),
        "member_order_unknown": order_says("texts", "number"),
    }
    if assignors is not None:
        # One row a group tells its assignors; whether they will do is judged here.
        of_problem["assignor_unusable"] = assignor_problem("texts", assignors)
    cases = " ".join(f"when '{name}' then {detail}" for name, detail in of_problem.items())
    told = found.selectExpr("*", f"case problem {cases} end as detail")
    return as_problems(told.where("detail is not null"), "", "detail")


def _of_groups_in_steps(inputs: Inputs, assignors: Collection[str] | None) -> list[DataFrame]:
    return [
        group_refusals(inputs.members, assignors),
        *_of_subscriptions(inputs.members, inputs.topics),
        _duplicate_instances(inputs.members),
        *_of_owned(inputs),
    ]


def _counts(topics: DataFrame) -> DataFrame:
    """cluster_id string, topic string, num_partitions bigint: one row a topic, of either form."""
    return fold_topics(topics, bad_row="false").select("cluster_id", "topic", "num_partitions")


def _beyond(frame: DataFrame, counts: DataFrame) -> DataFrame:
    """Rows of partitions and topics that there are not."""
    counted = frame.join(counts, on=["cluster_id", "topic"], how="left")
    return counted.where("num_partitions is null or partition >= num_partitions")


def _of_subscriptions(members: DataFrame, topics: DataFrame) -> list[DataFrame]:
    subscribed = members.select(*GROUP_KEY, "member_id", F.explode("topics").alias("topic"))
    subscribers = subscribed.groupBy(*GROUP_KEY, "topic").agg(
        F.count_distinct("member_id").alias("subscribers")
    )
    key = ["cluster_id", "topic"]
    missing = subscribers.join(topics, on=key, how="left_anti")
    found = [_left_out(missing, "topic_without_metadata")]
    if "num_partitions" in topics.columns:
        empty = subscribers.join(topics.where("num_partitions = 0"), on=key, how="left_semi")
        found.append(_left_out(empty, "topic_without_partitions"))
    return found


def _repeated(members: DataFrame) -> DataFrame:
    again = F.filter("topics", lambda topic, i: F.array_position("topics", topic) <= i)
    repeated = members.select(
        *GROUP_KEY, "member_id", F.explode(F.array_distinct(again)).alias("topic")
    )
    detail = text("the member lists the topic more than once; it counts once")
    return as_problems(repeated, "topic_listed_twice", detail)


def _idle_patterns(members: DataFrame) -> DataFrame:
    idle = members.where("topics_pattern IS NULL AND size(topics) = 0").where(
        "pattern IS NOT NULL AND group_id IS NOT NULL AND member_id IS NOT NULL"
    )
    detail = says("no topic matches {} as a whole", shown("pattern"))
    return as_problems(idle.drop("topics"), "pattern_without_match", detail)


def _duplicate_instances(members: DataFrame) -> DataFrame:
    duplicates = (
        members.where(F.col("group_instance_id").isNotNull())
        .groupBy(*GROUP_KEY, "group_instance_id")
        .agg(F.array_sort(F.collect_list("member_id")).alias("members"))
        .where(F.size("members") > 1)
        .withColumn("member_id", F.col("members")[0])
    )
    detail = _instance_says("group_instance_id", "members")
    return as_problems(duplicates, "duplicate_group_instance_id", detail)


def _of_owned(inputs: Inputs) -> list[DataFrame]:
    if inputs.owned is None:
        return []
    owned, counts = inputs.owned, _counts(inputs.topics)
    usable = counts.where(F.col("num_partitions").between(0, INT_MAX))
    gone = _beyond(owned, counts)
    member = [*GROUP_KEY, "member_id"]
    strangers = owned.join(inputs.members.select(*member), on=member, how="left_anti")
    by_stranger = strangers.groupBy(*member).agg(F.count("*").alias("rows"))
    claim = "struct(member_id, coalesce(generation, -1))"
    claims = (
        owned.join(inputs.members.select(*member, "generation"), on=member, how="inner")
        .groupBy(*GROUP_KEY, "topic", "partition")
        .agg(F.expr(f"array_sort(collect_list({claim})) as claims"))
        .where("size(claims) > 1")
        .withColumn("member_id", F.col("claims")[0]["member_id"])
    )
    return [
        as_problems(gone, "owned_partition_missing", _beyond_says("num_partitions")),
        as_problems(by_stranger, "owner_not_in_group", _stranger_says("rows")),
        unknown_orders(inputs.members, usable, owned),
        as_problems(claims, "claimed_twice", _claims_say("claims.member_id", "claims.col2")),
    ]


def _left_out(subscribers: DataFrame, problem: str) -> DataFrame:
    return as_problems(subscribers, problem, _left_out_says(problem, "subscribers"))


def _left_out_says(problem: str, subscribers: str) -> str:
    why = _LEFT_OUT[problem]
    return says(
        f"subscribed to by {{}} {{}}, {why}; left out of the assignment, as Kafka does",
        subscribers,
        f"if({subscribers} = 1, 'member', 'members')",
    )


def _instance_says(instance: str, members: str) -> str:
    """Of a group.instance.id, the name of its column, that several members have."""
    return says(
        "group.instance.id {} is used by {}; a broker fences all but the newest",
        shown(instance),
        f"array_join({members}, ', ')",
    )


def _beyond_says(count: str, so: str = "the claim is dropped") -> str:
    """Of a partition beyond the ``count`` that there are; null: there is no topic."""
    there = says(f"the topic has only {{}} partitions; {so}", count)
    return f"coalesce({there}, {says(f'the cluster has no such topic; {so}')})"


def _stranger_says(rows: str) -> str:
    """Of an owner that is not in the group."""
    return says("owns {} partitions but is no member of the group: it counts as having left", rows)


def _claims_say(members: str, generations: str) -> str:
    """Of a partition with several claims: who, and in which generation, -1 if in none."""
    named = says("{} (generation {})", "m", "g")
    each = f"if(g < 0, {says('{} (no generation)', 'm')}, {named})"
    return says(
        "claimed by {}", f"array_join(zip_with({members}, {generations}, (m, g) -> {each}), ', ')"
    )
