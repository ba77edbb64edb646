"""One row a variant and group, all in one call, equal to what Kafka's assignors give each."""

from typing import Any

import pytest
from pyspark.sql import Row, SparkSession

from kassign_spark.errors import InputError
from kassign_spark.simulation.questions import Growth, Sweep, parse_sweep
from kassign_spark.simulation.sweep import sweep
from tests import builders
from tests.kafka import oracle
from tests.kafka.oracle import Group, Member

_TOPICS = {"t": 6, "u": 5}
_SUBSCRIPTIONS = {
    "fair": {"C0": ["t"], "C1": ["t"], "C2": ["t"]},
    "mixed": {"C0": ["t", "u"], "C1": ["u"]},
}
_ASSIGNORS = {"fair": "cooperative-sticky", "mixed": "range"}
Answers = dict[tuple[int, str, int, int, int], Row]


@pytest.fixture(scope="module")
def tables(spark: SparkSession) -> tuple[Any, Any, Any]:
    members = [
        {"group_id": g, "member_id": m, "topics": t, "generation": 2, "assignor": _ASSIGNORS[g]}
        for g, of in _SUBSCRIPTIONS.items()
        for m, t in of.items()
    ]
    owned = builders.owner_rows("C0: tp0 tp3; C1: tp1 tp4; C2: tp2 tp5", "fair")
    return (
        builders.members(spark, members),
        builders.topics(spark, _TOPICS),
        builders.owned(spark, owned),
    )


@pytest.fixture(scope="module")
def answers(tables: tuple[Any, Any, Any]) -> Answers:
    asked = [
        parse_sweep({"members": "-3..+3"}),
        parse_sweep({"members": "0, 1", "partitions": "x2, +1", "topic": "t", "group_id": "fair"}),
    ]
    rows = sweep(*tables, asked).collect()
    return {
        (r.sweep, r.group_id, r.member_change, r.partition_times, r.partition_more): r for r in rows
    }


def _group(name: str, change: int, sizes: dict[str, int]) -> Group:
    members = list(_SUBSCRIPTIONS[name].items())
    copies = [
        (f"{m}+{k + 1}", t) for k in range(max(0, change)) for m, t in [members[k % len(members)]]
    ]
    kept = members[: len(members) + min(0, change)]
    return Group(sizes, [Member(m, t) for m, t in kept + copies], "range")


def test_every_variant_is_what_kafka_gives(spark: SparkSession, answers: Answers) -> None:
    assert len(answers) == 7 * 2 + 4
    possible = {key: row for key, row in answers.items() if row.detail is None}
    groups = []
    for _, name, change, times, more in possible:
        groups.append(_group(name, change, {**_TOPICS, "t": 6 * times + more}))
    for (key, row), answer in zip(possible.items(), oracle.assign(spark, groups), strict=True):
        assert isinstance(answer, dict)
        loads = sorted(map(len, answer.values()))
        assert (row.member_count, row.partition_count) == (len(loads), sum(loads)), key
        # Sticky loads are those of range here: one topic.
        assert (row.min_assigned, row.max_assigned) == (loads[0], loads[-1]), key
        assert row.idle_count == loads.count(0), key
        assert row.settles


def test_moves_and_rounds_are_those_of_the_rebalance(answers: Answers) -> None:
    same, more, fewer = (answers[1, "fair", change, 1, 0] for change in (0, 1, -1))
    assert (same.moved_count, same.paused_count, same.rounds) == (0, 0, 1)
    assert (more.moved_count, more.paused_count, more.rounds) == (1, 1, 2)
    assert (fewer.moved_count, fewer.paused_count, fewer.rounds) == (2, 0, 1)
    assert fewer.variant == "members -1"
    assert answers[2, "fair", 1, 2, 0].variant == "members +1, partitions x2"
    assert answers[2, "fair", 0, 1, 1].variant == "members +0, partitions +1"


def test_what_leaves_no_member_says_so(answers: Answers) -> None:
    none = {(key[1], key[2]): r for key, r in answers.items() if r.detail is not None}
    assert sorted(none) == [("fair", -3), ("mixed", -3), ("mixed", -2)]
    row = none["mixed", -3]
    assert row.detail == "the group has only 2 members"
    assert (row.member_count, row.max_assigned, row.rounds, row.settles) == (0, None, None, None)


def test_sweeps_of_what_is_not_there_are_refused(tables: tuple[Any, Any, Any]) -> None:
    asked = [Sweep(members=(1,), group_id="no", line=3), Sweep(partitions=(Growth(2),), topic="v")]
    with pytest.raises(InputError) as error:
        sweep(*tables, asked)
    assert str(error.value) == (
        'line 3: sweep: group_id "no" does not exist; sweep: topic "v" does not exist'
    )


@pytest.mark.parametrize("assignor", ["sticky", "cooperative-sticky", "range"])
def test_claims_of_missing_partitions_are_what_the_client_answers(
    spark: SparkSession, assignor: str
) -> None:
    """orders had 6 partitions and has 3: the sticky client throws; for three it makes one up."""
    members = [
        {"group_id": "g", "member_id": m, "topics": ["orders"], "generation": 2}
        | {"assignor": assignor}
        for m in ("C0", "C1")
    ]
    tables = (
        builders.members(spark, members),
        builders.topics(spark, {"orders": 3}),
        builders.owned(
            spark,
            [
                {"group_id": "g", "member_id": f"C{p // 3}", "topic": "orders", "partition": p}
                for p in range(6)
            ],
        ),
    )
    asked = [parse_sweep({"members": "0, 1"}), parse_sweep({"partitions": "x2"})]
    same, more, grown = sweep(*tables, asked).orderBy("sweep", "member_change").collect()
    assert grown.settles
    assert (grown.partition_count, grown.moved_count, grown.detail) == (6, 0, None)
    assert (more.settles, more.partition_count) == (True, 3)
    if assignor == "range":
        assert (same.settles, same.partition_count) == (True, 3)
        assert (same.detail, more.detail) == (None, None)
    else:
        assert (same.settles, same.partition_count, same.moved_count) == (False, None, None)
        assert same.detail.startswith("IllegalStateException: no member has room for orders-2")
        assert more.detail.startswith("C1 is given orders-3, which does not exist")
