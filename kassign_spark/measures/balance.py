"""How evenly an assignment loads the members of each group, and how much of it stayed."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kassign_spark.measures.diff import diff
from kassign_spark.schemas import (
    ASSIGNMENT,
    GROUP_KEY,
    MEMBERS,
    OWNED,
    check_same_clusters,
    conform,
    has_cluster_id,
    restore_cluster_id,
)


def balance(assignment: DataFrame, members: DataFrame, owned: DataFrame | None = None) -> DataFrame:
    """Measure an assignment, also one that Kafka made.

    Args:
        assignment: ``schemas.ASSIGNMENT``.
        members: ``schemas.MEMBERS``; members without partitions count with a load of zero.
        owned: ``schemas.OWNED``: who had what before.

    Returns:
        One row a group of ``members``: cluster_id string (where the inputs have it),
        group_id string, member_count int, partition_count bigint, min_assigned bigint,
        max_assigned bigint, mean_assigned double, stddev_assigned double (of the population),
        sum_of_squares bigint (of the loads; the least possible is the best balance),
        kept_count bigint: partitions that stay with a member that had them, moved_count bigint:
        partitions that somebody else had, both null without ``owned``,
        subscription_type string: `homogeneous` where all members subscribe to the same topics,
        else `heterogeneous`.

    Raises:
        SchemaError: columns are missing or of the wrong type.
    """
    check_same_clusters([(ASSIGNMENT, assignment), (MEMBERS, members), (OWNED, owned)])
    assigned = conform(assignment, ASSIGNMENT)
    loads = assigned.groupBy(*GROUP_KEY, "member_id").agg(F.count("*").alias("load"))
    load = F.coalesce("load", F.lit(0))
    measured = (
        conform(members, MEMBERS)
        .select(*GROUP_KEY, "member_id", F.sort_array(F.array_distinct("topics")).alias("topics"))
        .join(loads, on=[*GROUP_KEY, "member_id"], how="left")
        .groupBy(*GROUP_KEY)
        .agg(
            F.count("*").cast("int").alias("member_count"),
            F.sum(load).alias("partition_count"),
            F.min(load).alias("min_assigned"),
            F.max(load).alias("max_assigned"),
            F.avg(load).alias("mean_assigned"),
            F.stddev_pop(load).alias("stddev_assigned"),
            F.sum(load * load).alias("sum_of_squares"),
            F.when(F.min("topics") == F.max("topics"), "homogeneous")
            .otherwise("heterogeneous")
            .alias("subscription_type"),
        )
    )
    stayed = _stayed(assigned, owned) if owned is not None else None
    if stayed is not None:
        measured = measured.join(stayed, on=list(GROUP_KEY), how="left")
    else:
        nothing = F.lit(None).cast("bigint")
        measured = measured.withColumns({"kept_count": nothing, "moved_count": nothing})
    result = measured.select(
        *GROUP_KEY,
        "member_count",
        "partition_count",
        "min_assigned",
        "max_assigned",
        "mean_assigned",
        "stddev_assigned",
        "sum_of_squares",
        "kept_count" if stayed is None else F.coalesce("kept_count", F.lit(0)).alias("kept_count"),
        "moved_count"
        if stayed is None
        else F.coalesce("moved_count", F.lit(0)).alias("moved_count"),
        "subscription_type",
    )
    return restore_cluster_id(result, has_cluster_id(members))


def _stayed(assigned: DataFrame, owned: DataFrame) -> DataFrame:
    return (
        diff(conform(owned, OWNED), assigned)
        .withColumn("cluster_id", F.coalesce("cluster_id", F.lit("")))
        .groupBy(*GROUP_KEY)
        .agg(
            F.count_if(F.col("change") == "kept").alias("kept_count"),
            F.count_if(F.col("change") == "moved").alias("moved_count"),
        )
    )
