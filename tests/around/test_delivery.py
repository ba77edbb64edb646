import json

import pytest
from pyspark.sql import SparkSession

from kassign_spark.errors import SchemaError
from kassign_spark.plans.delivery import deliver

ASSIGNMENT = "group_id STRING, member_id STRING, topic STRING, partition INT"


def test_each_member_gets_its_own_part_in_every_form(spark: SparkSession) -> None:
    assignment = spark.createDataFrame(
        [
            ("g", "m1", "t1", 10),
            ("g", "m1", "t1", 9),
            ("g", "m1", "t0", 2),
            ("g", "m1", "t1", 9),
            ("g", "m0", "t0", 0),
            ("other", "m0", 'a "quoted" 組', 1),
        ],
        ASSIGNMENT,
    ).repartition(3)
    members = spark.createDataFrame(
        [("g", "m0"), ("g", "m1"), ("g", "idle"), ("other", "m0")],
        "group_id STRING, member_id STRING",
    )
    got = deliver(assignment, members)
    assert [f.simpleString() for f in got.schema] == [
        "group_id:string",
        "member_id:string",
        "partition_count:int",
        "partitions:array<struct<topic:string,partition:int>>",
        "topic_partitions:string",
        "spark_assign:string",
    ]
    rows = {tuple(r)[:2]: r for r in got.collect()}
    m1 = rows["g", "m1"]
    assert m1.partition_count == 3
    assert [tuple(p) for p in m1.partitions] == [("t0", 2), ("t1", 9), ("t1", 10)]
    assert m1.topic_partitions == (
        '[{"topic":"t0","partition":2},{"topic":"t1","partition":9},{"topic":"t1","partition":10}]'
    )
    assert m1.spark_assign == '{"t0":[2],"t1":[9,10]}'
    assert rows["g", "m0"].spark_assign == '{"t0":[0]}'
    idle = rows["g", "idle"]
    assert tuple(idle)[2:] == (0, [], "[]", "{}")
    assert json.loads(rows["other", "m0"].spark_assign) == {'a "quoted" 組': [1]}
    assert {tuple(r)[:2] for r in deliver(assignment).collect()} == set(rows) - {("g", "idle")}


def test_clusters_stay_apart(spark: SparkSession) -> None:
    assignment = spark.createDataFrame(
        [("a", "g", "m", "t", 0), ("b", "g", "m", "t", 1)], f"cluster_id STRING, {ASSIGNMENT}"
    )
    got = deliver(assignment).collect()
    assert {r.cluster_id: r.spark_assign for r in got} == {"a": '{"t":[0]}', "b": '{"t":[1]}'}
    with pytest.raises(SchemaError, match="cluster_id"):
        deliver(assignment, assignment.select("group_id", "member_id"))


def test_spark_takes_the_json_as_its_assign_option(spark: SparkSession) -> None:
    """Parsed by Spark's own rule for it; the Kafka source itself is not on the class path."""
    assignment = spark.createDataFrame([("g", "m", "t.a", p) for p in (3, 0)], ASSIGNMENT)
    [row] = deliver(assignment).collect()
    parsed = spark.range(1).selectExpr(f"from_json('{row.spark_assign}', 'map<string,array<int>>')")
    assert parsed.collect()[0][0] == {"t.a": [0, 3]}
