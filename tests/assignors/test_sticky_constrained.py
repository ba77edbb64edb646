"""The constrained pass equals Kafka's own, partition by partition."""

import random

import pytest
from chispa import assert_df_equality
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from kassign_spark import Settings, assign
from tests.kafka import oracle
from tests.kafka.oracle import Group, Member
from tests.kafka.worked_examples import EXAMPLES
from tests.random_groups import random_member_ids, random_topics

NAMES = ("sticky", "cooperative-sticky")
IN_TASKS, IN_SLICES = Settings(batches=3), Settings(partitions_per_slice=10)
IN_BOTH = Settings(partitions_per_slice=40)
MEMBER_COUNTS = (1, 2, 3, 5, 8, 11, 12, 13, 24, 25, 48, 49)


def claiming_groups(count: int, *, seed: int) -> list[Group]:
    rng = random.Random(seed)
    return [_claiming_group(rng, rng.choice(NAMES)) for _ in range(count)]


def _claiming_group(rng: random.Random, assignor: str) -> Group:
    topics = random_topics(rng)
    subscription = rng.sample(list(topics), rng.randint(1, len(topics)))
    count = rng.choice(MEMBER_COUNTS)
    ids = random_member_ids(rng, count)
    partitions = [(topic, p) for topic, n in topics.items() for p in range(n)]
    rng.shuffle(partitions)
    claims: dict[str, list[tuple[str, int]]] = {member_id: [] for member_id in ids}
    # Few owners: skewed; as many owners as members: about as the assignor leaves it.
    owners = rng.sample(ids, rng.choice((count, count, max(1, count // 2), 1)))
    for index, partition in enumerate(partitions):
        if rng.random() < 0.9:
            even = owners[index % len(owners)]
            claims[rng.choice((even, even, even, rng.choice(owners)))].append(partition)
    if rng.random() < 0.4:
        for _ in range(rng.randint(1, 6)):
            claims[rng.choice(ids)].append(rng.choice(partitions))
    joined = set(rng.sample(ids, rng.choice((0, 0, 1, count // 3))))
    generations = rng.choice(((5,), (5,), (4, 5), (3, 4, 5, None)))
    return Group(
        topics,
        [
            Member(
                member_id,
                subscription,
                [] if member_id in joined else claims[member_id],
                None if member_id in joined else rng.choice(generations),
                group_instance_id=f"i{rng.random()}" if rng.random() < 0.2 else None,
            )
            for member_id in ids
        ],
        assignor,
    )


GROUPS = claiming_groups(800, seed=20261121)


@pytest.fixture(scope="module")
def tables(spark: SparkSession) -> oracle.Tables:
    return oracle.to_tables(spark, GROUPS)


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


@pytest.mark.parametrize("settings", [IN_TASKS, IN_SLICES, IN_BOTH])
def test_random_groups_equal_the_client(
    spark: SparkSession, tables: oracle.Tables, settings: Settings
) -> None:
    answers = oracle.assign(spark, GROUPS)
    assigned = oracle.from_table(assign(*tables, settings=settings), GROUPS)
    differing = [
        (index, group, answer, found)
        for index, (group, answer, found) in enumerate(zip(GROUPS, answers, assigned, strict=True))
        if oracle.as_sets(answer) != found
    ]
    assert len(differing) == 0, (len(differing), differing[0])


def test_without_owned_all_is_handed_out(spark: SparkSession, tables: oracle.Tables) -> None:
    fresh = [
        Group(g.topics, [Member(m.member_id, m.topics) for m in g.members], "sticky")
        for g in GROUPS[:100]
    ]
    some = oracle.to_tables(spark, fresh)
    assigned = oracle.from_table(assign(some.members, some.topics), fresh)
    assert assigned == [oracle.as_sets(answer) for answer in oracle.assign(spark, fresh)]


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
