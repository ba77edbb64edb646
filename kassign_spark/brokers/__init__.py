"""Brokers: which of them coordinates a group, and what load that makes."""

from kassign_spark.brokers.coordinator import (
    coordinator_load,
    coordinator_partition,
    coordinators,
)

__all__ = ["coordinator_load", "coordinator_partition", "coordinators"]
