"""The coordinator's answers for the groups of the new protocol alone, with their rounds."""

from pyspark.sql import DataFrame

from kassign_spark.conforming import has_cluster_id
from kassign_spark.plans import consumer_groups
from kassign_spark.plans.consumer_groups import ConsumerPrediction, inspect_by_type


def predict_consumer_groups(
    members: DataFrame,
    topics: DataFrame,
    owned: DataFrame | None = None,
    *,
    target: DataFrame | None = None,
    assignor: str | None = None,
) -> ConsumerPrediction:
    """As ``predict`` and ``rebalance`` do, for members among which there is such a group."""
    groups = inspect_by_type(members, topics, owned, target, None).consumer
    assert groups is not None
    has_clusters = has_cluster_id(members)
    return consumer_groups.predict_consumer_groups(
        groups, assignor=assignor, has_cluster_id=has_clusters
    )
