"""Range and RoundRobin equal Kafka's own, partition by partition."""

import pytest
from chispa import assert_df_equality
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from kassign_spark import Settings, assign
from tests.kafka import oracle
from tests.kafka.worked_examples import EXAMPLES
from tests.random_groups import random_groups

NAMES = ("range", "roundrobin")
GROUPS = random_groups(600, seed=20261121, assignors=NAMES)


@pytest.fixture(scope="module")
def tables(spark: SparkSession) -> oracle.Tables:
    return oracle.to_tables(spark, GROUPS)


def test_worked_examples(spark: SparkSession) -> None:
    examples = [example for example in EXAMPLES if example.group.assignor in NAMES]
    groups = [example.group for example in examples]
    assigned = oracle.from_table(assign(*oracle.to_tables(spark, groups)), groups)
    result = {
        (example.name, example.group.assignor): answer
        for example, answer in zip(examples, assigned, strict=True)
    }
    assert len(examples) > 15
    assert result == {(e.name, e.group.assignor): oracle.as_sets(e.expected) for e in examples}


def test_random_groups_equal_the_client(spark: SparkSession, tables: oracle.Tables) -> None:
    answers = oracle.assign(spark, GROUPS)
    assigned = oracle.from_table(assign(*tables), GROUPS)
    differing = [
        (index, group, answer, result)
        for index, (group, answer, result) in enumerate(zip(GROUPS, answers, assigned, strict=True))
        if oracle.as_sets(answer) != result
    ]
    assert differing == []


def test_groups_whose_members_subscribe_alike_equal_the_client(spark: SparkSession) -> None:
    """Range deals their partitions; with others beside them it ranks members by topic."""
    alike = [g for g in GROUPS if len({tuple(m.topics) for m in g.members}) == 1]
    tables = oracle.to_tables(spark, alike)
    assigned = assign(
        tables.members, tables.topics, assignor="range", settings=Settings(topics_per_task=1)
    )
    answers = oracle.assign(spark, alike, assignor="range")
    assert len(alike) > 100
    assert oracle.from_table(assigned, alike) == [oracle.as_sets(answer) for answer in answers]


def test_random_groups_hold_the_hard_cases() -> None:
    members = [m for group in GROUPS for m in group.members]
    subscriptions = [{tuple(m.topics) for m in group.members} for group in GROUPS]
    by_unit = [sorted((m.member_id for m in g.members), key=_utf_16) for g in GROUPS]
    assert {g.assignor for g in GROUPS} == set(NAMES)
    assert any(len(s) == 1 for s in subscriptions)
    assert any(len(s) > 1 for s in subscriptions)
    assert any(len(g.members) == 1 for g in GROUPS)
    assert any(len(g.members) > sum(map(int, g.topics.values())) for g in GROUPS)  # type: ignore[arg-type]
    assert any(ids != sorted(ids) for ids in by_unit)
    assert any("not.in.metadata" in m.topics for m in members)
    assert any(len(set(m.topics)) < len(m.topics) for m in members)
    assert any(not m.topics for m in members)
    static = [{m.group_instance_id is not None for m in g.members} for g in GROUPS]
    assert {True, False} in static


@pytest.mark.slow
def test_the_result_does_not_depend_on_how_the_input_lies(tables: oracle.Tables) -> None:
    expected = assign(*tables)
    shuffled = assign(
        tables.members.repartition(7).orderBy(F.reverse("member_id")),
        tables.topics.repartition(3, "num_partitions"),
        tables.owned,
        settings=Settings(topics_per_task=1),
    )
    assert_df_equality(expected, shuffled, ignore_row_order=True)


@pytest.mark.slow
def test_topics_may_come_one_row_a_partition(tables: oracle.Tables) -> None:
    by_partition = tables.topics.select(
        "cluster_id",
        "topic",
        F.explode(F.sequence(F.lit(0), F.col("num_partitions") - 1)).alias("partition"),
    )
    assert_df_equality(
        assign(tables.members, tables.topics),
        assign(tables.members, by_partition),
        ignore_row_order=True,
    )


def test_one_assignor_for_all_overrides_each_groups_own(
    spark: SparkSession, tables: oracle.Tables
) -> None:
    some = GROUPS[:50]
    tables = oracle.to_tables(spark, some)
    assigned = oracle.from_table(assign(*tables, assignor="range"), some)
    answers = oracle.assign(spark, some, assignor="range")
    assert assigned == [oracle.as_sets(answer) for answer in answers]


def _utf_16(text: str) -> bytes:
    return text.encode("utf-16-be", "surrogatepass")
