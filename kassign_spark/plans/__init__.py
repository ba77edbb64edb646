"""Plans of groups, what comes before one (assignors), and what members do with it."""

from kassign_spark.plans.choice import check_migration, choose_assignors
from kassign_spark.plans.delivery import deliver
from kassign_spark.plans.listener import listener_calls
from kassign_spark.plans.offsets import partition_weights

__all__ = [
    "check_migration",
    "choose_assignors",
    "deliver",
    "listener_calls",
    "partition_weights",
]
