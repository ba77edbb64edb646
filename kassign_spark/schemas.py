"""The tables that enter and leave the package: names, columns, types, and the check that they fit.

Every input is made to conform here once, so that all other modules can rely on the columns, their
order and their types: an absent optional column is there as null, every integer is a ``bigint``
until its range has been checked, and ``cluster_id`` is always there (empty string: not given).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from inspect import signature
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    ByteType,
    DataType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from kassign_spark.errors import SchemaError
from kassign_spark.workers import check_workers

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


def has_cluster_id(frame: DataFrame) -> bool:
    """Whether a frame names its cluster; outputs do when their inputs do."""
    return CLUSTER_ID in frame.columns


def conform(frame: DataFrame, table: Table) -> DataFrame:
    """Give ``frame`` exactly the columns of ``table``, in order; runs no job.

    Returns:
        The table's columns. Integer columns are ``bigint``; ``cluster_id`` is an empty string
        where it was absent or null; an empty string given by the caller counts as null.

    Raises:
        SchemaError: one message with every missing column and every column of a wrong type.
        WorkerError: the session's Python workers run an interpreter without our packages.
    """
    return _cast(frame, table, {"int": "bigint"})


def topics_table(topics: DataFrame) -> Table:
    """Say which of its two forms a topics table has."""
    by_partition = "partition" in topics.columns and "num_partitions" not in topics.columns
    return TOPIC_PARTITIONS if by_partition else TOPICS


def declare(frame: DataFrame, table: Table) -> DataFrame:
    """Give a result exactly the columns and types of its table, in order.

    Raises:
        SchemaError: a strategy of the caller's own left columns out or gave other types.
    """
    return _cast(frame, table, {})


def _cast(frame: DataFrame, table: Table, instead: Mapping[str, str]) -> DataFrame:
    check_workers(frame.sparkSession)
    problems = list(_discrepancies(frame, table))
    if problems:
        raise SchemaError(f"table {table.name}: " + "; ".join(problems))
    given = frame.schema.names
    columns = []
    for field in table.columns:
        wanted = field.dataType.simpleString()
        value = f"`{field.name}`" if field.name in given else "null"
        value = f"cast({value} as {instead.get(wanted, wanted)})"
        if field.name == CLUSTER_ID:
            value = f"coalesce({value}, '')"
        columns.append(f"{value} as `{field.name}`")
    return frame.selectExpr(*columns)


def fill_cluster_id(frame: DataFrame) -> DataFrame:
    """Make ``cluster_id`` a key of any frame: there, and an empty string where it was null."""
    value = f"coalesce({CLUSTER_ID}, '')" if has_cluster_id(frame) else "''"
    return frame.withColumn(CLUSTER_ID, F.expr(value))


def restore_cluster_id(frame: DataFrame, given: bool) -> DataFrame:
    """Undo what ``conform`` did to ``cluster_id``: null where it was null, gone where absent."""
    if not given:
        return frame.drop(CLUSTER_ID)
    return frame.withColumn(CLUSTER_ID, F.expr(f"nullif({CLUSTER_ID}, '')"))


def check_same_clusters(frames: Sequence[tuple[Table, DataFrame | None]]) -> bool:
    """Say whether the inputs name clusters; all of them do, or none.

    Raises:
        SchemaError: some of the tables have ``cluster_id`` and some have not.
    """
    given = [(table.name, has_cluster_id(frame)) for table, frame in frames if frame is not None]
    having = [name for name, has in given if has]
    lacking = [name for name, has in given if not has]
    if having and lacking:
        raise SchemaError(
            f"column cluster_id: {', '.join(having)} has it, {', '.join(lacking)} has not; "
            "give it in every table, or in none for a single cluster"
        )
    return bool(having)


def _discrepancies(frame: DataFrame, table: Table) -> Iterable[str]:
    given: dict[str, DataType] = {}
    schema = frame.schema
    if frame.sparkSession.conf.get("spark.sql.caseSensitive") != "true":
        for field in table.columns:
            alike = [n for n in dict.fromkeys(schema.names) if n.lower() == field.name]
            if len(alike) > 1:
                yield f"columns {', '.join(alike)} are one to Spark (spark.sql.caseSensitive)"
    for field in schema:
        if field.name in given:
            yield f"column {field.name} is there twice"
        given[field.name] = field.dataType
    for field in table.columns:
        if field.name in given:
            if not _fits(given[field.name], field.dataType):
                yield (
                    f"column {field.name} must be {field.dataType.simpleString()}, "
                    f"not {given[field.name].simpleString()}"
                )
        elif not field.nullable:
            yield (
                f"column {field.name} ({field.dataType.simpleString()}) is missing, "
                f"the columns are {', '.join(given) or 'none'}"
            )


def _fits(given: DataType, wanted: DataType) -> bool:
    """Whether values of ``given`` can stand for ``wanted`` without loss (void: all null)."""
    if given.simpleString() == "void":
        return True
    if isinstance(wanted, IntegerType):
        return isinstance(given, ByteType | ShortType | IntegerType | LongType)
    if isinstance(wanted, LongType):
        return isinstance(given, ByteType | ShortType | IntegerType | LongType)
    if isinstance(wanted, DoubleType):
        whole = isinstance(given, ByteType | ShortType | IntegerType | LongType)
        return whole or isinstance(given, FloatType | DoubleType)
    if isinstance(wanted, ArrayType):
        return isinstance(given, ArrayType) and _fits(given.elementType, wanted.elementType)
    if isinstance(wanted, StringType):
        return isinstance(given, StringType)
    return given == wanted
