"""The tables that enter and leave the package: names, columns, types."""

from dataclasses import dataclass

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DoubleType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

CLUSTER_ID = "cluster_id"
GROUP_KEY = (CLUSTER_ID, "group_id")
"""A group never sees another group's rows: every computation is keyed by these two columns."""


@dataclass(frozen=True)
class Table:
    """One of the design's tables: its name in messages and snapshots, and its columns.

    A column that is not nullable must be there; a nullable one may be absent or null.
    """

    name: str
    columns: StructType


_TYPES: dict[str, DataType] = {
    data_type.simpleString(): data_type
    for data_type in (
        StringType(),
        IntegerType(),
        LongType(),
        DoubleType(),
        BooleanType(),
        BinaryType(),
        TimestampType(),
        ArrayType(StringType()),
        ArrayType(IntegerType()),
        ArrayType(LongType()),
        ArrayType(DoubleType()),
        ArrayType(ArrayType(StringType())),
    )
}


def table_of(name: str, columns: str) -> Table:
    """Declare a table; its columns as "name type, name type?", where ? makes one nullable."""
    parted = (column.split(" ") for column in columns.split(", "))
    fields = [
        StructField(column, _TYPES[type_.rstrip("?")], type_.endswith("?"))
        for column, type_ in parted
    ]
    return Table(name, StructType(fields))


MEMBERS = table_of(
    "members",
    "cluster_id string?, group_id string, member_id string, group_instance_id string?, "
    "rack_id string?, topics array<string>?, topics_pattern string?, generation int?, "
    "member_seq int?, assignor string?, topics_regex string?, group_type string?, "
    "capacity double?, client string?, is_leader boolean?, client_id string?, "
    "subscription binary?",
)
"""client is the library that the member runs, one of ``client_libraries.CLIENTS``; null: what its
client_id and subscription, the bytes that it sent, tell (``inputs.client_families``), else Java's.
"""
TOPICS = table_of(
    "topics",
    "cluster_id string?, topic string, num_partitions int, "
    "replica_racks array<array<string>>?, topic_id string?",
)
TOPIC_PARTITIONS = table_of("topics", "cluster_id string?, topic string, partition int")
"""The other form of ``topics``, one row per partition."""
_OF_MEMBERS = "cluster_id string?, group_id string, member_id string, topic string, partition int"
OWNED = table_of("owned", _OF_MEMBERS)
OWNED_IN_ORDER = table_of("owned", f"{_OF_MEMBERS}, position int?")
"""With the place in the member's list, which some libraries look at."""
ASSIGNMENT = table_of("assignment", _OF_MEMBERS)
VERDICTS = table_of(
    "verdicts", "cluster_id string?, group_id string, verdict string, detail string?"
)
TARGET = table_of("target", f"{_OF_MEMBERS}, position int?")
"""The last target of groups of the new protocol; position is the place in the member's list."""
GROUP_SETTINGS = table_of(
    "group_settings", "cluster_id string?, group_id string, setting string, value string?"
)
"""Settings of groups of the new protocol, such as `consumer.assignment.interval.ms`."""
BALANCE = table_of(
    "balance",
    "cluster_id string?, group_id string, member_count int, partition_count bigint, "
    "min_assigned bigint, max_assigned bigint, mean_assigned double, stddev_assigned double, "
    "sum_of_squares bigint?, kept_count bigint?, moved_count bigint?, subscription_type string?, "
    "cross_rack_count bigint?, is_balance_optimal boolean?, is_optimal boolean?, "
    "least_moves bigint?, least_sum_of_squares bigint?",
)
"""Columns of ``balance``; `assign` appends the assignor of each group."""
WEIGHTS = table_of(
    "weights",
    "cluster_id string?, group_id string?, topic string, partition int, weight double, "
    "move_cost double?",
)
"""A row without group_id serves every group that reads the topic; one with it comes first."""
OFFSETS = table_of(
    "offsets",
    "cluster_id string?, group_id string?, topic string, partition int, begin_offset bigint, "
    "end_offset bigint, committed_offset bigint?, as_of timestamp",
)
LEADERS = table_of("leaders", "cluster_id string?, topic string, partition int, leader int?")
"""The brokers that lead partitions; null or negative: the partition has no leader now."""
SNAPSHOT_TABLES = (MEMBERS, TOPICS, OWNED_IN_ORDER, TARGET, OFFSETS, LEADERS, GROUP_SETTINGS)
"""Tables of a snapshot folder; all but the first two may be missing."""
