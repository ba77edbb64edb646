"""What a person should know about the inputs before trusting a plan made of them."""

from collections.abc import Collection
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from kassign_spark.conforming import (
    check_same_clusters,
    conform,
    has_cluster_id,
    short_assignor,
)
from kassign_spark.coordinator.choice import ASSIGNORS as COORDINATORS
from kassign_spark.groups.eligible import fold_topics
from kassign_spark.groups.task_sizes import MOST_ROWS_OF_A_GROUP, task_sizes
from kassign_spark.inputs.checks import (
    TOO_LARGE,
    Inputs,
    as_problems,
    assignor_problem,
    broken_rows,
    conform_inputs,
    duplicate_says,
    group_refusals,
    resolved,
    row_refusals,
    size_refusals,
    too_large,
    unknown_assignors,
)
from kassign_spark.inputs.regexes import with_regex_problems
from kassign_spark.inputs.rules import (
    IS_CONSUMER_GROUP,
    is_one_of,
    says,
    shown,
    text,
)
from kassign_spark.inputs.target_rules import regex_rules
from kassign_spark.limits import PARTITIONS_OF_A_TOPIC
from kassign_spark.results import answer
from kassign_spark.schemas import GROUP_KEY, MEMBERS, WEIGHTS
from kassign_spark.sessions import cores
from kassign_spark.validation.member_order import lost_orders, order_says, unknown_orders
from kassign_spark.validation.misled import STICKY
from kassign_spark.validation.tasks import found_in_tasks
from kassign_spark.validation.unused_weights import unused

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
        `topic_without_metadata` (left out, as Kafka does where it does not exist; where members own
        of it, the snapshot may lack it), `topic_without_partitions` (left out, as Kafka does),
        `topic_listed_twice` (counts once), `pattern_without_match` (no topic matches now),
        `duplicate_group_instance_id` (a broker fences the older member; of the new protocol it
        refuses the newer one), `owned_partition_missing` (dropped, but not by Kafka's client where
        the topic is there and a sticky assignor looks at claims), `claims_mislead_client` (because
        of those it throws, or gives away what does not exist), `owner_not_in_group` (it left),
        `claimed_twice` (the highest generation wins, equal ones dispute),
        `hash_order_not_reproduced` (which sticky members keep one partition more may differ),
        `member_order_unknown` (likewise, as ``member_seq`` is not given),
        `weight_of_unknown_partition` and `weight_of_unknown_group` (passed over).

    Raises:
        SchemaError: columns are missing or of the wrong type.
    """
    conforming = conform_inputs(members, topics, owned)
    # Pattern and topics of one row: a pattern that was resolved is gone from its own column.
    known = conforming._replace(
        members=conforming.members.withColumn("pattern", F.col("topics_pattern"))
    )
    if assignors is not None:
        assignors = [short_assignor(name) for name in assignors]
    problems = _problems(resolved(known), assignors, MOST_ROWS_OF_A_GROUP)
    if weights is not None:
        check_same_clusters([(MEMBERS, members), (WEIGHTS, weights)])
        told = conform(weights, WEIGHTS)
        problems = problems.unionByName(unused(told, conforming.members, conforming.topics))
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
        *_of_new_groups(inputs, assignors),
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
        **dict(too_large(problem, "number") for problem in TOO_LARGE),
        **{problem: _left_out_says(problem, "number", "numbers[0]") for problem in _LEFT_OUT},
        "duplicate_group_instance_id": _instance_says("text", "texts", "size(numbers) > 0"),
        "owned_partition_missing": _beyond_says("number", is_counted="text is not null"),
        "claims_mislead_client": "text",
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
        _duplicates_and_assignors(inputs.members, assignors),
        size_refusals(inputs),
        *_of_subscriptions(inputs),
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


def _duplicates_and_assignors(members: DataFrame, assignors: Collection[str] | None) -> DataFrame:
    """What ``group_refusals`` says; of groups of the new protocol nothing about assignors."""
    classic = members.where(f"not {IS_CONSUMER_GROUP}")
    of_new = group_refusals(members.where(IS_CONSUMER_GROUP), None)
    return group_refusals(classic, assignors).unionByName(of_new)


def _of_new_groups(inputs: Inputs, assignors: Collection[str] | None) -> list[DataFrame]:
    """What the new protocol refuses a member for, row by row."""
    found = []
    if assignors is not None:
        members = inputs.members.where(IS_CONSUMER_GROUP)
        found.append(unknown_assignors(members, COORDINATORS))
    if inputs.has_regexes:
        found.append(broken_rows("members", with_regex_problems(inputs.members), regex_rules()))
    return found


def _of_subscriptions(inputs: Inputs) -> list[DataFrame]:
    members, topics = inputs.members, inputs.topics
    subscribed = members.select(*GROUP_KEY, "member_id", F.explode("topics").alias("topic"))
    subscribers = subscribed.groupBy(*GROUP_KEY, "topic").agg(
        F.count_distinct("member_id").alias("subscribers")
    )
    if inputs.owned is None:
        subscribers = subscribers.withColumn("owned", F.lit(0))
    else:
        of_members = inputs.owned.join(
            members.select(*GROUP_KEY, "member_id").distinct(),
            on=[*GROUP_KEY, "member_id"],
            how="left_semi",
        )
        owned = of_members.groupBy(*GROUP_KEY, "topic").agg(F.count("*").alias("owned"))
        subscribers = subscribers.join(owned, on=[*GROUP_KEY, "topic"], how="left").fillna(
            0, ["owned"]
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
        .agg(
            F.array_sort(F.collect_list("member_id")).alias("members"),
            F.expr(f"bool_or({IS_CONSUMER_GROUP}) as is_new"),
        )
        .where(F.size("members") > 1)
        .withColumn("member_id", F.col("members")[0])
    )
    detail = _instance_says("group_instance_id", "members", "is_new")
    return as_problems(duplicates, "duplicate_group_instance_id", detail)


def _of_owned(inputs: Inputs) -> list[DataFrame]:
    if inputs.owned is None:
        return []
    owned, counts = inputs.owned, _counts(inputs.topics)
    usable = counts.where(F.col("num_partitions").between(0, PARTITIONS_OF_A_TOPIC))
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
    looks = F.expr(f"coalesce(bool_or({is_one_of('assignor', STICKY)}), false) as is_counted")
    judged = gone.join(inputs.members.groupBy(*GROUP_KEY).agg(looks), list(GROUP_KEY), "left")
    detail = _beyond_says("num_partitions", is_counted="coalesce(is_counted, false)")
    return [
        as_problems(judged, "owned_partition_missing", detail),
        _misled(inputs, judged),
        as_problems(by_stranger, "owner_not_in_group", _stranger_says("rows")),
        unknown_orders(inputs.members, usable, owned),
        as_problems(claims, "claimed_twice", _claims_say("claims.member_id", "claims.col2")),
    ]


def _misled(inputs: Inputs, gone: DataFrame) -> DataFrame:
    """Look in tasks at whole groups that claim what does not exist, however large."""
    suspects = gone.where("is_counted and num_partitions is not null").select(*GROUP_KEY).distinct()
    members, owned = (
        frame.join(suspects, on=list(GROUP_KEY), how="left_semi")
        for frame in (inputs.members, inputs.owned)
        if frame is not None
    )
    found = found_in_tasks(Inputs(members, inputs.topics, owned), 1)
    misled = found.where("problem = 'claims_mislead_client'")
    return as_problems(misled, "claims_mislead_client", "text")


def _left_out(subscribers: DataFrame, problem: str) -> DataFrame:
    return as_problems(subscribers, problem, _left_out_says(problem, "subscribers", "owned"))


def _left_out_says(problem: str, subscribers: str, owned: str) -> str:
    why = _LEFT_OUT[problem]
    out = says(
        f"subscribed to by {{}} {{}}, {why}; left out of the assignment, as Kafka does",
        subscribers,
        f"if({subscribers} = 1, 'member', 'members')",
    )
    if problem != "topic_without_metadata":
        return out
    hidden = says(
        f"subscribed to by {{}} {{}}, who own {{}} of its partitions, {why}: it was deleted, or "
        "the snapshot may not describe it; then Kafka assigns it, and the plan lacks it",
        subscribers,
        f"if({subscribers} = 1, 'member', 'members')",
        owned,
    )
    return f"if({owned} > 0, {hidden}, {out})"


def _instance_says(instance: str, members: str, is_new: str) -> str:
    """Of a group.instance.id, the name of its column, that several members have."""
    named = (shown(instance), f"array_join({members}, ', ')")
    used = "group.instance.id {} is used by {}; "
    classic = says(f"{used}a broker fences all but the newest", *named)
    new = says(
        f"{used}a broker refuses all but the oldest of a group of the new protocol "
        "(UNRELEASED_INSTANCE_ID)",
        *named,
    )
    return f"if(coalesce({is_new}, false), {new}, {classic})"


def _beyond_says(count: str, is_counted: str = "false") -> str:
    """Of a partition beyond the ``count`` that there are; null: there is no topic.

    ``is_counted``: whether Kafka's client takes the claim for one of a partition that exists.
    """
    only, so = "the topic has only {} partitions; ", "the claim is dropped"
    counted = "a plan drops the claim, but Kafka's sticky assignors count it"
    there = f"if({is_counted}, {says(only + counted, count)}, {says(only + so, count)})"
    return f"coalesce({there}, {says(f'the table topics does not have the topic; {so}')})"


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
