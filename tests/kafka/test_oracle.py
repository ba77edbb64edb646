"""The oracle answers as published examples and recorded failures of the real client say."""

import time

import pytest
from pyspark.sql import SparkSession

from tests.kafka.failing_groups import failing_group
from tests.kafka.oracle import (
    ASSIGNORS,
    Group,
    Member,
    as_sets,
    assign,
    from_table,
    group_id,
    seconds_taken,
    to_tables,
)
from tests.kafka.worked_examples import EXAMPLES


def test_worked_examples_are_what_the_client_answers(spark: SparkSession) -> None:
    answers = assign(spark, [example.group for example in EXAMPLES])
    differing = [
        (example.name, answer, example.expected)
        for example, answer in zip(EXAMPLES, answers, strict=True)
        if as_sets(answer) != as_sets(example.expected)
    ]
    assert differing == []


def test_two_cooperative_states_end_without_an_answer(spark: SparkSession) -> None:
    started = time.monotonic()
    groups = [failing_group("never-ends"), failing_group("null-pointer"), EXAMPLES[0].group]
    answers = assign(spark, groups, seconds=1)
    assert answers[:2] == ["TimeLimit", "NullPointerException"]
    assert answers[2] == EXAMPLES[0].expected, "a group after a never-ending one is answered"
    assert time.monotonic() - started < 5


def test_one_cooperative_state_never_settles(spark: SparkSession) -> None:
    """Each round's answer is the next one's claims; two states take turns."""
    group = failing_group("never-settles")
    states = []
    for generation in range(100, 108):
        answer = assign(spark, [group])[0]
        assert isinstance(answer, dict)
        states.append(as_sets(answer))
        group = Group(
            group.topics,
            [
                Member(m.member_id, m.topics, answer[m.member_id], generation, None, m.rack_id)
                for m in group.members
            ],
            group.assignor,
        )
    assert states[-1] == states[-3]
    assert states[-1] != states[-2]


def test_static_members_come_first_for_range(spark: SparkSession) -> None:
    members = [Member("a", ["t"]), Member("z", ["t"], group_instance_id="i")]
    assert assign(spark, [Group({"t": 3}, members)]) == [
        {"z": [("t", 0), ("t", 1)], "a": [("t", 2)]}
    ]


def test_racks_decide(spark: SparkSession) -> None:
    members = [Member("a", ["t"], rack_id="r1"), Member("b", ["t"], rack_id="r2")]
    racks = [["r2"], ["r2", None], ["r1"], ["r1"]]
    assert assign(spark, [Group({"t": racks}, members)]) == [
        {"a": [("t", 2), ("t", 3)], "b": [("t", 0), ("t", 1)]}
    ]


def test_sticky_reads_given_user_data(spark: SparkSession) -> None:
    """The vector of t1:2, t0:1, t0:0 in generation 5, in the layout of StickyAssignor."""
    vector = "000000020002743000000002000000010000000000027431000000010000000200000005"
    topics = {"t0": 2, "t1": 4}
    claimed = [("t0", 0), ("t0", 1), ("t1", 2)]
    by_bytes = [
        Member("a", ["t0", "t1"]),
        Member("b", ["t0", "t1"], user_data=bytes.fromhex(vector)),
    ]
    by_claims = [Member("a", ["t0", "t1"]), Member("b", ["t0", "t1"], claimed, 5)]
    groups = [Group(topics, by_bytes, "sticky"), Group(topics, by_claims, "sticky")]
    first, second = assign(spark, groups)
    assert first == second
    assert set(claimed) == set(first["b"])  # type: ignore[index]


@pytest.mark.parametrize("assignor", ASSIGNORS)
def test_order_of_members_in_buckets_of_their_own(spark: SparkSession, assignor: str) -> None:
    """Answers do not depend on the order of members unless two share a bucket."""
    members = [Member(f"consumer-{i}", ["t"]) for i in range(1, 14)]
    there, back = assign(
        spark, [Group({"t": 40}, members, assignor), Group({"t": 40}, members[::-1], assignor)]
    )
    assert there == back


def test_time_taken_is_of_every_repetition(spark: SparkSession) -> None:
    topics = {f"t{i}": 20 for i in range(20)}
    members = [Member(f"m{i}", list(topics), generation=1) for i in range(20)]
    group = Group(topics, members, "sticky")
    one, many = (seconds_taken(spark, [group] * n, times=3) for n in (1, 50))
    assert len(one) == len(many) == 3
    assert 0 < min(one) < min(many) < 60


def test_tables_of_groups(spark: SparkSession) -> None:
    groups = [
        Group(
            {"t": [["r1", "r2"], ["r2", None]], "u": 0},
            [Member("m1", ["t", "u"], [("t", 1)], 4, "i1", "r1"), Member("m0", [])],
            "sticky",
        ),
        Group({"t": 7}, [Member("m1", ["t"])]),
    ]
    members, topics, owned = to_tables(spark, groups)
    assert [tuple(row) for row in members.orderBy("cluster_id", "member_seq").collect()] == [
        ("c0", "g0", "m1", "i1", "r1", ["t", "u"], None, 4, 0, "sticky"),
        ("c0", "g0", "m0", None, None, [], None, None, 1, "sticky"),
        ("c1", "g1", "m1", None, None, ["t"], None, None, 0, "range"),
    ]
    assert [tuple(row) for row in topics.orderBy("cluster_id", "topic").collect()] == [
        ("c0", "t", 2, [["r1", "r2"], ["r2", None]]),
        ("c0", "u", 0, None),
        ("c1", "t", 7, None),
    ]
    assert [tuple(row) for row in owned.collect()] == [("c0", group_id(0), "m1", "t", 1)]
    assert from_table(owned, groups) == [{"m1": [("t", 1)], "m0": []}, {"m1": []}]
