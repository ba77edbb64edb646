"""Producers: which partition a record goes to, and what traffic that makes."""

from kassign_spark.producer.null_keys import null_key_shares
from kassign_spark.producer.partitioner import moved_keys, partition_for_key, place_records
from kassign_spark.producer.traffic import member_traffic, partition_traffic

__all__ = [
    "member_traffic",
    "moved_keys",
    "null_key_shares",
    "partition_for_key",
    "partition_traffic",
    "place_records",
]
