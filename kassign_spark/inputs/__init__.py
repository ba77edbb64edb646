"""How tables come in: their columns, the checks that they pass, and what patterns stand for."""

from kassign_spark.inputs.patterns import resolve_patterns, touched_groups

__all__ = [
    "resolve_patterns",
    "touched_groups",
]
