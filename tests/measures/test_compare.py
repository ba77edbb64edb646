"""``compare`` against groups done by hand, and against its parts called one by one."""

from dataclasses import replace

import pytest
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from kassign_spark import assign, balance, compare, diff, rebalance, summarize
from kassign_spark.errors import InputError
from kassign_spark.plans.predict import PREDICTED, predict
from tests.builders import final_assignment
from tests.kafka import oracle
from tests.kafka.failing_groups import failing_group
from tests.kafka.oracle import Group, Member
from tests.random_states import random_states

Key = tuple[str, str]

COOPERATIVE = ("cooperative-sticky", "cooperative")
FORGETFUL = ("cooperative-sticky", "eager")

JOINED = Group(
    {"t": 4},
    [
        Member("a", ["t"], [("t", 0), ("t", 1)], 1),
        Member("b", ["t"], [("t", 2), ("t", 3)], 1),
        Member("c", ["t"]),
    ],
)
MIXED = Group(
    {"t0": 4, "t1": 3, "t2": 2},
    [Member("c0", ["t0", "t1", "t2"]), Member("c1", ["t0", "t1"]), Member("c2", ["t2"])],
)
IDLE = Group({"t": 1}, [Member("a", []), Member("b", [])])


STATES = random_states(40, seed=20261130, assignors=["range"], hostile_share=0)
FAILING = [failing_group(case) for case in ("never-settles", "null-pointer", "never-ends")]
GROUPS = [JOINED, MIXED, IDLE, *FAILING, *STATES]
FIRST_STATE = len(GROUPS) - len(STATES)


@pytest.fixture(scope="module")
def tables(spark: SparkSession) -> oracle.Tables:
    return oracle.to_tables(spark, GROUPS)


@pytest.fixture(scope="module")
def every(tables: oracle.Tables) -> list[Row]:
    return compare(*tables).collect()


@pytest.fixture(scope="module")
def planned(every: list[Row]) -> list[Row]:
    """The rows of the client's assignors."""
    return [row for row in every if row.protocol != "consumer"]


@pytest.fixture(scope="module")
def exact(tables: oracle.Tables) -> list[Row]:
    """In one call with all others, the groups in which an answer never comes."""
    rows = compare(*tables, exact=True).collect()
    return [row for row in rows if row.protocol != "consumer"]


def rows_of_group(rows: list[Row], index: int) -> dict[Key, Row]:
    of_group = [row for row in rows if row.group_id == oracle.group_id(index)]
    by_key = {(row.assignor, row.protocol): row for row in of_group}
    assert len(by_key) == len(of_group)
    return by_key


def numbers(rows: dict[Key, Row], *columns: str) -> dict[Key, tuple[int, ...]]:
    return {key: tuple(row[column] for column in columns) for key, row in rows.items()}


@pytest.mark.parametrize("is_exact", [False, True])
def test_by_hand(is_exact: bool, planned: list[Row], exact: list[Row]) -> None:
    rows = exact if is_exact else planned
    assert len(rows) == len(GROUPS) * 5
    joined = rows_of_group(rows, 0)
    assert {row.verdict for index in range(3) for row in rows_of_group(rows, index).values()} == {
        "ok"
    }
    assert numbers(joined, "kept", "moved", "rounds", "paused") == {
        # p3 goes from b to c, a keeps p0 and p1.
        ("range", "eager"): (3, 1, 1, 4),
        # Round the ring: a p0 and p3, b p1, c p2.
        ("roundrobin", "eager"): (1, 3, 1, 4),
        ("sticky", "eager"): (3, 1, 1, 4),
        COOPERATIVE: (3, 1, 2, 1),
        # Knows nothing of what was owned: as roundrobin.
        FORGETFUL: (1, 3, 1, 4),
    }
    for row in joined.values():
        assert (row.member_count, row.partition_count, row.spread, row.topic_spread) == (3, 4, 1, 1)
        assert (row.least_moves, row.sum_of_squares, row.least_sum_of_squares) == (1, 6, 6)
    # Loads of c0, c1, c2 are 5, 3, 1 by topic, and 4, 3, 2 at the best.
    uneven, best = (4, 1, 35), (2, 2, 29)
    assert numbers(rows_of_group(rows, 1), "spread", "topic_spread", "sum_of_squares") == {
        ("range", "eager"): uneven,
        ("roundrobin", "eager"): uneven,
        ("sticky", "eager"): best,
        COOPERATIVE: best,
        FORGETFUL: best,
    }
    assert {row.least_sum_of_squares for row in rows_of_group(rows, 1).values()} == {29}
    for row in rows_of_group(rows, 2).values():
        assert (row.partition_count, row.rounds, row.paused, row.moved) == (0, 1, 0, 0)


