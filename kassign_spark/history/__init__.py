"""What is made of the group log: every rebalance that happened and why, and who rebalances much."""

from kassign_spark.history.explained_generations import explain_history
from kassign_spark.history.rebalances import rebalances
from kassign_spark.history.storms import storms

__all__ = ["explain_history", "rebalances", "storms"]
