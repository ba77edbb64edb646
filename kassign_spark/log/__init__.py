"""The group log: records of ``__consumer_offsets`` read and decoded to tables."""
