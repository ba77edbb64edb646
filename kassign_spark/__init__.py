"""Kafka consumer-group partition assignment for whole fleets, as Spark DataFrames."""

from kassign_spark.pipeline import assign
from kassign_spark.settings import Settings

__all__ = ["Settings", "assign"]
__version__ = "0.1.0"
