"""The group log: records of ``__consumer_offsets`` read and decoded to tables."""

from kassign_spark.log.group_log import GroupLog, read_group_log

__all__ = ["GroupLog", "read_group_log"]
