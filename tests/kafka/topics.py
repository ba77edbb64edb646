"""Topics on a test's broker."""

from collections.abc import Mapping

from kafka import KafkaAdminClient


def create_topics(bootstrap_server: str, sizes: Mapping[str, int]) -> None:
    """Create topics of so many partitions and wait until their metadata is there."""
    admin = KafkaAdminClient(bootstrap_servers=bootstrap_server)
    try:
        admin.create_topics({topic: {"num_partitions": n} for topic, n in sizes.items()})
        admin.wait_for_topics(list(sizes))
    finally:
        admin.close()
