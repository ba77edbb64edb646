"""Kafka consumer-group partition assignment for whole fleets, as Spark DataFrames."""

from kassign_spark.around.client_settings import check_settings
from kassign_spark.around.coordinators import coordinator_partition
from kassign_spark.around.new_topics import touched_groups
from kassign_spark.around.partitioner import partition_for_key
from kassign_spark.assignors import ASSIGNORS, Assignor
from kassign_spark.eligibility.groups import Eligible
from kassign_spark.errors import KassignError
from kassign_spark.inputs.patterns import resolve_patterns
from kassign_spark.inputs.validation import validate
from kassign_spark.measures.balance import balance
from kassign_spark.measures.diff import diff
from kassign_spark.measures.explain import explain
from kassign_spark.measures.violations import violations
from kassign_spark.pipeline import assign
from kassign_spark.prediction.predict import predict
from kassign_spark.rebalancing.listener import listener_calls
from kassign_spark.rebalancing.steps import rebalance
from kassign_spark.rebalancing.summary import summarize
from kassign_spark.settings import Settings
from kassign_spark.tables import Snapshot, read_snapshot, write_snapshot

__all__ = [
    "ASSIGNORS",
    "Assignor",
    "Eligible",
    "KassignError",
    "Settings",
    "Snapshot",
    "assign",
    "balance",
    "check_settings",
    "coordinator_partition",
    "diff",
    "explain",
    "listener_calls",
    "partition_for_key",
    "predict",
    "read_snapshot",
    "rebalance",
    "resolve_patterns",
    "summarize",
    "touched_groups",
    "validate",
    "violations",
    "write_snapshot",
]
__version__ = "0.1.0"
