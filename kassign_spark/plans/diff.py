"""Compare two assignments: the partitions that change hands."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kassign_spark.conforming import check_same_clusters, conform, has_cluster_id
from kassign_spark.results import to_result
from kassign_spark.schemas import ASSIGNMENT, GROUP_KEY

_PARTITION_KEY = [*GROUP_KEY, "topic", "partition"]


def diff(before: DataFrame, after: DataFrame) -> DataFrame:
    """Return for each partition who had it and who has it.

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
    compared = changes(conform(before, ASSIGNMENT), conform(after, ASSIGNMENT))
    return to_result(compared, "diff", has_cluster_id=has_cluster_id(before))


def changes(before: DataFrame, after: DataFrame) -> DataFrame:
    """Compare conforming assignments as ``diff`` does; cluster_id is always there."""
    sides = _side(before, is_before=True).unionByName(_side(after, is_before=False))
    grouped = sides.groupBy(*_PARTITION_KEY, "unmatched").agg(
        F.array_sort(F.collect_set("from_member")).alias("owners"),
        F.bool_or("is_before").alias("was_owned"),
        F.collect_list(F.when(~F.col("is_before"), F.struct("to_member"))).alias("assigned"),
    )
    is_kept = F.array_contains("owners", F.col("to_member"))
    change = (
        F.when(~F.col("was_owned"), "new")
        .when(F.col("to_member").isNull(), "dropped")
        .when(is_kept, "kept")
        .otherwise("moved")
    )
    from_member = F.when(is_kept, F.col("to_member")).otherwise(F.get("owners", F.lit(0)))
    return (
        grouped.withColumn("assigned", F.explode_outer("assigned"))
        .withColumn("to_member", F.col("assigned.to_member"))
        .select(
            *GROUP_KEY,
            "topic",
            F.expr("try_cast(partition as int) as partition"),
            from_member.alias("from_member"),
            "to_member",
            change.alias("change"),
        )
    )


def _side(assignment: DataFrame, *, is_before: bool) -> DataFrame:
    """Return one table with the other's columns too; a row without a whole key matches no other."""
    lacks_key = " or ".join(f"{name} is null" for name in _PARTITION_KEY)
    nobody = "cast(null as string)"
    return assignment.selectExpr(
        *_PARTITION_KEY,
        f"if({lacks_key}, {is_before}, null) as unmatched",
        f"{is_before} as is_before",
        f"{'member_id' if is_before else nobody} as from_member",
        f"{nobody if is_before else 'member_id'} as to_member",
    )
