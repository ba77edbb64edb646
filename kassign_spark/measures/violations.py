"""Check that an assignment is possible: nothing twice, nothing left over, no strangers.

Partitions are counted, not listed: only a topic whose counts are wrong is looked into.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kassign_spark.conforming import check_same_clusters, conform, has_cluster_id
from kassign_spark.groups.input_counts import fold_topics
from kassign_spark.groups.task_sizes import tasks_of
from kassign_spark.inputs.input_tables import conform_inputs, resolve_topics
from kassign_spark.inputs.rules import sql_sentence
from kassign_spark.limits import PARTITIONS_OF_A_TOPIC
from kassign_spark.measures.violations_tasks import (
    HIDDEN_TOPIC,
    UNKNOWN_TOPIC,
    broken_in_tasks,
)
from kassign_spark.results import to_result
from kassign_spark.schemas import ASSIGNMENT, GROUP_KEY, MEMBERS, OWNED


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
        topics: ``schemas.TOPICS``, or one row per partition.
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
    broken = plan_violations(assignment, members, topics, owned)
    return broken.where(F.col("rule") != UNKNOWN_TOPIC)


def plan_violations(
    assignment: DataFrame,
    members: DataFrame,
    topics: DataFrame,
    owned: DataFrame | None = None,
) -> DataFrame:
    """List ``violations``, and rule `unknown_topic`: subscribed to, but not in table topics."""
    check_same_clusters([(ASSIGNMENT, assignment), (MEMBERS, members)])
    inputs, assigned = conform_inputs(members, topics, owned), conform(assignment, ASSIGNMENT)
    tasks = tasks_of(assigned, inputs.members, inputs.owned)
    subscribing, sizes = resolve_topics(inputs).members, _sizes(inputs.topics)
    broken = broken_in_tasks(assigned, subscribing, inputs.owned, sizes=sizes, tasks=tasks)
    return to_result(_with_details(broken), "violations", has_cluster_id=has_cluster_id(members))


def hidden_claims(members: DataFrame, topics: DataFrame, owned: DataFrame) -> DataFrame:
    """List what members own of topics that they subscribe to and the table topics does not have.

    Returns:
        The columns of ``violations``, a row per member and topic, with the least of its partitions.
    """
    inputs = resolve_topics(conform_inputs(members, topics, owned))
    subscribing = inputs.members.select(*GROUP_KEY, "member_id", F.explode("topics").alias("topic"))
    key = [*GROUP_KEY, "member_id", "topic"]
    claims = conform(owned, OWNED).join(subscribing.distinct(), on=key, how="left_semi")
    hidden = claims.join(inputs.topics, on=["cluster_id", "topic"], how="left_anti")
    topic_counts = hidden.groupBy(*key).agg(
        F.min("partition").cast("int").alias("partition"), F.count("*").alias("rows")
    )
    detail = sql_sentence(
        "owns {} of its partitions, and the table topics does not have it: deleted, or the "
        "snapshot may not describe it; then Kafka assigns them, and the plan does not",
        "rows",
    )
    problems = topic_counts.withColumns({"rule": F.lit(HIDDEN_TOPIC), "detail": F.expr(detail)})
    return to_result(problems, "violations", has_cluster_id=has_cluster_id(members))


def _with_details(broken: DataFrame) -> DataFrame:
    """Describe problems in words, and expand ranges into rows."""
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
    of_partitions = broken.withColumn("partition", F.explode(partitions))
    return of_partitions.select(
        *GROUP_KEY,
        "rule",
        "member_id",
        "topic",
        F.expr("try_cast(partition as int) as partition"),
        detail.alias("detail"),
    )


def _sizes(topics: DataFrame) -> DataFrame:
    """Return the partition count of each topic, without impossible counts such as negative ones."""
    sizes = fold_topics(topics, bad_row="false").select("cluster_id", "topic", "num_partitions")
    return sizes.where(F.col("num_partitions").between(0, PARTITIONS_OF_A_TOPIC))
