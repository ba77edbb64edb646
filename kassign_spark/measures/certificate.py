"""Whether an assignment is the best there is, and how many partitions the best would keep.

Judges any assignment, also one observed in a cluster or made by Kafka. It knows nothing of how the
general pass works (no quotas, no places); it looks for a way to do better.

``optimality`` has the conditions themselves.
"""

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kassign_spark.groups.numbers import dense, names, rows_by
from kassign_spark.measures.optimality import judge
from kassign_spark.schemas import GROUP_KEY

_TOPIC_KEY = (*GROUP_KEY, "topic")
_BATCHES = 32


def certify(assignment: DataFrame, members: DataFrame, owned: DataFrame | None = None) -> DataFrame:
    """Judge each group's assignment against the optimum; runs no job.

    The optimum: first the sum of squared loads is the least possible; then the number of
    partitions that stay with their current owner is the greatest at that balance.

    Args:
        assignment: columns of ``schemas.ASSIGNMENT``; what it does not hold is not there.
        members: cluster_id string, group_id string, member_id string, topics array<string>.
        owned: columns of ``schemas.OWNED``, one owner a partition; None: nobody owns any.

    Returns:
        One row for each group in ``assignment``: cluster_id string, group_id string,
        is_balance_optimal boolean: false also where a partition is given twice, or to a member
        that does not subscribe to its topic,
        is_optimal boolean: the balance is, and no assignment of that balance keeps more,
        kept_count bigint: partitions that stay with their owner,
        most_kept_count bigint: the most that can stay, at the best balance,
        least_moves bigint: the fewest partitions that can change owner, at the best balance,
        least_sum_of_squares bigint: of the loads at the best balance.
    """
    placed = assignment.select(*_TOPIC_KEY, "partition", "member_id")
    if owned is None:
        placed = placed.withColumn("owner", F.lit(None).cast("string"))
    else:
        owners = owned.select(*_TOPIC_KEY, "partition", F.col("member_id").alias("owner"))
        placed = placed.join(owners, on=[*_TOPIC_KEY, "partition"], how="left")
    judged = (
        _edges(placed, members)
        .withColumn("batch", F.pmod(F.xxhash64(*GROUP_KEY), F.lit(_BATCHES)))
        .groupBy("batch")
        .applyInArrow(
            _judge_arrow,
            "cluster_id string, group_id string, eligible_count bigint, is_balanced boolean, "
            "most_kept_count bigint, least_sum_of_squares bigint",
        )
    )
    is_kept = F.col("owner").eqNullSafe(F.col("member_id"))
    totals = placed.groupBy(*GROUP_KEY).agg(
        F.count("*").alias("row_count"),
        F.count_distinct("topic", "partition").alias("partition_count"),
        F.count("owner").alias("owned_count"),
        F.count_if(is_kept).alias("kept_count"),
    )
    count = F.col("row_count")
    is_valid = (count == F.col("partition_count")) & (count == F.col("eligible_count"))
    is_balanced = F.coalesce(is_valid & F.col("is_balanced"), F.lit(False))
    return (
        totals.join(judged, on=list(GROUP_KEY), how="left")
        .fillna(0, ["most_kept_count", "least_sum_of_squares"])
        .select(
            *GROUP_KEY,
            is_balanced.alias("is_balance_optimal"),
            (is_balanced & (F.col("kept_count") == F.col("most_kept_count"))).alias("is_optimal"),
            "kept_count",
            "most_kept_count",
            (F.col("owned_count") - F.col("most_kept_count")).alias("least_moves"),
            "least_sum_of_squares",
        )
    )


def _edges(placed: DataFrame, members: DataFrame) -> DataFrame:
    """One row a topic and subscriber: supply, owned, assigned bigint (counts of partitions)."""
    supply = placed.groupBy(*_TOPIC_KEY).agg(F.count_distinct("partition").alias("supply"))
    assigned = placed.groupBy(*_TOPIC_KEY, "member_id").agg(F.count("*").alias("assigned"))
    owned = (
        placed.where(F.col("owner").isNotNull())
        .groupBy(*_TOPIC_KEY, F.col("owner").alias("member_id"))
        .agg(F.count_distinct("partition").alias("owned"))
    )
    key = [*_TOPIC_KEY, "member_id"]
    return (
        members.select(
            *GROUP_KEY, "member_id", F.explode(F.array_distinct("topics")).alias("topic")
        )
        .distinct()
        .join(supply, on=list(_TOPIC_KEY), how="inner")
        .join(assigned, on=key, how="left")
        .join(owned, on=key, how="left")
        .fillna(0, ["assigned", "owned"])
        .select(*key, "supply", "owned", "assigned")
    )


def _judge_arrow(table: pa.Table) -> pa.Table:
    """Judge the groups of one batch; the rows are those of ``_edges``.

    Raises:
        AssertionError: the assignment to compare with is not the best itself.
    """
    first, group = dense(names(table["cluster_id"]).code, names(table["group_id"]).code)
    topic, member = (dense(group, names(table[name]).code)[1] for name in ("topic", "member_id"))
    order = rows_by(topic, member)
    judged = judge(
        group[order],
        topic[order],
        member[order],
        *(table[name].to_numpy()[order] for name in ("supply", "owned", "assigned")),
    )
    groups = table.select(["cluster_id", "group_id"]).take(pa.array(first))
    return (
        groups.append_column("eligible_count", pa.array(judged.eligible_count))
        .append_column("is_balanced", pa.array(judged.is_balanced))
        .append_column("most_kept_count", pa.array(judged.most_kept_count))
        .append_column("least_sum_of_squares", pa.array(judged.least_squares))
    )
