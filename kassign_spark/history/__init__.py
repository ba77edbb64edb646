"""The history in the group log: each rebalance with its reason, and rebalance storms."""

from kassign_spark.history.explained_generations import explain_history
from kassign_spark.history.rebalances import rebalances
from kassign_spark.history.storms import storms

__all__ = ["explain_history", "rebalances", "storms"]
