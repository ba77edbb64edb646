"""Frames made to fit the tables of ``schemas``, once, at the door.

So all other modules can rely on the columns, their order and their types: an absent optional column
is there as null, every integer is a ``bigint`` until its range has been checked, and ``cluster_id``
is always there (empty string: not given).
"""

from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import TypeVar

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    ByteType,
    DataType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
)

from kassign_spark.client_libraries import CLIENT_OF_ASSIGNOR, KAFKAJS_PROTOCOL
from kassign_spark.errors import SchemaError
from kassign_spark.schemas import CLUSTER_ID, TOPIC_PARTITIONS, TOPICS, Table
from kassign_spark.spark.workers import check_workers

_OTHER_NAMES = {
    "cluster_id": "cluster clustername",
    "group_id": "group groupname consumergroup consumergroupid consumergroupname",
    "member_id": "member consumer consumerid client clientid",
    "group_instance_id": "instanceid",
    "rack_id": "rack clientrack",
    "topics": "topic topicname topicnames subscription subscriptions subscribedtopics",
    "topic": "topicname",
    "assignor": "strategy assignmentstrategy assignorname",
    "partition": "partitionid partitionnumber partitions",
    "num_partitions": "partitions partitioncount partitionscount numpartition numberofpartitions",
    "begin_offset": "logstartoffset startoffset earliestoffset beginningoffset",
    "end_offset": "logendoffset latestoffset",
    "committed_offset": "currentoffset committed groupoffset",
    "leader": "leaderid broker brokerid",
    "weight": "lag load rate",
    "as_of": "timestamp time",
}
"""Column names of Kafka's tools and exporters, without case and punctuation."""
_WHOLE = (ByteType, ShortType, IntegerType, LongType)
_CLIENT, _COORDINATOR = "org.apache.kafka.clients.consumer.", "org.apache.kafka.coordinator.group."
CLIENT_ASSIGNORS = {
    "range": f"{_CLIENT}RangeAssignor",
    "roundrobin": f"{_CLIENT}RoundRobinAssignor",
    "sticky": f"{_CLIENT}StickyAssignor",
    "cooperative-sticky": f"{_CLIENT}CooperativeStickyAssignor",
}
"""The classes that ``partition.assignment.strategy`` takes, by the names of the assignors."""
ASSIGNOR_CLASSES = {
    **{name: short for short, name in CLIENT_ASSIGNORS.items()},
    f"{_COORDINATOR}assignor.UniformAssignor": "uniform",
    f"{_COORDINATOR}assignor.RangeAssignor": "range",
}
"""The names of Kafka's assignors by class, of the client and of the broker."""
_PAIRS = ", ".join(f"'{name}', '{client}'" for name, client in CLIENT_OF_ASSIGNOR.items())
BY_ASSIGNOR = f"decode(assignor, {_PAIRS})"
"""The library that the name of an assignor tells, or null, in SQL."""
_SHORT_NAMES = {**ASSIGNOR_CLASSES, KAFKAJS_PROTOCOL: "roundrobin"}
_Name = TypeVar("_Name")


def short_assignor(name: _Name) -> _Name | str:
    """Return the assignor's name for a class of Kafka's; other names stay as they are."""
    return _SHORT_NAMES.get(name, name) if isinstance(name, str) else name


def _short_assignor_sql(name: str) -> str:
    pairs = (f"'{long}', '{short}'" for long, short in _SHORT_NAMES.items())
    return f"decode({name}, {', '.join(pairs)}, {name})"


def has_cluster_id(frame: DataFrame) -> bool:
    """Return whether a frame names its cluster; outputs do when their inputs do."""
    return CLUSTER_ID in frame.columns


def conform(frame: DataFrame, table: Table) -> DataFrame:
    """Return ``frame`` with exactly the columns of ``table``, in order; runs no job.

    Returns:
        The table's columns. Integer columns are ``bigint``; ``cluster_id`` is an empty string
        where it was absent or null; an empty string given by the caller counts as null. A class of
        Kafka's in ``assignor`` or ``assignors`` has become the assignor's name.

    Raises:
        SchemaError: one message with every missing column and every column of a wrong type.
        SessionError: the server of Spark Connect does not answer.
        WorkerError: the session's Python workers run an interpreter without our packages.
    """
    check_workers(frame.sparkSession)  # before a server is asked for any columns
    return _cast(frame, table, {"int": "bigint"})


def topics_table(topics: DataFrame) -> Table:
    """Return the form of a topics table, one of two."""
    by_partition = "partition" in topics.columns and "num_partitions" not in topics.columns
    return TOPIC_PARTITIONS if by_partition else TOPICS


def declare(frame: DataFrame, table: Table) -> DataFrame:
    """Return a result with exactly the columns and types of its table, in order.

    Raises:
        SchemaError: a strategy of the caller's own left columns out or gave other types.
    """
    return _cast(frame, table, {})


