"""The same rebalance, however the rows are cut up and ordered."""

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from kassign_spark.plans.rebalance import rebalance
from tests.kafka.oracle import Group, Member, to_tables
from tests.random_claims import claiming_groups

_MIXED = Group(
    {"t": 7, "u": 5},
    [
        Member("a", ["t"], [("t", p) for p in range(7)], 3),
        Member("b", ["t", "u"], [("u", p) for p in range(5)], 3),
        Member("c", ["u"]),
    ],
)
_GROUPS = [
    Group(group.topics, group.members, assignor)
    for group in (*claiming_groups(6, seed=21), _MIXED)
    for assignor in ("cooperative-sticky", "sticky")
]


def _shuffled(frame: DataFrame, salt: str) -> DataFrame:
    columns = [c for c in frame.columns if c not in ("topics", "replica_racks")]
    key = F.xxhash64(F.lit(salt), *columns)
    return frame.repartition(5, key).sortWithinPartitions(key)


def test_order_and_partitions_of_the_input_do_not_matter(spark: SparkSession) -> None:
    tables = to_tables(spark, _GROUPS)
    once = sorted(map(tuple, rebalance(*tables).collect()))
    again = sorted(map(tuple, rebalance(*(_shuffled(t, "7") for t in tables)).collect()))
    assert once == again
    assert {row[2] for row in once} == {1, 2}
