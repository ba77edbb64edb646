"""Ten thousand groups in one call."""

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from kassign_spark import advise, bottlenecks, eligibility
from tests.graph.fleets import MEMBERS, PARTITIONS, TOPICS, fleet

pytestmark = pytest.mark.slow
GROUPS = 10_000


def test_ten_thousand_groups(spark: SparkSession) -> None:
    members, topics, owned = fleet(spark, GROUPS)
    graph = eligibility(members, topics)
    by_kind = graph.vertices.groupBy("kind").agg(
        F.count_distinct("id").alias("ids"), F.count("*").alias("rows"), F.sum("weight").alias("of")
    )
    result = {row.kind: row for row in by_kind.collect()}
    assert result["member"].ids == result["member"].rows == GROUPS * (MEMBERS - 1)
    assert result["class"].ids == result["class"].rows
    assert result["class"]["of"] == GROUPS * TOPICS * PARTITIONS
    proofs = bottlenecks(members, topics).groupBy("group_id").agg(F.max("least_max").alias("most"))
    bounds = {row.most: row["count"] for row in proofs.groupBy("most").count().collect()}
    assert sum(bounds.values()) == GROUPS
    assert min(bounds) == -(-TOPICS * PARTITIONS // (MEMBERS - 1))
    advice = advise(members, topics, owned)
    helped, groups = advice.agg(
        F.count_if(F.col("gain") > 0), F.count_distinct("group_id")
    ).collect()[0]
    assert helped > 0
    assert groups > 0.9 * GROUPS  # a restart moves partitions in nearly all
