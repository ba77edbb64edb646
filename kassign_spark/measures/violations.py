"""Whether an assignment is one that a group could have: nothing twice, nothing left, no strangers.

Partitions are counted, not listed: only a topic whose counts are wrong is looked into.
"""

from functools import partial, reduce
from typing import NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from kassign_spark.conforming import check_same_clusters, conform, has_cluster_id
from kassign_spark.groups.eligible import fold_topics
from kassign_spark.groups.task_sizes import MOST_ROWS_OF_A_GROUP, task_sizes
from kassign_spark.inputs.checks import conform_inputs, resolved
from kassign_spark.inputs.rules import says
from kassign_spark.limits import PARTITIONS_OF_A_TOPIC
from kassign_spark.measures.violations_tasks import (
    HIDDEN_TOPIC,
    UNKNOWN_TOPIC,
    broken_in_tasks,
    subscriptions,
)
from kassign_spark.results import answer
from kassign_spark.schemas import ASSIGNMENT, GROUP_KEY, MEMBERS, OWNED

_TOPIC_KEY = [*GROUP_KEY, "topic"]


def violations(
    assignment: DataFrame,
    members: DataFrame,
    topics: DataFrame,
    owned: DataFrame | None = None,
) -> DataFrame:
    """List what is wrong with an assignment, also with one that was seen in a cluster.

    Args:
        assignment: ``schemas.ASSIGNMENT``.
        members: ``schemas.MEMBERS``.
        topics: ``schemas.TOPICS``, or one row a partition.
        owned: ``schemas.OWNED``. Where given, a partition that a member of the group still owns
            may be assigned to nobody: a cooperative rebalance withholds it for one round.

    Returns:
        cluster_id string (where the inputs have it), group_id string, rule string,
        member_id string, topic string, partition int, detail string; empty where all is well.
        Rules: `unknown_member`, `not_subscribed`, `unknown_partition` (a number beyond 32 bits
        is null), `assigned_twice`, `unassigned`.

    Raises:
        SchemaError: columns are missing or of the wrong type.
    """
    found = plan_violations(assignment, members, topics, owned)
    return found.where(F.col("rule") != UNKNOWN_TOPIC)


def plan_violations(
    assignment: DataFrame,
    members: DataFrame,
    topics: DataFrame,
    owned: DataFrame | None = None,
) -> DataFrame:
    """As ``violations``, and rule `unknown_topic`: subscribed to, but not in the table topics."""
    check_same_clusters([(ASSIGNMENT, assignment), (MEMBERS, members)])
    inputs = resolved(conform_inputs(members, topics, owned))
    assigned = conform(assignment, ASSIGNMENT)
    found = _violations(_Frames(assigned, inputs.members, inputs.owned), _sizes(inputs.topics))
    return answer(found, "violations", has_cluster_id=has_cluster_id(members))


def hidden_claims(members: DataFrame, topics: DataFrame, owned: DataFrame) -> DataFrame:
    """List what members own of topics that they subscribe to and the table topics does not have.

    Returns:
        The columns of ``violations``, a row a member and topic, with the least of its partitions.
    """
    inputs = resolved(conform_inputs(members, topics, owned))
    subscribing = inputs.members.select(*GROUP_KEY, "member_id", F.explode("topics").alias("topic"))
    key = [*GROUP_KEY, "member_id", "topic"]
    claims = conform(owned, OWNED).join(subscribing.distinct(), on=key, how="left_semi")
    hidden = claims.join(inputs.topics, on=["cluster_id", "topic"], how="left_anti")
    counted = hidden.groupBy(*key).agg(
        F.min("partition").cast("int").alias("partition"), F.count("*").alias("rows")
    )
    detail = says(
        "owns {} of its partitions, and the table topics does not have it: deleted, or the "
        "snapshot may not describe it; then Kafka assigns them, and the plan does not",
        "rows",
    )
    found = counted.withColumns({"rule": F.lit(HIDDEN_TOPIC), "detail": F.expr(detail)})
    return answer(found, "violations", has_cluster_id=has_cluster_id(members))


class _Frames(NamedTuple):
    """Conforming tables, patterns resolved."""

    assigned: DataFrame
    members: DataFrame
    owned: DataFrame | None

    def where(self, condition: Column) -> "_Frames":
        """Keep the groups that meet a condition over ``GROUP_KEY``."""
        owned = None if self.owned is None else self.owned.where(condition)
        return _Frames(self.assigned.where(condition), self.members.where(condition), owned)


def _violations(frames: _Frames, sizes: DataFrame) -> DataFrame:
    """Look at groups that fit a task in tasks, and at larger ones by steps."""
    cut = task_sizes([frame for frame in frames if frame is not None], MOST_ROWS_OF_A_GROUP)
    if cut.is_large is None:
        return _told(broken_in_tasks(*frames, sizes=sizes, tasks=cut.tasks))
    small = broken_in_tasks(*frames.where(~cut.is_large), sizes=sizes, tasks=cut.tasks)
    large = _in_steps(*frames.where(cut.is_large), sizes=sizes)
    return _told(small.unionByName(large, allowMissingColumns=True))


