"""A few groups out of many, by the names that the driver knows."""

from collections.abc import Iterable

from pyspark.sql import Column
from pyspark.sql import functions as F


def is_group_of(names: Iterable[tuple[str, str]]) -> Column:
    """Return the condition that a row is of one of a few hundred groups; needs no join.

    Names are cluster_id and group_id. Where these are null in a row, so is the answer.
    """
    by_cluster: dict[str, list[str]] = {}
    for cluster_id, group_id in names:
        by_cluster.setdefault(cluster_id, []).append(group_id)
    condition = F.lit(False)
    for cluster_id, group_ids in by_cluster.items():
        is_cluster = F.col("cluster_id") == F.lit(cluster_id)
        condition = condition | (is_cluster & F.col("group_id").isin(group_ids))
    return condition
