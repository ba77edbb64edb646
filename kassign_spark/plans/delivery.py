"""Split each group's assignment by member, as rows and as JSON."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kassign_spark.conforming import check_same_clusters, conform, has_cluster_id
from kassign_spark.results import to_result
from kassign_spark.schemas import ASSIGNMENT, GROUP_KEY, MEMBERS


def deliver(assignment: DataFrame, members: DataFrame | None = None) -> DataFrame:
    """Return each member's own part of an assignment, in the forms that consumers take.

    The group's leader computes the whole; the coordinator sends each member its part alone, as
    here. Topics are in name order (UTF-8), partitions ascending; a partition given twice to one
    member is there once, a number beyond 32 bits not at all.

    Args:
        assignment: ``schemas.ASSIGNMENT``.
        members: ``schemas.MEMBERS``, so that members that get nothing have a row; None: members
            are those of the assignment.

    Returns:
        One row per member: cluster_id string (where the inputs have it), group_id string, member_id
        string, partition_count int, partitions `array<struct<topic string, partition int>>`,
        topic_partitions string: JSON for a wrapper of a consumer's ``assign()``,
        ``[{"topic":"t0","partition":0},...]``; spark_assign string: JSON for the ``assign``
        option of Spark's Kafka source, ``{"t0":[0,1],...}`` (which refuses an empty one).

    Raises:
        SchemaError: columns are missing or of the wrong type, or only one table has cluster_id.
    """
    check_same_clusters([(ASSIGNMENT, assignment), (MEMBERS, members)])
    member = [*GROUP_KEY, "member_id"]
    by_topic = (
        conform(assignment, ASSIGNMENT)
        .groupBy(*member, "topic")
        .agg(F.array_sort(F.expr("collect_set(try_cast(partition as int))")).alias("numbers"))
    )
    delivered = by_topic.groupBy(*member).agg(
        F.array_sort(F.collect_list(F.struct("topic", "numbers"))).alias("topics")
    )
    if members is not None:
        member_rows = conform(members, MEMBERS).select(*member).distinct()
        nothing = F.array().cast("array<struct<topic:string,numbers:array<int>>>")
        delivered = member_rows.join(delivered, on=member, how="left").withColumn(
            "topics", F.coalesce("topics", nothing)
        )
    each = "transform(t.numbers, n -> named_struct('topic', t.topic, 'partition', n))"
    partitions = F.expr(f"flatten(transform(topics, t -> {each}))")
    result = delivered.withColumn("partitions", partitions).select(
        *member,
        F.size("partitions").alias("partition_count"),
        "partitions",
        F.to_json("partitions").alias("topic_partitions"),
        F.to_json(F.map_from_entries("topics")).alias("spark_assign"),
    )
    return to_result(result, "deliver", has_cluster_id=has_cluster_id(assignment))
