"""Inputs: the columns of tables, their checks, and the topics that patterns match."""

from kassign_spark.inputs.patterns import resolve_patterns, touched_groups

__all__ = [
    "resolve_patterns",
    "touched_groups",
]
