"""The group log as tables: from files of raw records, or from the cluster itself."""

import os
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from kassign_spark.brokers.coordinator import OFFSETS_TOPIC
from kassign_spark.conforming import declare
from kassign_spark.errors import InputError, SchemaError
from kassign_spark.log import log_schemas
from kassign_spark.log.decode import decode_subscriptions, decode_table
from kassign_spark.log.kafka_source import READERS, explain_source_error, read_topic
from kassign_spark.schemas import Table
from kassign_spark.spark.archives import forgetting_archives
from kassign_spark.spark.spark_errors import NO_PARQUET, SparkError, raised_as, spark_message
from kassign_spark.spark.spark_versions import error_condition
from kassign_spark.spark.workers import check_workers
from kassign_spark.tables.catalog_paths import is_catalog_path
from kassign_spark.tables.snapshots import has_table, read_table

_TYPES: dict[str, tuple[int, ...]] = {
    "generations": (2, 3),
    "log_members": (2, 5, 7, 8),
    "log_assignment": (2, 7, 8),
    "commits": (0, 1),
    "log_targets": (6,),
    "log_regexes": (16,),
    "log_topics": (4,),
}
"""The types of records, by the number in front of their keys, that the rows of a table are from."""

_NO_FILES = "UNABLE_TO_INFER_SCHEMA"
"""Spark's word for a folder without a Parquet file."""


class GroupLog(NamedTuple):
    """The content of ``__consumer_offsets``.

    Every table is computed on use, from the raw records: those are decoded anew for
    each, but only the kinds of records that it is made of. None is cached. In all of them offset
    bigint is the record's, and partition int too but where said otherwise; at is its time, of a
    commit or a classic generation the time in it; is_tombstone says that the record takes back
    what its key said.

    Attributes:
        generations: a row each time that a group had new members or a new assignment: group_id
            string, group_type string (`classic` or `consumer`), generation int? (of type
            `consumer` the group epoch), protocol_type string?, assignor string?, leader string?,
            member_count int?, partition int, offset bigint, at timestamp, is_tombstone boolean.
        log_members: what a record says of a member: group_id string, record string (`group`: in
            a record of a classic group; of the new protocol `member`: as it joined or changed,
            `target`, `current`), generation int? (of `current` the member's epoch),
            member_id string, group_instance_id string?, client_id string?, client_host string?,
            rack_id string?, rebalance_timeout_ms int?, session_timeout_ms int?,
            topics `array<string>`?, topics_regex string?, assignor string?, owned_generation int?
            (what a classic member said that it last had), member_seq int? (its place in a record
            of a classic group), previous_generation int? and state string? (of `current`),
            partition int, offset bigint, at timestamp, is_tombstone boolean.
        log_assignment: a row per member and partition: group_id string, generation int?,
            offset bigint, member_id string, role string (`assigned`, `owned`, `target` or
            `revoking`), topic string?, topic_id string? (of the new protocol, instead of topic),
            partition int: of that topic.
        commits: a row each offset commit: group_id string, topic string, partition int: of that
            topic, committed bigint?, at timestamp, is_tombstone boolean, offset bigint,
            topic_id string?.
        log_targets: of the new protocol, the epoch that a target was computed for: group_id
            string, generation int?, partition int, offset bigint, at timestamp,
            is_tombstone boolean.
        log_regexes: of the new protocol, which topics a regex stands for: group_id string,
            topics_regex string, topics `array<string>`?, partition int, offset bigint,
            at timestamp, is_tombstone boolean.
        log_topics: of the new protocol, up to Kafka 4.0, a row per topic: group_id string,
            topic string?, topic_id string?, num_partitions int?, partition int, offset bigint,
            at timestamp, is_tombstone boolean.
        unread: records, or parts of them, that no table has: kind string (Kafka's name of the
            record; `unknown`), version int? (of `unknown` the type in front of the key),
            reason string, group_id string? (null: unknown from the key), count bigint; of a
            stream several rows each, for you to add up.
        records: the raw ones, but for those of groups ``kassign-spark-log-...``, by which the log
            itself is read: key binary?, value binary?, topic string, partition int,
            offset bigint, timestamp timestamp.
    """

    generations: DataFrame
    log_members: DataFrame
    log_assignment: DataFrame
    commits: DataFrame
    log_targets: DataFrame
    log_regexes: DataFrame
    log_topics: DataFrame
    unread: DataFrame
    records: DataFrame


