"""How many tasks the groups of a call are spread over, by what one look at them finds."""

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from kassign_spark import Settings, assign
from kassign_spark.groups import input_counts, inspection
from kassign_spark.groups.eligible import Eligible
from kassign_spark.groups.inspection import inspect_inputs
from kassign_spark.groups.rows import fold
from kassign_spark.groups.task_sizes import table_bytes
from kassign_spark.inputs.input_tables import conform_inputs
from kassign_spark.spark.sessions import estimated_bytes
from tests import builders
from tests.quick_frames import takes_arrow

_TOPICS = {"t": 30_000}


def _eligible(spark: SparkSession, groups: int) -> Eligible:
    members = [
        {"group_id": f"g{group}", "member_id": f"C{member}", "topics": ["t"]}
        for group in range(groups)
        for member in range(3)
    ]
    tables = builders.members(spark, members), builders.topics(spark, _TOPICS), None
    return inspect_inputs(conform_inputs(*tables), None).eligible


@takes_arrow
def test_a_single_group_is_read_by_the_task_that_answers_it(spark: SparkSession) -> None:
    eligible = _eligible(spark, 1)
    assert (eligible.tasks, eligible.batches) == (2, 1)


def test_two_groups_are_spread(spark: SparkSession) -> None:
    eligible = _eligible(spark, 2)
    assert (eligible.tasks, eligible.batches) == (2, 2)


def test_a_single_group_among_much_that_is_read_is_shuffled(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All tasks look for its rows, as what is read may be a whole fleet's."""
    monkeypatch.setattr(inspection, "ONE_GROUP_BYTES", 0)
    assert _eligible(spark, 1).batches == 2


def test_a_single_group_has_one_answer_for_any_number_of_tasks(spark: SparkSession) -> None:
    members = builders.members(
        spark,
        [{"group_id": "g", "member_id": f"C{member}", "topics": ["t"]} for member in range(7)],
    )
    topics = builders.topics(spark, _TOPICS)
    owned = assign(members, topics, assignor="sticky")
    fewer = members.where("member_id != 'C3'")
    one, three = (
        assign(fewer, topics, owned, assignor="sticky", settings=settings)
        for settings in (Settings(), Settings(batches=3))
    )
    assert one.count() == _TOPICS["t"]
    assert one.exceptAll(three).isEmpty()


@takes_arrow
def test_one_task_folds_the_members_as_several_do(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    members = builders.members(
        spark,
        [
            {
                "group_id": f"g{group}",
                "member_id": f"C{member}",
                "topics": ["t", f"t{group % 3}", f"t{member % 2}"],
            }
            for group in range(40)
            for member in range(5)
        ],
    )
    # Read, as what Python holds may be of any size to Spark.
    members.repartition(3).write.parquet(str(tmp_path / "members"))
    members = spark.read.parquet(str(tmp_path / "members"))
    topics = builders.topics(spark, {"t": 7, "t0": 2, "t1": 3, "t2": 4})
    owned = assign(members, topics, assignor="sticky")
    fewer = members.where("member_id != 'C3'")
    monkeypatch.setattr(input_counts, "ONE_TASK_BYTES", 0)
    answers, shuffles, broadcasts, scans = [], [], [], []
    for most in (0, 1 << 23):
        monkeypatch.setattr(input_counts, "ONE_FOLD_BYTES", most)
        eligible = inspect_inputs(conform_inputs(fewer, topics, owned), None).eligible
        assert eligible.one_folds == (most > 0)
        folded: Any = fold(eligible, claims=False)
        plan = str(folded._jdf.queryExecution().executedPlan())
        shuffles.append(plan.count("Exchange hashpartitioning"))
        broadcasts.append(plan.count("BroadcastExchange"))
        scans.append(plan.count("FileScan"))
        answers.append(assign(fewer, topics, owned, assignor="sticky"))
    assert shuffles[1] < shuffles[0]  # by one task, none for the subscriptions
    assert broadcasts == [1, 0]
    assert scans == [3, 2]  # of members: for their own rows, and for those of lists and topics
    several, one = answers
    assert several.count() == 40 * 7 + sum({0: 5, 1: 5, 2: 9}[group % 3] for group in range(40))
    assert one.exceptAll(several).isEmpty()


@takes_arrow
def test_absent_columns_of_clients_make_no_table_larger(spark: SparkSession) -> None:
    rows = [{"group_id": "g", "member_id": f"C{n}", "topics": ["t"]} for n in range(100)]
    tables = builders.members(spark, rows), builders.topics(spark, _TOPICS), None
    members = conform_inputs(*tables).members
    without = members.drop("client", "is_leader", "client_id", "subscription")
    assert table_bytes(members) == estimated_bytes(without) < estimated_bytes(members)
