"""A fleet's rebalances, round by round, with the client's own answers."""

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from kassign_spark.client.cooperative_rounds import follow_rounds
from kassign_spark.errors import InputError
from kassign_spark.plans.predict import predict, predict_rebalance
from tests.kafka import oracle
from tests.kafka.failing_groups import failing_group
from tests.prediction.prediction_states import to_state
from tests.random_states import random_states

GROUPS = [
    failing_group("never-settles"),
    *random_states(60, seed=20261125, assignors=["cooperative-sticky"]),
    *random_states(30, seed=20261126, assignors=["sticky"]),
    *random_states(10, seed=20261127, assignors=["range"]),
]


def test_steps_are_those_of_every_groups_protocol(spark: SparkSession) -> None:
    tables = oracle.to_tables(spark, GROUPS)
    steps, verdicts = predict_rebalance(*tables)
    assert steps.columns == [
        "cluster_id",
        "group_id",
        "round",
        "member_id",
        "topic",
        "partition",
        "action",
    ]
    result: dict[int, set[tuple[object, ...]]] = {index: set() for index in range(len(GROUPS))}
    for row in steps.collect():
        result[int(row.group_id[1:])].add(tuple(row)[2:])
    verdict_of = {int(row.group_id[1:]): (row.verdict, row.detail) for row in verdicts.collect()}
    assert {verdict for verdict, _ in verdict_of.values()} >= {"never_settles", "throws", "ok"}
    answers = oracle.from_table(predict(*tables).assignment, GROUPS)
    for index, group in enumerate(GROUPS):
        ids = [m.member_id for m in group.members]
        if group.assignor == "cooperative-sticky":
            rebalance = follow_rounds(to_state(group))
            expected = {
                (s.round, ids[s.member], *tp, s.action)
                for s in rebalance.steps
                for tp in s.partitions
            }
            assert verdict_of[index] == (rebalance.verdict, rebalance.detail)
        else:
            owned = {(m.member_id, *tp) for m in group.members for tp in m.owned}
            expected = {(1, *row, "revoked") for row in owned}
            expected |= {(1, m, *tp, "assigned") for m, tps in answers[index].items() for tp in tps}
        assert result[index] == expected, (index, group)


def test_under_eager_cooperative_sticky_knows_nothing(spark: SparkSession) -> None:
    groups = GROUPS[2:20]
    tables = oracle.to_tables(spark, groups)
    fresh = predict(tables.members.withColumn("generation", F.lit(None).cast("int")), tables.topics)
    steps, _ = predict_rebalance(*tables, protocol="eager")
    received = steps.where("action = 'assigned' and round = 1").drop("round", "action")
    assert oracle.from_table(received, groups) == oracle.from_table(fresh.assignment, groups)
    assert steps.where("round > 1 or action not in ('assigned', 'revoked')").count() == 0


def test_only_one_assignor_is_cooperative(spark: SparkSession) -> None:
    tables = oracle.to_tables(spark, GROUPS[-2:])
    with pytest.raises(InputError, match="only cooperative-sticky knows"):
        predict_rebalance(*tables, protocol="cooperative")
    with pytest.raises(InputError, match="unknown assignor 'best'"):
        predict_rebalance(*tables, assignor="best")