def _cast(frame: DataFrame, table: Table, instead: Mapping[str, str]) -> DataFrame:
    problems = list(_discrepancies(frame, table))
    if problems:
        raise SchemaError(f"table {table.name}: " + "; ".join(problems))
    names = frame.schema.names
    columns = []
    for field in table.columns:
        type_name = field.dataType.simpleString()
        value = f"`{field.name}`" if field.name in names else "null"
        value = f"cast({value} as {instead.get(type_name, type_name)})"
        if field.name == CLUSTER_ID:
            value = f"coalesce({value}, '')"
        elif field.name == "assignor" and field.name in names:
            value = _short_assignor_sql(value)
        elif field.name == "client" and "assignor" in names:
            value = f"coalesce({value}, {BY_ASSIGNOR})"
        elif field.name == "assignors" and field.name in names:
            value = f"transform({value}, name -> {_short_assignor_sql('name')})"
        columns.append(f"{value} as `{field.name}`")
    return frame.selectExpr(*columns)


def fill_cluster_id(frame: DataFrame) -> DataFrame:
    """Make ``cluster_id`` a key of any frame: present, and an empty string where it was null."""
    value = f"coalesce({CLUSTER_ID}, '')" if has_cluster_id(frame) else "''"
    return frame.withColumn(CLUSTER_ID, F.expr(value))


def restore_cluster_id(frame: DataFrame, has_clusters: bool) -> DataFrame:
    """Undo what ``conform`` did to ``cluster_id``: null where it was null, gone where absent."""
    if not has_clusters:
        return frame.drop(CLUSTER_ID)
    return frame.withColumn(CLUSTER_ID, F.expr(f"nullif({CLUSTER_ID}, '')"))


def check_same_clusters(frames: Sequence[tuple[Table, DataFrame | None]]) -> bool:
    """Return whether the inputs name clusters; all of them do, or none.

    Raises:
        SchemaError: some of the tables have ``cluster_id`` and some have not.
    """
    tables = [(table.name, has_cluster_id(frame)) for table, frame in frames if frame is not None]
    having = [name for name, has in tables if has]
    lacking = [name for name, has in tables if not has]
    if having and lacking:
        raise SchemaError(
            f"column cluster_id: {', '.join(having)} has it, {', '.join(lacking)} has not; "
            "give it in every table, or in none for a single cluster"
        )
    return bool(having)


def _discrepancies(frame: DataFrame, table: Table) -> Iterable[str]:
    types: dict[str, DataType] = {}
    schema = frame.schema
    if frame.sparkSession.conf.get("spark.sql.caseSensitive") != "true":
        for field in table.columns:
            alike = [n for n in dict.fromkeys(schema.names) if n.lower() == field.name]
            if len(alike) > 1:
                yield f"columns {', '.join(alike)} are the same to Spark (spark.sql.caseSensitive)"
    for field in schema:
        if field.name in types:
            yield f"column {field.name} appears twice"
        types[field.name] = field.dataType
    if any(not field.nullable and field.name not in types for field in table.columns):
        yield from _hints(list(types), table)
    for field in table.columns:
        if field.name in types:
            if not _fits(types[field.name], field.dataType):
                yield (
                    f"column {field.name} must be {field.dataType.simpleString()}, "
                    f"not {types[field.name].simpleString()}"
                )
        elif not field.nullable:
            yield (
                f"column {field.name} ({field.dataType.simpleString()}) is missing, "
                f"the columns are {', '.join(types) or 'none'}"
            )


def _hints(names: Iterable[str], table: Table) -> Iterable[str]:
    """Suggest a known column for each column that the table does not know."""
    columns = table.columns.names
    for name in names:
        plain = "".join(filter(str.isalnum, name.lower()))
        alike = [column for column in columns if plain in _OTHER_NAMES.get(column, "").split()]
        if name in columns:  # a client_id may be what is missing all the same: the member_id
            alike = [column for column in alike if not table.columns[column].nullable]
        else:
            alike = [column for column in columns if plain == column.replace("_", "")] + alike
            alike += get_close_matches(name.lower(), columns, n=1, cutoff=0.75)
        if alike and alike[0] not in names:
            yield f"column {name} may be {alike[0]}: then name it so"


def _fits(actual: DataType, declared: DataType) -> bool:
    """Return whether ``actual`` values fit ``declared`` without loss (void: all null)."""
    if actual.simpleString() == "void":
        return True
    if isinstance(declared, IntegerType | LongType):
        return isinstance(actual, _WHOLE)
    if isinstance(declared, DoubleType):
        return isinstance(actual, (*_WHOLE, FloatType, DoubleType))
    if isinstance(declared, ArrayType):
        return isinstance(actual, ArrayType) and _fits(actual.elementType, declared.elementType)
    if isinstance(declared, StringType):
        return isinstance(actual, StringType)
    return actual == declared
