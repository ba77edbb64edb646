"""Numbers at and beyond every limit, tables without rows, columns that differ in case alone."""

from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from kassign_spark import assign, deliver, diff, rebalance, validate, violations
from kassign_spark.errors import InputError, SchemaError
from kassign_spark.groups.inspection import inspect_inputs
from kassign_spark.inputs.input_tables import conform_inputs
from kassign_spark.limits import PARTITIONS_OF_A_TOPIC
from tests import builders

_MOST = 2**63 - 1
_MEMBER = {"group_id": "g", "member_id": "C0", "topics": ["t"], "assignor": "sticky"}
_OWNED = {"group_id": "g", "member_id": "C0", "topic": "t", "partition": _MOST}


@pytest.mark.parametrize("column", ["partition", "num_partitions"])
def test_the_greatest_number_is_refused_and_told(spark: SparkSession, column: str) -> None:
    members = builders.members(spark, [_MEMBER])
    topics = builders.topics(spark, [{"topic": "t", column: _MOST}], wide=True)
    owned = builders.owned(spark, [_OWNED], wide=True)
    with pytest.raises(InputError, match=f"column {column}: {_MOST}"):
        assign(members, topics)
    problems = {row.problem for row in validate(members, topics, owned).collect()}
    assert f"{column}_out_of_range" in problems
    assert [(r.rule, r.partition) for r in violations(owned, members, topics).collect()] == [
        ("unknown_partition", None)
    ]


def test_partitions_beyond_32_bits_are_no_numbers(spark: SparkSession) -> None:
    owned = builders.owned(spark, [_OWNED], wide=True)
    assert [row.partition for row in diff(owned, owned).collect()] == [None]
    assert [row.partition_count for row in deliver(owned).collect()] == [0]


def test_a_large_topic_that_nobody_reads_makes_no_tasks(spark: SparkSession) -> None:
    names = [f"t{i}" for i in range(5)]
    rows = [{**_MEMBER, "group_id": f"g{i}", "topics": names} for i in range(60)]
    sizes = dict.fromkeys(names, 3)
    members = builders.members(spark, rows)
    result = [
        inspect_inputs(
            conform_inputs(members, builders.topics(spark, topics), None), None
        ).eligible.tasks
        for topics in (sizes, {**sizes, "read-by-nobody": PARTITIONS_OF_A_TOPIC})
    ]
    assert result[0] == 1
    assert result[1] <= 6


@pytest.mark.parametrize("call", [assign, rebalance])
def test_no_members_no_rows(spark: SparkSession, call: Callable[..., DataFrame]) -> None:
    owned = builders.owned(spark, [{**_OWNED, "partition": 0}])
    result = call(builders.members(spark, []), builders.topics(spark, {"t": 1}), owned)
    assert result.collect() == []


def test_columns_that_differ_in_case_alone(spark: SparkSession) -> None:
    topics: Any = builders.topics(spark, {"t": 1}).withColumnRenamed("topic", "name")
    both = topics.select(F.col("name").alias("topic"), "num_partitions", F.lit("x").alias("Topic"))
    with pytest.raises(
        SchemaError, match=r"^table topics: columns topic, Topic are the same to Spark"
    ):
        assign(builders.members(spark, [_MEMBER]), both)


def test_names_with_line_ends_stay_in_one_line(spark: SparkSession) -> None:
    members = builders.members(spark, [{**_MEMBER, "group_id": "a\nb\u2028", "generation": -7}])
    with pytest.raises(InputError) as error:
        assign(members, builders.topics(spark, {"t": 1}))
    assert r'group_id="a\nb\u2028"' in str(error.value)
