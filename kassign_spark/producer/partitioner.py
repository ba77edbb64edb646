"""Find where Kafka's producer puts records that have a key, and what moves when a topic grows."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StringType

from kassign_spark.brokers.coordinator import modulo
from kassign_spark.conforming import check_same_clusters, conform, has_cluster_id, topics_table
from kassign_spark.groups.input_counts import fold_topics
from kassign_spark.producer.murmur2 import murmur2
from kassign_spark.results import to_result
from kassign_spark.schemas import CLUSTER_ID, Table, table_of

_RECORDS = (
    "cluster_id string?, topic string, key {}, partition int?, record_count int?, byte_count int?"
)
RECORDS = table_of("records", _RECORDS.format("binary"))
"""Records, or counts of records that have a key in common.

``key`` may be string as well; a whole number may be of any integer type here and in all tables.
"""

_RECORDS_OF_TEXT = table_of("records", _RECORDS.format("string"))
GROWTH = table_of(
    "growth", "cluster_id string?, topic string, num_partitions int, new_num_partitions int"
)
"""Topics whose number of partitions changes."""

_EUCLID_STEPS = 46
"""No two 32-bit numbers need more (consecutive Fibonacci numbers need the most)."""


def partition_for_key(key: Column, num_partitions: Column | int) -> Column:
    """Return the partition to which Kafka's Java producer sends a key.

    ``(murmur2(key) & 0x7fffffff) % num_partitions`` (``BuiltInPartitioner.partitionForKey``), the
    partitions without a leader included. An empty key is a key. What runs is compiled by Spark, no
    Python a row.

    Args:
        key: string (its UTF-8 bytes count) or binary; null gives null, as such a record has no
            partition of its own (``null_key_shares``).
        num_partitions: of the topic. As a column: null where it is null or less than 1.

    Returns:
        int in 0..num_partitions-1.

    Raises:
        InputError: ``num_partitions`` is a number less than 1.

    Example:
        >>> keys = spark.createDataFrame([("21",), ("foobar",), ("",), (None,)], "key STRING")
        >>> keys.select("key", partition_for_key(F.col("key"), 12).alias("partition")).show()
        +------+---------+
        |   key|partition|
        +------+---------+
        |    21|        0|
        |foobar|        6|
        |      |        9|
        |  NULL|     NULL|
        +------+---------+
        <BLANKLINE>
    """
    positive = murmur2(key.cast("binary")).bitwiseAND(F.lit(0x7FFF_FFFF))
    return modulo(positive, num_partitions).cast("int")


def place_records(records: DataFrame, topics: DataFrame, *, ignore_keys: bool = False) -> DataFrame:
    """Return for each record which partition it goes to, and why.

    Args:
        records: ``RECORDS``: cluster_id string?, topic string, key string or binary (may be null),
            partition int? (chosen by the application), record_count bigint? (null: 1),
            byte_count bigint?.
        topics: ``schemas.TOPICS`` or one row per topic-partition.
        ignore_keys: ``partitioner.ignore.keys`` (clients 3.3 and later): keys count as null.

    Returns:
        The columns of ``RECORDS`` (key binary; cluster_id where the inputs have it) and
        placed_partition int, placement string: `explicit`, by the record's own partition; `key`;
        `null_key`, anywhere by ``null_key_shares``, hence a null placed_partition; `invalid`, a
        partition of its own that the topic has not (the producer throws); `no_topic`, the topic is
        not in ``topics`` or has no partitions.

    Raises:
        SchemaError: columns are missing or of the wrong type, or only one table has cluster_id.
    """
    placements = placed_conforming(records, topics, ignore_keys=ignore_keys)
    return to_result(placements, "place_records", has_cluster_id=has_cluster_id(records))


def placed_conforming(records: DataFrame, topics: DataFrame, *, ignore_keys: bool) -> DataFrame:
    """Place records as ``place_records`` does; a missing cluster_id is an empty string."""
    records_table = _records_table(records)
    form = topics_table(topics)
    check_same_clusters([(records_table, records), (form, topics)])
    sizes = fold_topics(conform(topics, form), bad_row="false")
    sizes = sizes.where("num_partitions > 0").select(CLUSTER_ID, "topic", "num_partitions")
    sized = _conform_records(records).join(sizes, on=[CLUSTER_ID, "topic"], how="left")
    size, own = F.col("num_partitions"), F.col("partition")
    has_key = F.lit(False) if ignore_keys else F.col("key").isNotNull()
    by_key = partition_for_key(F.when(own.isNull() & has_key, F.col("key")), size)
    placement = (
        F.when(size.isNull(), "no_topic")
        .when((own < 0) | (own >= size), "invalid")
        .when(own.isNotNull(), "explicit")
        .when(has_key, "key")
        .otherwise("null_key")
    )
    valid_own = F.when((own >= 0) & (own < size), own.cast("int"))
    return sized.select(
        *RECORDS.columns.names,
        # The hash comes first: see murmur2 on what Spark shares in a coalesce.
        F.coalesce(by_key, valid_own).alias("placed_partition"),
        placement.alias("placement"),
    )


def expected_moved_share(num_partitions: Column, new_num_partitions: Column) -> Column:
    """Return the share of evenly spread keys that move when a topic is resized.

    A key stays where its hash has the same remainder for both numbers p and q: of lcm(p, q)
    remainders these are min(p, q). So the share is 1 - gcd(p, q) / max(p, q): 1 - 1/c for q = c*p.

    Args:
        num_partitions: int before, 1 or more.
        new_num_partitions: int after, 1 or more.

    Returns:
        double; null where a number is null or less than 1.

    Example:
        >>> sizes = spark.createDataFrame([(6, 12), (6, 7), (6, 9), (6, 6)], "p INT, q INT")
        >>> share = expected_moved_share(F.col("p"), F.col("q"))
        >>> sizes.select("p", "q", F.round(share, 4).alias("share")).show()
        +---+---+------+
        |  p|  q| share|
        +---+---+------+
        |  6| 12|   0.5|
        |  6|  7|0.8571|
        |  6|  9|0.6667|
        |  6|  6|   0.0|
        +---+---+------+
        <BLANKLINE>
    """
    p, q = num_partitions.cast("bigint"), new_num_partitions.cast("bigint")
    pair = F.struct(F.greatest(p, q).alias("a"), F.least(p, q).alias("b"))
    gcd = F.aggregate(
        F.sequence(F.lit(1), F.lit(_EUCLID_STEPS)),
        pair,
        lambda s, _: F.when(s["b"] == 0, s).otherwise(
            F.struct(s["b"].alias("a"), (s["a"] % F.when(s["b"] != 0, s["b"])).alias("b"))
        ),
        lambda s: s["a"],
    )
    return F.when((p >= 1) & (q >= 1), 1 - gcd / F.greatest(p, q))


def moved_keys(records: DataFrame, growth: DataFrame) -> DataFrame:
    """Count the keys, and their records, that change their partition when topics are resized.

    Args:
        records: ``RECORDS``; records without a key or with a partition of their own do not count.
        growth: ``GROWTH``: cluster_id string?, topic string, num_partitions int,
            new_num_partitions int. Several rows a topic are several questions.

    Returns:
        One row per row of ``growth``: its columns (cluster_id where the inputs have it), key_count
        bigint (different keys), moved_key_count bigint, moved_share double (of the keys; null
        without keys), record_count bigint, moved_record_count bigint, moved_record_share double,
        expected_share double (``expected_moved_share``).

    Raises:
        SchemaError: columns are missing or of the wrong type, or only one table has cluster_id.
    """
    check_same_clusters([(_records_table(records), records), (GROWTH, growth)])
    topic = [CLUSTER_ID, "topic"]
    keys = (
        _conform_records(records)
        .where("key IS NOT NULL AND partition IS NULL")
        .groupBy(*topic, "key")
        .agg(F.sum("record_count").alias("records"))
    )
    sizes = conform(growth, GROWTH).distinct()
    before, after = F.col("num_partitions"), F.col("new_num_partitions")
    hashed = keys.withColumn("hash", murmur2(F.col("key")).bitwiseAND(F.lit(0x7FFF_FFFF)))
    is_moved = modulo(F.col("hash"), before) != modulo(F.col("hash"), after)
    record_counts = (
        hashed.join(F.broadcast(sizes), on=topic, how="inner")
        .groupBy(*topic, before, after)
        .agg(
            F.count("*").alias("key_count"),
            F.count_if(is_moved).alias("moved_key_count"),
            F.sum("records").alias("record_count"),
            F.sum(F.when(is_moved, F.col("records")).otherwise(0)).alias("moved_record_count"),
        )
    )
    counts = ["key_count", "moved_key_count", "record_count", "moved_record_count"]
    every = sizes.join(
        record_counts, on=[*topic, "num_partitions", "new_num_partitions"], how="left"
    )
    share = F.try_divide(F.col("moved_key_count").cast("double"), F.col("key_count"))
    record_share = F.try_divide(F.col("moved_record_count").cast("double"), F.col("record_count"))
    result = every.fillna(0, counts).withColumns(
        {
            "moved_share": share,
            "moved_record_share": record_share,
            "expected_share": expected_moved_share(before, after),
        }
    )
    return to_result(result, "moved_keys", has_cluster_id=has_cluster_id(growth))


def _records_table(records: DataFrame) -> Table:
    """Return the table with ``key`` of the type that the frame has, where that is a key's type."""
    is_text = any(f.name == "key" and isinstance(f.dataType, StringType) for f in records.schema)
    return _RECORDS_OF_TEXT if is_text else RECORDS


def _conform_records(records: DataFrame) -> DataFrame:
    """Return the columns of ``RECORDS``: keys as bytes, counts never null."""
    conforming = conform(records, _records_table(records))
    count = F.coalesce("record_count", F.lit(1).cast("bigint"))
    return conforming.withColumns({"key": F.col("key").cast("binary"), "record_count": count})
