"""The tables that enter and leave the package: names, columns, types."""

from dataclasses import dataclass
from inspect import signature
from typing import TYPE_CHECKING, Any

from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import (
    ArrayType,
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

if TYPE_CHECKING:
    import pyarrow as pa

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

    def integers(self) -> list[str]:
        """Names of the whole-number columns."""
        return [f.name for f in self.columns if isinstance(f.dataType, IntegerType)]


def _required(name: str, data_type: DataType) -> StructField:
    return StructField(name, data_type, nullable=False)


_STRING, _INT, _LONG = StringType(), IntegerType(), LongType()
_DOUBLE, _BOOLEAN, _TIMESTAMP = DoubleType(), BooleanType(), TimestampType()

MEMBERS = Table(
    "members",
    StructType(
        [
            StructField(CLUSTER_ID, _STRING),
            _required("group_id", _STRING),
            _required("member_id", _STRING),
            StructField("group_instance_id", _STRING),
            StructField("rack_id", _STRING),
            StructField("topics", ArrayType(_STRING)),
            StructField("topics_pattern", _STRING),
            StructField("generation", _INT),
            StructField("member_seq", _INT),
            StructField("assignor", _STRING),
            StructField("topics_regex", _STRING),
            StructField("group_type", _STRING),
            StructField("capacity", _DOUBLE),
        ]
    ),
)
TOPICS = Table(
    "topics",
    StructType(
        [
            StructField(CLUSTER_ID, _STRING),
            _required("topic", _STRING),
            _required("num_partitions", _INT),
            StructField("replica_racks", ArrayType(ArrayType(_STRING))),
            StructField("topic_id", _STRING),
        ]
    ),
)
TOPIC_PARTITIONS = Table(
    "topics",
    StructType(
        [
            StructField(CLUSTER_ID, _STRING),
            _required("topic", _STRING),
            _required("partition", _INT),
        ]
    ),
)
"""The other form of ``topics``, one row a partition."""
OWNED = Table(
    "owned",
    StructType(
        [
            StructField(CLUSTER_ID, _STRING),
            _required("group_id", _STRING),
            _required("member_id", _STRING),
            _required("topic", _STRING),
            _required("partition", _INT),
        ]
    ),
)
ASSIGNMENT = Table("assignment", OWNED.columns)
VERDICTS = Table(
    "verdicts",
    StructType(
        [
            StructField(CLUSTER_ID, _STRING),
            _required("group_id", _STRING),
            _required("verdict", _STRING),
            StructField("detail", _STRING),
        ]
    ),
)
TARGET = Table("target", StructType([*OWNED.columns, StructField("position", _INT)]))
"""The last target of groups of the new protocol; position is the place in the member's list."""
GROUP_SETTINGS = Table(
    "group_settings",
    StructType(
        [
            StructField(CLUSTER_ID, _STRING),
            _required("group_id", _STRING),
            _required("setting", _STRING),
            StructField("value", _STRING),
        ]
    ),
)
"""Settings of groups of the new protocol, such as `consumer.assignment.interval.ms`."""
BALANCE = Table(
    "balance",
    StructType(
        [
            StructField(CLUSTER_ID, _STRING),
            _required("group_id", _STRING),
            _required("member_count", _INT),
            _required("partition_count", _LONG),
            _required("min_assigned", _LONG),
            _required("max_assigned", _LONG),
            _required("mean_assigned", _DOUBLE),
            _required("stddev_assigned", _DOUBLE),
            StructField("sum_of_squares", _LONG),
            StructField("kept_count", _LONG),
            StructField("moved_count", _LONG),
            StructField("subscription_type", _STRING),
            StructField("cross_rack_count", _LONG),
            StructField("is_balance_optimal", _BOOLEAN),
            StructField("is_optimal", _BOOLEAN),
            StructField("least_moves", _LONG),
            StructField("least_sum_of_squares", _LONG),
        ]
    ),
)
"""What ``balance`` gives; `assign` writes it with the assignor of each group behind."""
WEIGHTS = Table(
    "weights",
    StructType(
        [
            StructField(CLUSTER_ID, _STRING),
            StructField("group_id", _STRING),
            _required("topic", _STRING),
            _required("partition", _INT),
            _required("weight", _DOUBLE),
            StructField("move_cost", _DOUBLE),
        ]
    ),
)
"""A row without group_id serves every group that reads the topic; one with it comes first."""
OFFSETS = Table(
    "offsets",
    StructType(
        [
            StructField(CLUSTER_ID, _STRING),
            StructField("group_id", _STRING),
            _required("topic", _STRING),
            _required("partition", _INT),
            _required("begin_offset", _LONG),
            _required("end_offset", _LONG),
            StructField("committed_offset", _LONG),
            _required("as_of", _TIMESTAMP),
        ]
    ),
)
LEADERS = Table(
    "leaders",
    StructType(
        [
            StructField(CLUSTER_ID, _STRING),
            _required("topic", _STRING),
            _required("partition", _INT),
            StructField("leader", _INT),
        ]
    ),
)
"""The brokers that lead partitions; null or negative: the partition has no leader now."""
SNAPSHOT_TABLES = (MEMBERS, TOPICS, OWNED, TARGET, OFFSETS, LEADERS, GROUP_SETTINGS)
"""What a snapshot folder may hold; all but the first two may be missing."""


def arrow_schema(columns: StructType) -> "pa.Schema":
    """The same columns in Arrow, as Spark exchanges them with Python: times are in UTC."""
    # PySpark 4.1 takes that for granted; later versions want to be told.
    is_asked = "timezone" in signature(to_arrow_schema).parameters
    told: dict[str, Any] = {"timezone": "UTC"} if is_asked else {}
    return to_arrow_schema(columns, **told)
