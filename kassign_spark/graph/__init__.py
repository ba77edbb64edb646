"""The graph of which member can take which partition, and its consequences for balance."""

from kassign_spark.graph.bottlenecks import bottlenecks
from kassign_spark.graph.eligibility import Eligibility, eligibility
from kassign_spark.graph.fleet import FleetGraph, fleet_graph, group_clusters, touched_by

__all__ = [
    "Eligibility",
    "FleetGraph",
    "bottlenecks",
    "eligibility",
    "fleet_graph",
    "group_clusters",
    "touched_by",
]