def read_group_log(
    path_or_options: str | os.PathLike[str] | Mapping[str, str],
    spark: SparkSession,
    *,
    stream: bool = False,
    owned: bool = False,
) -> GroupLog:
    """Read the log of a cluster's groups, ``__consumer_offsets``.

    Args:
        path_or_options: a folder of Parquet files with the columns key binary, value binary
            (null: a tombstone), topic string, partition int, offset bigint and timestamp
            timestamp, such as ``kassign-spark log --save`` writes; or options of Spark's Kafka
            source, of which `kafka.bootstrap.servers` must be there and security goes by
            `kafka.` and the Java client's name of the property. The session then needs the Spark
            package ``org.apache.spark:spark-sql-kafka-0-10_2.13``, and its setting
            ``spark.sql.streaming.kafka.useDeprecatedOffsetFetching`` must be true: else Spark sees
            no internal topic. A query of Spark 4.1 that goes on in the midst of a batch may end
            after it with a NullPointerException (SPARK-57438): start it again, nothing is lost.
        spark: the session.
        stream: whether the tables are streams (Structured Streaming) or what there is now.
        owned: whether ``log_assignment`` also has, with role `owned`, the partitions that members
            of classic groups claimed when they joined.

    Returns:
        GroupLog. What cannot be read is in no table but counted in ``unread``; nothing in the
        records makes the reading fail. All times are UTC. What is of the new protocol follows
        KIP-848, the bytes of classic members Kafka's ``ConsumerProtocol``.

    Raises:
        InputError: the files cannot be read, hold no record (of a stream they may come later), or
            records of another topic.
        SchemaError: the files lack columns, or have them with other types.
        SettingsError: the options name no cluster, or another topic, or the session is not set to
            see internal topics.
        ClusterError: the session cannot read Kafka, or the cluster does not let it.
    """
    check_workers(spark)
    if isinstance(path_or_options, Mapping):
        records = read_topic(path_or_options, spark, stream=stream)
        records = _declare_columns(records)
        if not stream:
            _check_there(records, path_or_options)
    else:
        path = os.fspath(path_or_options)
        records = _declare_columns(_read_files(path, spark, stream=stream))
        if not stream:
            _check_files(records, path, may_be_empty=False)
    return group_log(records, owned=owned)


def group_log(records: DataFrame, *, owned: bool = False) -> GroupLog:
    """Return the tables of raw records; reads none of them yet."""
    tables = [
        _decode_records(records.where(has_type(_TYPES[table.name])), table, owned=owned)
        for table in log_schemas.DECODED
    ]
    unread = _decode_records(records, log_schemas.EACH_UNREAD, owned=owned).drop("offset")
    if not records.isStreaming:
        by = ("kind", "version", "reason", "group_id")
        unread = unread.groupBy(*by).agg(F.sum("count").alias("count"))
    return GroupLog._make([*tables, unread, records])


def sent_subscriptions(records: DataFrame) -> DataFrame:
    """Return what members of classic groups sent: ``log_schemas.SUBSCRIPTIONS``."""

    def rows(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield from decode_subscriptions(batch).to_batches()

    of_groups = records.where(has_type((2,)))
    return of_groups.mapInArrow(forgetting_archives(rows), log_schemas.SUBSCRIPTIONS.columns)


def _declare_columns(records: DataFrame) -> DataFrame:
    """Return the columns of raw records; those that may be null have to be there all the same.

    Whoever reads the log of a cluster leaves groups of its own in it; those are left out.
    """
    missing = [name for name in ("key", "value") if name not in records.columns]
    if missing:
        raise SchemaError(
            f"table {log_schemas.RECORDS.name}: column {' and '.join(missing)} (binary) is "
            "missing, "
            f"the columns are {', '.join(records.columns) or 'none'}"
        )
    # Every key begins with its type and the length of the group's name, two bytes each.
    begins = F.substring("key", 5, len(READERS))
    return declare(records, log_schemas.RECORDS).where(~begins.eqNullSafe(F.lit(READERS.encode())))


def has_type(types: Iterable[int]) -> Column:
    """Return whether keys of records begin with these bytes, by Spark's own expression."""
    heads = [F.lit(number.to_bytes(2, "big")) for number in types]
    return F.substring("key", 1, 2).isin(*heads)


def _decode_records(records: DataFrame, table: Table, *, owned: bool) -> DataFrame:
    name = table.name

    def rows(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield from getattr(decode_table(batch, owned=owned), name).to_batches()

    return records.mapInArrow(forgetting_archives(rows), table.columns)


def _read_files(path: str, spark: SparkSession, *, stream: bool) -> DataFrame:
    place = f"group log {path}"
    try:
        inside = has_table(spark, path, log_schemas.RECORDS.name)
        if stream and is_catalog_path(path):
            raise InputError(f"{place}: tables of a catalog are no stream; name a folder")
        if stream:
            folder = f"{path}/{log_schemas.RECORDS.name}" if inside else path
            frame = spark.read.parquet(folder)
            _check_files(_declare_columns(frame), path, may_be_empty=True)
            return spark.readStream.schema(frame.schema).parquet(folder)
        return read_table(spark, path, log_schemas.RECORDS) if inside else spark.read.parquet(path)
    except SparkError as error:
        message = spark_message(error)
        is_empty = error_condition(error) == _NO_FILES
        if is_empty or NO_PARQUET in message:
            raise InputError(
                f"{place}: is not a group log: it has neither the table "
                f"{log_schemas.RECORDS.name}, which kassign-spark log writes, nor Parquet files "
                f"with columns {', '.join(log_schemas.RECORDS.columns.names)}"
            ) from None
        raise InputError(f"{place}: cannot be read: {message}") from None


def _check_there(records: DataFrame, options: Mapping[str, str]) -> None:
    try:
        empty = records.isEmpty()
    except SparkError as error:
        raise explain_source_error(error, options) from None
    if empty:
        raise InputError(f"topic {OFFSETS_TOPIC}: holds no record: no group has ever committed")


def _check_files(records: DataFrame, path: str, *, may_be_empty: bool) -> None:
    place = f"group log {path}"
    with raised_as(InputError, f"{place}: cannot be read"):
        other = records.agg(
            F.count(F.lit(1)), F.max(F.when(F.col("topic") != OFFSETS_TOPIC, F.col("topic")))
        )
        count, topic = other.collect()[0]
    if not count and not may_be_empty:
        raise InputError(f"{place}: holds no record")
    if topic is not None:
        raise InputError(
            f"{place}: has records of topic {topic}; the log of the groups is {OFFSETS_TOPIC}"
        )
