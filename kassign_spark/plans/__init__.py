"""Plans of groups, what comes before one (assignors), and what members do with it."""

from kassign_spark.plans.delivery import deliver
from kassign_spark.plans.listener import listener_calls
from kassign_spark.plans.offset_weights import partition_weights
from kassign_spark.plans.protocol_choice import check_migration, choose_assignors

__all__ = [
    "check_migration",
    "choose_assignors",
    "deliver",
    "listener_calls",
    "partition_weights",
]
