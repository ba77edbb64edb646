"""The broker's group coordinator as a model, without Spark: groups of the new protocol (KIP-848).

Equal to the classes of Kafka 4.4.0's group coordinator for what ``ConsumerGroupDescribe`` shows.
"""