def _told(broken: DataFrame) -> DataFrame:
    """Put what was found into words, and ranges into rows."""
    partitions = F.when(F.col("last").isNotNull(), F.sequence("partition", "last")).otherwise(
        F.array("partition")
    )
    rule = F.col("rule")
    size = F.concat(F.lit("the topic has "), F.col("size").cast("string"), F.lit(" partitions"))
    too_high = F.coalesce(size, F.lit("the cluster has no such topic"))
    by_whom = F.concat(F.lit("assigned to "), F.array_join("members", ", "))
    detail = (
        F.when(rule == "unknown_member", "the group has no such member")
        .when(rule == "not_subscribed", "the member does not subscribe to the topic")
        .when(rule == "unknown_partition", too_high)
        .when(rule == "assigned_twice", by_whom)
        .when(rule == UNKNOWN_TOPIC, "subscribed to, but the table topics does not have it")
        .otherwise("subscribed to, but assigned to no member")
    )
    each = broken.withColumn("partition", F.explode(partitions))
    return each.select(
        *GROUP_KEY,
        "rule",
        "member_id",
        "topic",
        F.col("partition").try_cast("int").alias("partition"),
        detail.alias("detail"),
    )


def _in_steps(
    assigned: DataFrame, members: DataFrame, owned: DataFrame | None, sizes: DataFrame
) -> DataFrame:
    """As ``broken_in_tasks``, without ranges, and columns that nobody asks for."""
    subscribed = subscriptions(members).distinct().join(sizes, ["cluster_id", "topic"], "inner")
    placed = [assigned]
    if owned is not None:
        placed.append(owned.join(members, on=[*GROUP_KEY, "member_id"], how="left_semi"))
    counts = assigned.groupBy(*_TOPIC_KEY).agg(
        F.count("*").alias("rows"), F.count_distinct("partition").alias("partitions")
    )
    found = [
        _strangers(assigned, members),
        _unknown_partitions(assigned, sizes),
        _twice(assigned, counts),
        _missing(placed, subscribed, counts),
        _unknown_topics(members, sizes),
    ]
    return reduce(partial(DataFrame.unionByName, allowMissingColumns=True), found)


def _sizes(topics: DataFrame) -> DataFrame:
    """Partitions of each topic; what no topic has, such as a negative number, is left out."""
    sizes = fold_topics(topics, bad_row="false").select("cluster_id", "topic", "num_partitions")
    return sizes.where(F.col("num_partitions").between(0, PARTITIONS_OF_A_TOPIC))


def _strangers(assigned: DataFrame, members: DataFrame) -> DataFrame:
    """Assignments to members that are not in the group or not subscribed."""
    pairs = assigned.groupBy(*_TOPIC_KEY, "member_id").agg(F.min("partition").alias("partition"))
    subscriptions = members.select(
        *GROUP_KEY, "member_id", F.col("topics").alias("subscription"), F.lit(True).alias("known")
    )
    joined = pairs.join(subscriptions, on=[*GROUP_KEY, "member_id"], how="left").where(
        F.col("known").isNull()
        | ~F.coalesce(F.array_contains("subscription", F.col("topic")), F.lit(False))
    )
    rule = F.when(F.col("known").isNull(), "unknown_member").otherwise("not_subscribed")
    return joined.select(*GROUP_KEY, rule.alias("rule"), "member_id", "topic", "partition")


def _unknown_partitions(assigned: DataFrame, sizes: DataFrame) -> DataFrame:
    last = F.col("num_partitions")
    joined = assigned.join(sizes, on=["cluster_id", "topic"], how="left").where(
        last.isNull() | (F.col("partition") < 0) | (F.col("partition") >= last)
    )
    return joined.selectExpr(
        *_TOPIC_KEY,
        "partition",
        "member_id",
        "'unknown_partition' as rule",
        "num_partitions as size",
    )


def _twice(assigned: DataFrame, counts: DataFrame) -> DataFrame:
    """Partitions with several members, in the topics whose counts show that there are."""
    return (
        assigned.join(counts.where("rows > partitions"), on=_TOPIC_KEY, how="left_semi")
        .groupBy(*_TOPIC_KEY, "partition")
        .agg(F.array_sort(F.collect_list("member_id")).alias("members"))
        .where(F.size("members") > 1)
        .withColumns({"member_id": F.col("members")[0], "rule": F.lit("assigned_twice")})
    )


def _unknown_topics(members: DataFrame, sizes: DataFrame) -> DataFrame:
    wanted = subscriptions(members).distinct().where("topic is not null")
    unknown = wanted.join(sizes, on=["cluster_id", "topic"], how="left_anti")
    return unknown.withColumn("rule", F.lit(UNKNOWN_TOPIC))


def _missing(placed: list[DataFrame], subscribed: DataFrame, counts: DataFrame) -> DataFrame:
    """Partitions with no member, in the topics whose counts show that there are."""
    wanting = subscribed.join(counts, on=_TOPIC_KEY, how="left").where(
        F.coalesce("partitions", F.lit(0)) < F.col("num_partitions")
    )
    numbers = F.explode(F.sequence(F.lit(0), F.col("num_partitions") - 1)).alias("partition")
    missing = wanting.select(*_TOPIC_KEY, F.lit("unassigned").alias("rule"), numbers)
    for frame in placed:
        missing = missing.join(frame, on=[*_TOPIC_KEY, "partition"], how="left_anti")
    return missing
