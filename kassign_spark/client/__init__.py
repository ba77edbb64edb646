"""Kafka's Java client as a model: one group in plain Python, exactly as its assignors answer."""
