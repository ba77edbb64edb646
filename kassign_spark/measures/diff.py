"""What changes hands between two assignments."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kassign_spark.schemas import (
    ASSIGNMENT,
    GROUP_KEY,
    check_same_clusters,
    conform,
    has_cluster_id,
    restore_cluster_id,
)

_PARTITION_KEY = [*GROUP_KEY, "topic", "partition"]


def diff(before: DataFrame, after: DataFrame) -> DataFrame:
    """Say for each partition who had it and who has it.

    Args:
        before: ``schemas.ASSIGNMENT`` or ``schemas.OWNED``.
        after: ``schemas.ASSIGNMENT``.

    Returns:
        cluster_id string (where the inputs have it), group_id string, topic string, partition int
        (null: beyond 32 bits), from_member string (null: nobody), to_member string (null: nobody),
        change string: `kept` the same member, `moved` another one, `new` nobody had it, `dropped`
        nobody has it. A partition that several members claim in ``before`` has one row: `kept`
        where the new owner is among them, with the least of their ids as ``from_member`` otherwise.

    Raises:
        SchemaError: columns are missing or of the wrong type.
    """
    check_same_clusters([(ASSIGNMENT, before), (ASSIGNMENT, after)])
    owners = (
        conform(before, ASSIGNMENT)
        .groupBy(*_PARTITION_KEY)
        .agg(F.array_sort(F.collect_set("member_id")).alias("owners"))
    )
    assigned = conform(after, ASSIGNMENT).withColumnRenamed("member_id", "to_member")
    is_kept = F.array_contains("owners", F.col("to_member"))
    change = (
        F.when(F.col("owners").isNull(), "new")
        .when(F.col("to_member").isNull(), "dropped")
        .when(is_kept, "kept")
        .otherwise("moved")
    )
    compared = owners.join(assigned, on=_PARTITION_KEY, how="full").select(
        *GROUP_KEY,
        "topic",
        F.col("partition").try_cast("int").alias("partition"),
        F.when(is_kept, F.col("to_member")).otherwise(F.col("owners")[0]).alias("from_member"),
        "to_member",
        change.alias("change"),
    )
    return restore_cluster_id(compared, has_cluster_id(before))
