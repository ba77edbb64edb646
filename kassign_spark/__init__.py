"""Kafka consumer-group partition assignment for whole fleets, as Spark DataFrames."""
