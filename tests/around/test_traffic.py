import pytest
from pyspark.sql import DataFrame, SparkSession

from kassign_spark.errors import InputError, SchemaError
from kassign_spark.producer.null_keys import null_key_shares
from kassign_spark.producer.traffic import member_traffic, partition_traffic

RECORDS = "topic STRING, key STRING, partition INT, record_count INT, byte_count BIGINT"


def topics_of(spark: SparkSession, **sizes: int) -> DataFrame:
    return spark.createDataFrame(list(sizes.items()), "topic STRING, num_partitions INT")


def test_traffic_of_keys_own_partitions_and_null_keys(spark: SparkSession) -> None:
    records = spark.createDataFrame(
        [
            ("t", "21", None, 10, 1000),  # to 0 of 12
            ("t", "foobar", None, None, 7),  # to 6, one record
            ("t", "foobar", 6, 2, None),
            ("t", None, None, 12, 2400),
            ("t", "21", 99, 1000, 1000),  # invalid
            ("none", "21", None, 1000, 1000),
        ],
        RECORDS,
    )
    topics = topics_of(spark, t=12, idle=1)
    traffic = partition_traffic(records, topics)
    assert traffic.columns == ["topic", "partition", "record_count", "byte_count"]
    got = {(r.topic, r.partition): (r.record_count, r.byte_count) for r in traffic.collect()}
    assert got == {
        **{("t", p): (pytest.approx(1), pytest.approx(200)) for p in range(12)},
        ("t", 0): (pytest.approx(11), pytest.approx(1200)),
        ("t", 6): (pytest.approx(4), pytest.approx(207)),
        ("idle", 0): (0, 0),
    }
    partitions = spark.createDataFrame(
        [("t", p, 1 if p < 2 else None) for p in range(12)],
        "topic STRING, partition INT, leader INT",
    )
    shares = null_key_shares(partitions, "2.3.1")
    spread = partition_traffic(records, topics, shares)
    got = {(r.topic, r.partition): r.record_count for r in spread.collect()}
    assert got == {
        **{("t", p): 0 for p in range(12)},
        ("t", 0): 16,
        ("t", 1): 6,
        ("t", 6): 3,
        ("idle", 0): 0,
    }
    ignored = partition_traffic(records, topics, ignore_keys=True)
    assert sum(r.record_count for r in ignored.collect()) == pytest.approx(25)
    [sixth] = [r.record_count for r in ignored.collect() if r.partition == 6]
    assert sixth == pytest.approx(2 + 23 / 12)


def test_members_records_and_bytes_and_who_is_hot(spark: SparkSession) -> None:
    traffic = spark.createDataFrame(
        [("t", 0, 90.0, 9.0), ("t", 1, 6.0, None), ("t", 2, 4.0, 1.0)],
        "topic STRING, partition INT, record_count DOUBLE, byte_count DOUBLE",
    )
    assignment = spark.createDataFrame(
        [
            ("g", "m0", "t", 0),
            ("g", "m1", "t", 1),
            ("g", "m1", "t", 2),
            ("quiet", "m0", "unknown", 0),
        ],
        "group_id STRING, member_id STRING, topic STRING, partition INT",
    )
    got = member_traffic(traffic, assignment, hot_ratio=1.8)
    assert got.columns == [
        *("group_id", "member_id", "partition_count", "record_count", "byte_count"),
        *("record_share", "load_ratio", "is_hot"),
    ]
    rows = {tuple(r)[:2]: tuple(r)[2:] for r in got.collect()}
    assert rows == {
        ("g", "m0"): (1, 90.0, 9.0, 0.9, 1.8, True),
        ("g", "m1"): (2, 10.0, 1.0, 0.1, 0.2, False),
        ("quiet", "m0"): (1, 0.0, 0.0, None, None, False),
    }
    members = spark.createDataFrame(
        [("g", m, ["t"]) for m in ("m0", "m1", "idle")],
        "group_id STRING, member_id STRING, topics ARRAY<STRING>",
    )
    with_idle = member_traffic(traffic, assignment, members)
    rows = {tuple(r)[:2]: tuple(r)[2:] for r in with_idle.collect()}
    assert rows == {
        ("g", "m0"): (1, 90.0, 9.0, 0.9, pytest.approx(2.7), True),
        ("g", "m1"): (2, 10.0, 1.0, 0.1, pytest.approx(0.3), False),
        ("g", "idle"): (0, 0.0, 0.0, 0.0, 0.0, False),
    }


def test_clusters_stay_apart(spark: SparkSession) -> None:
    topics = spark.createDataFrame(
        [("a", "t", 1), ("b", "t", 2)], "cluster_id STRING, topic STRING, num_partitions INT"
    )
    records = spark.createDataFrame(
        [("a", "t", "k"), ("b", "t", None)], "cluster_id STRING, topic STRING, key STRING"
    )
    traffic = partition_traffic(records, topics)
    got = {tuple(r)[:3]: r.record_count for r in traffic.collect()}
    assert got == {("a", "t", 0): 1.0, ("b", "t", 0): 0.5, ("b", "t", 1): 0.5}
    assignment = spark.createDataFrame(
        [("a", "g", "m", "t", 0), ("b", "g", "m", "t", 1)],
        "cluster_id STRING, group_id STRING, member_id STRING, topic STRING, partition INT",
    )
    got = {tuple(r)[:3]: r.record_count for r in member_traffic(traffic, assignment).collect()}
    assert got == {("a", "g", "m"): 1.0, ("b", "g", "m"): 0.5}


def test_bad_arguments_are_one_clear_line(spark: SparkSession) -> None:
    assignment = spark.createDataFrame(
        [("g", "m", "t", 0)], "group_id STRING, member_id STRING, topic STRING, partition INT"
    )
    with pytest.raises(SchemaError, match="table traffic: column record_count"):
        member_traffic(assignment.select("topic", "partition"), assignment)
    with pytest.raises(InputError, match="hot_ratio is -1"):
        member_traffic(assignment, assignment, hot_ratio=-1)
