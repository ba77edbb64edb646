"""Whether an assignment is one that a group could have: nothing twice, nothing left, no strangers.

Partitions are counted, not listed: only a topic whose counts are wrong is looked into.
"""

from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from kassign_spark.inputs.checks import conform_inputs, resolved
from kassign_spark.inputs.rules import INT_MAX
from kassign_spark.schemas import (
    ASSIGNMENT,
    GROUP_KEY,
    MEMBERS,
    check_same_clusters,
    conform,
    has_cluster_id,
    restore_cluster_id,
)

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
    check_same_clusters([(ASSIGNMENT, assignment), (MEMBERS, members)])
    inputs = resolved(conform_inputs(members, topics, owned))
    assigned = conform(assignment, ASSIGNMENT)
    sizes = _sizes(inputs.topics)
    subscribed = (
        inputs.members.select(*GROUP_KEY, F.array_distinct("topics").alias("topics"))
        .distinct()
        .select(*GROUP_KEY, F.explode("topics").alias("topic"))
        .distinct()
    )
    withheld = inputs.owned
    if withheld is not None:
        withheld = withheld.join(inputs.members, on=[*GROUP_KEY, "member_id"], how="left_semi")
    found = [
        _strangers(assigned, inputs.members),
        _unknown_partitions(assigned, sizes),
        *_miscounted(
            assigned, subscribed.join(sizes, on=["cluster_id", "topic"], how="inner"), withheld
        ),
    ]
    result = reduce(DataFrame.unionByName, found)
    return restore_cluster_id(result, has_cluster_id(members))


def _sizes(topics: DataFrame) -> DataFrame:
    """Partitions of each topic; a number that is none, such as a negative one, is left out."""
    count = (
        F.max("num_partitions")
        if "num_partitions" in topics.columns
        else F.try_add(F.max("partition"), F.lit(1))
    )
    sizes = topics.groupBy("cluster_id", "topic").agg(count.alias("num_partitions"))
    return sizes.where(F.col("num_partitions").between(0, INT_MAX))


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
    unknown = F.col("known").isNull()
    return joined.select(
        *GROUP_KEY,
        F.when(unknown, "unknown_member").otherwise("not_subscribed").alias("rule"),
        "member_id",
        "topic",
        F.col("partition").try_cast("int").alias("partition"),
        F.when(unknown, "the group has no such member")
        .otherwise("the member does not subscribe to the topic")
        .alias("detail"),
    )


def _unknown_partitions(assigned: DataFrame, sizes: DataFrame) -> DataFrame:
    last = F.col("num_partitions")
    joined = assigned.join(sizes, on=["cluster_id", "topic"], how="left").where(
        last.isNull() | (F.col("partition") < 0) | (F.col("partition") >= last)
    )
    detail = F.coalesce(
        F.concat(F.lit("the topic has "), last.cast("string"), F.lit(" partitions")),
        F.lit("the cluster has no such topic"),
    )
    return _violation(joined, "unknown_partition", detail)


def _miscounted(
    assigned: DataFrame, subscribed: DataFrame, owned: DataFrame | None
) -> list[DataFrame]:
    """Partitions with several owners or none, in the topics whose counts show that there are."""
    counts = assigned.groupBy(*_TOPIC_KEY).agg(
        F.count("*").alias("rows"), F.count_distinct("partition").alias("partitions")
    )
    twice = (
        assigned.join(counts.where("rows > partitions"), on=_TOPIC_KEY, how="left_semi")
        .groupBy(*_TOPIC_KEY, "partition")
        .agg(F.array_sort(F.collect_list("member_id")).alias("members"))
        .where(F.size("members") > 1)
        .withColumn("member_id", F.col("members")[0])
    )
    by_whom = F.concat(F.lit("assigned to "), F.array_join("members", ", "))
    wanting = subscribed.join(counts, on=_TOPIC_KEY, how="left").where(
        F.coalesce("partitions", F.lit(0)) < F.col("num_partitions")
    )
    every = wanting.select(
        *_TOPIC_KEY, F.explode(F.sequence(F.lit(0), F.col("num_partitions") - 1)).alias("partition")
    )
    placed = [assigned] if owned is None else [assigned, owned]
    missing = every
    for frame in placed:
        missing = missing.join(
            frame.select(*_TOPIC_KEY, "partition"), on=[*_TOPIC_KEY, "partition"], how="left_anti"
        )
    no_one = F.lit("subscribed to, but assigned to no member")
    return [
        _violation(twice, "assigned_twice", by_whom),
        _violation(
            missing.withColumn("member_id", F.lit(None).cast("string")), "unassigned", no_one
        ),
    ]


def _violation(frame: DataFrame, rule: str, detail: Column) -> DataFrame:
    return frame.select(
        *GROUP_KEY,
        F.lit(rule).alias("rule"),
        "member_id",
        "topic",
        F.col("partition").try_cast("int").alias("partition"),
        detail.alias("detail"),
    )
