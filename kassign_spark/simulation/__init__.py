"""Simulate groups over time: events, the rebalances that they start, and what-if sweeps."""

from kassign_spark.simulation.questions import Sweep, parse_sweep
from kassign_spark.simulation.simulate import simulate, summarize_events
from kassign_spark.simulation.sweep import sweep
from kassign_spark.simulation.timeouts import Timeouts

__all__ = [
    "Sweep",
    "Timeouts",
    "parse_sweep",
    "simulate",
    "summarize_events",
    "sweep",
]