def test_the_coordinators_assignors(every: list[Row]) -> None:
    rows = [row for row in every if row.protocol == "consumer"]
    assert len(rows) == len(GROUPS) * 2
    joined = rows_of_group(rows, 0)
    # range: blocks of 2, 1, 1; uniform: a and b keep what they may, c gets what b gives up.
    moves = ("kept", "moved", "rounds", "paused", "spread", "verdict")
    assert numbers(joined, *moves) == {
        ("range", "consumer"): (3, 1, 3, 1, 1, "ok"),
        ("uniform", "consumer"): (3, 1, 3, 1, 1, "ok"),
    }
    mixed = rows_of_group(rows, 1)
    assert mixed["range", "consumer"].sum_of_squares == 35
    assert mixed["uniform", "consumer"].sum_of_squares == 29
    assert "is not known, and topics are gone through by their ids" in (
        mixed["uniform", "consumer"].detail
    )


@pytest.mark.slow
def test_it_is_its_parts_called_one_by_one(spark: SparkSession, planned: list[Row]) -> None:
    """Each part is called once, for each group under every assignor."""
    by_name = {name: [replace(g, assignor=name) for g in STATES] for name in PREDICTED}
    tables = oracle.to_tables(spark, [group for of in by_name.values() for group in of])
    measured = {
        row.group_id: row
        for row in balance(assign(*tables), tables.members, tables.owned).collect()
    }
    for variant, name in enumerate(by_name):
        for index in range(len(STATES)):
            rows = rows_of_group(planned, FIRST_STATE + index)
            row = rows[name, "cooperative" if name == COOPERATIVE[0] else "eager"]
            expected = measured[oracle.group_id(variant * len(STATES) + index)]
            assert row.member_count == expected.member_count
            # cooperative-sticky is not done after one round.
            if name != COOPERATIVE[0]:
                assert (row.kept, row.moved, row.least_moves, row.sum_of_squares) == (
                    expected.kept_count,
                    expected.moved_count,
                    expected.least_moves,
                    expected.sum_of_squares,
                ), (index, name)
                assert row.least_sum_of_squares == expected.least_sum_of_squares
                assert row.spread == expected.max_assigned - expected.min_assigned
    tables = oracle.to_tables(spark, by_name[COOPERATIVE[0]])
    for key in (COOPERATIVE, FORGETFUL):
        steps = rebalance(*tables, protocol=key[1])
        summary = {row.group_id: row for row in summarize(steps, tables.owned).collect()}
        assert len(summary) > len(STATES) / 2
        for index in range(len(STATES)):
            row, name = rows_of_group(planned, FIRST_STATE + index)[key], oracle.group_id(index)
            if name in summary:
                assert (row.rounds, row.moved, row.paused, row.partition_count) == (
                    summary[name].rounds,
                    summary[name].moved_count,
                    summary[name].paused_count,
                    summary[name].partition_count,
                ), (index, key)


def test_the_clients_own_answers(tables: oracle.Tables, exact: list[Row]) -> None:
    assert rows_of_group(exact, 3)[COOPERATIVE].verdict == "never_settles"
    throwing = rows_of_group(exact, 4)["sticky", "eager"]
    assert (throwing.verdict, throwing.moved, throwing.rounds) == ("throws", None, None)
    assert "NullPointerException" in throwing.detail
    assert throwing.least_moves is not None
    changed = diff(tables.owned, predict(*tables, assignor="sticky").assignment)
    moved = {row.group_id: row.moved for row in moves(changed).collect()}
    for index in range(FIRST_STATE, len(GROUPS)):
        row = rows_of_group(exact, index)["sticky", "eager"]
        assert row.moved == moved.get(oracle.group_id(index), 0)
        # The optimum is null where nothing is assigned.
        least = row.least_sum_of_squares
        assert row.sum_of_squares >= (0 if row.partition_count == 0 else least)


def test_columns(spark: SparkSession) -> None:
    tables = oracle.to_tables(spark, [JOINED])
    one = [frame.drop("cluster_id") for frame in tables]
    compared = compare(one[0], one[1])
    assert compared.columns == [
        *("group_id", "assignor", "protocol", "verdict", "detail", "member_count"),
        *("partition_count", "kept", "moved", "least_moves", "spread", "topic_spread"),
        *("sum_of_squares", "least_sum_of_squares", "rounds", "paused"),
        *("cross_rack", "cross_rack_more"),
    ]
    row = compared.where("assignor = 'range'").collect()[0]
    assert (row.kept, row.moved, row.least_moves, row.paused) == (None, None, None, 0)
    twice = replace(JOINED, members=[*JOINED.members, JOINED.members[2]])
    tables = oracle.to_tables(spark, [twice])
    with pytest.raises(InputError, match='"c" appears 2 times in group "g0"'):
        compare(*tables)


def moves(changed: DataFrame) -> DataFrame:
    return changed.groupBy("group_id").agg(F.count_if(F.col("change") == "moved").alias("moved"))


def test_the_end_of_a_rebalance(spark: SparkSession) -> None:
    groups = [replace(JOINED, assignor=name) for name in PREDICTED]
    tables = oracle.to_tables(spark, groups)
    owned = oracle.from_table(final_assignment(rebalance(*tables)), groups)
    assert [sum(map(len, members.values())) for members in owned] == [4] * 4
    assert owned[0] == {"a": [("t", 0), ("t", 1)], "b": [("t", 2)], "c": [("t", 3)]}
