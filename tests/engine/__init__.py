"""The general pass on counts, without Spark."""
