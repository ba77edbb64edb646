"""The constrained pass equals Kafka's own, partition by partition."""

import pytest
from chispa import assert_df_equality
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from kassign_spark import Settings, assign
from kassign_spark.assignors.task_groups import BYTES_OF_A_PARTITION
from kassign_spark.groups.group_names import PIECE
from tests.kafka import oracle
from tests.kafka.oracle import Assigned, Group, Member
from tests.kafka.worked_examples import EXAMPLES
from tests.random_claims import claiming_groups

NAMES = ("sticky", "cooperative-sticky")
IN_TASKS = Settings(engine="task", batches=3)
IN_SLICES = Settings(engine="rounds", bytes_per_task=3 * BYTES_OF_A_PARTITION)
IN_BOTH = Settings(bytes_per_task=40 * BYTES_OF_A_PARTITION)
GROUPS = claiming_groups(800, seed=20261121)


@pytest.fixture(scope="module")
def tables(spark: SparkSession) -> oracle.Tables:
    return oracle.to_tables(spark, GROUPS)


@pytest.fixture(scope="module")
def kafkas(spark: SparkSession) -> list[Assigned | str]:
    return [oracle.as_sets(answer) for answer in oracle.assign(spark, GROUPS)]


def test_worked_examples(spark: SparkSession) -> None:
    examples = [
        example
        for example in EXAMPLES
        if example.group.assignor in NAMES
        and len({tuple(m.topics) for m in example.group.members}) == 1
    ]
    groups = [example.group for example in examples]
    assigned = oracle.from_table(assign(*oracle.to_tables(spark, groups)), groups)
    assert len(examples) > 5
    assert assigned == [oracle.as_sets(example.expected) for example in examples]


@pytest.mark.parametrize(
    "settings",
    [IN_TASKS, *(pytest.param(other, marks=pytest.mark.slow) for other in (IN_SLICES, IN_BOTH))],
)
def test_random_groups_equal_the_client(
    kafkas: list[Assigned | str], tables: oracle.Tables, settings: Settings
) -> None:
    assigned = oracle.from_table(assign(*tables, settings=settings), GROUPS)
    differing = [
        (index, group, answer, result)
        for index, (group, answer, result) in enumerate(zip(GROUPS, kafkas, assigned, strict=True))
        if answer != result
    ]
    assert len(differing) == 0, (len(differing), differing[0])


@pytest.mark.parametrize("work_of_one_task", [20_000, 1])
def test_without_owned_all_is_handed_out(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, work_of_one_task: int
) -> None:
    """In one task, and in several."""
    monkeypatch.setattr("kassign_spark.groups.rows.WORK_OF_ONE_TASK", work_of_one_task)
    fresh = [
        Group(g.topics, [Member(m.member_id, m.topics) for m in g.members], "sticky")
        for g in GROUPS[:100]
    ]
    some = oracle.to_tables(spark, fresh)
    plan = assign(some.members, some.topics, assignor="sticky")
    assigned = oracle.from_table(plan, fresh)
    assert assigned == [oracle.as_sets(answer) for answer in oracle.assign(spark, fresh)]


def test_a_topic_of_more_partitions_than_a_list_has(spark: SparkSession) -> None:
    """Tasks hand over lists of ``named.PIECE`` partitions at most."""
    owned = [(topic, p) for topic in ("a", "b") for p in (0, PIECE - 1, PIECE, PIECE + 5)]
    sizes = {"a": PIECE + 10, "b": PIECE + 20}
    members = [Member("m", ["a", "b"], owned, 1), Member("n", ["a", "b"], [], 1)]
    groups = [Group(sizes, members, "sticky")]
    [result] = oracle.from_table(assign(*oracle.to_tables(spark, groups)), groups)
    assert not isinstance(result, str)
    everything = [(topic, p) for topic, size in sizes.items() for p in range(size)]
    assert sorted(tp for tps in result.values() for tp in tps) == everything
    assert {len(tps) for tps in result.values()} == {PIECE + 15}
    assert set(owned) <= set(result["m"])


@pytest.mark.slow
@pytest.mark.parametrize("settings", [IN_TASKS, IN_SLICES])
def test_the_result_does_not_depend_on_how_the_input_lies(
    tables: oracle.Tables, settings: Settings
) -> None:
    shuffled = assign(
        tables.members.repartition(7).orderBy(F.reverse("member_id")),
        tables.topics.repartition(3, "num_partitions"),
        tables.owned.repartition(5, "partition").orderBy(F.desc("member_id")),
        settings=settings,
    )
    assert_df_equality(assign(*tables, settings=settings), shuffled, ignore_row_order=True)
