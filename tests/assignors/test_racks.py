"""``assign`` with racks: the client's answer where it is exact; nothing new without a use."""

from collections import Counter
from dataclasses import replace
from functools import cache
from unittest.mock import Mock

import pytest
from chispa import assert_df_equality
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import kassign_spark.assignors.in_tasks as in_tasks
from kassign_spark import Settings, assign, rebalance
from kassign_spark.groups.inspection import inspect_inputs
from kassign_spark.groups.rack_use import rack_use
from kassign_spark.inputs.input_tables import conform_inputs
from tests import kernels
from tests.assignors.test_general_racks import GROUPS as GENERAL
from tests.assignors.test_general_racks import best, measure
from tests.kafka import oracle
from tests.kafka.oracle import Group
from tests.random_states import exact_racked_states
from tests.rebalancing.test_steps import after, by_round

SEED = 20261202
# Equal subscriptions make a constrained pass, which gives up claims in other racks, even if it need
# not for the balance.
MIXED = [group for group in GENERAL if len({frozenset(m.topics) for m in group.members}) > 1]


@cache
def _exact() -> list[Group]:
    return exact_racked_states(4000, seed=SEED)


@cache
def _groups() -> list[Group]:
    return [*_exact(), *MIXED[:150]]


@pytest.fixture(scope="module")
def in_use(spark: SparkSession) -> list[bool]:
    """Of each group whether the client's assignor finds that racks count."""
    return oracle.rack_use(spark, _groups())


@pytest.fixture(scope="module")
def tables(spark: SparkSession) -> oracle.Tables:
    return oracle.to_tables(spark, _groups())


def test_the_groups_hold_what_racks_can_do(in_use: list[bool]) -> None:
    kinds = Counter(
        (group.assignor, uses)
        for group, uses in zip(_exact(), in_use[: len(_exact())], strict=True)
    )
    assert all(kinds[name, True] > 100 for name in ("range", "sticky", "cooperative-sticky")), kinds
    assert all(kinds[name, False] > 100 for name in ("range", "sticky", "cooperative-sticky"))


def test_one_call_gives_the_clients_answers_and_the_optimum(
    spark: SparkSession, tables: oracle.Tables
) -> None:
    answers = oracle.assign(spark, _exact())
    assigned = oracle.from_table(assign(*tables), _groups())
    differing = [
        (SEED, index, group, answer, mine)
        for index, (group, answer, mine) in enumerate(
            zip(_exact(), answers, assigned, strict=False)
        )
        if oracle.as_sets(answer) != mine
    ]
    assert differing == []
    for group, answer in zip(MIXED, assigned[len(_exact()) :], strict=False):
        assert measure(group, answer) == best(group, racks_before_moves=False), group


def test_racks_before_moves(spark: SparkSession) -> None:
    some = MIXED[150:250]
    settings = Settings(racks_before_moves=True)
    assigned = oracle.from_table(assign(*oracle.to_tables(spark, some), settings=settings), some)
    for group, answer in zip(some, assigned, strict=True):
        assert measure(group, answer) == best(group, racks_before_moves=True), group


def test_where_racks_count(tables: oracle.Tables, in_use: list[bool]) -> None:
    """By the frames as by the client itself: group by group, no more and no fewer."""
    eligible = inspect_inputs(conform_inputs(*tables), known_assignors=None).eligible
    rows = {row.group_id: row for row in rack_use(eligible).collect()}
    for index, (group, uses) in enumerate(zip(_groups(), in_use, strict=True)):
        row = rows.get(oracle.group_id(index))
        if group.assignor != "range":
            assert (row is not None and row.by_group) == uses, group
        elif uses or len({frozenset(m.topics) for m in group.members}) == 1:
            # Else racks of members that do not subscribe to the topic are looked at too.
            assert (row is not None and row.by_topic) == uses, group


def test_without_a_use_for_racks_nothing_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A replica of everything in each rack: the strategies that know no racks are asked alone."""
    everywhere, nowhere = [], []
    for group in [*_exact()[:300], *MIXED[:150]]:
        sizes = {
            topic: size if isinstance(size, int) else len(size)
            for topic, size in group.topics.items()
        }
        racks = sorted(
            {member.rack_id for member in group.members if member.rack_id} | {"elsewhere"}
        )
        replicas = {topic: [racks] * size for topic, size in sizes.items()}
        everywhere.append(replace(group, topics=replicas))
        members = [replace(member, rack_id=None) for member in group.members]
        nowhere.append(replace(group, topics=sizes, members=members))
    expected = kernels.assigned(nowhere)
    for name in ("_follow", "assign_with_racks"):
        refused = Mock(side_effect=AssertionError(name))
        monkeypatch.setattr(in_tasks, name, refused)
        with pytest.raises(AssertionError, match=name):
            kernels.assigned([*_exact()[:300], *MIXED[:150]])
    assert kernels.assigned(everywhere) == expected


def test_the_result_does_not_depend_on_how_the_input_lies(
    spark: SparkSession, tables: oracle.Tables
) -> None:
    some = F.expr("int(substr(group_id, 2)) % 9 = 0")
    members, owned = tables.members.where(some), tables.owned.where(some)
    shuffled = assign(
        members.repartition(7).orderBy(F.reverse("member_id")),
        tables.topics.repartition(3, "num_partitions"),
        owned.repartition(5).orderBy(F.col("partition").desc()),
    )
    assert_df_equality(shuffled, assign(members, tables.topics, owned), ignore_row_order=True)


def test_rounds_equal_the_clients(spark: SparkSession, in_use: list[bool]) -> None:
    """Equal subscriptions and racks: a partition may go on to a better member in a later round."""
    groups = [
        group
        for group, uses in zip(_groups(), in_use, strict=True)
        if group.assignor == "cooperative-sticky" and uses
    ][:60]
    steps = by_round(rebalance(*oracle.to_tables(spark, groups)).collect(), len(groups))
    going = dict(enumerate(groups))
    number = 0
    while going:
        number += 1
        answers = oracle.assign(spark, going.values())
        states = list(going.items())
        going = {}
        for (index, group), answer in zip(states, answers, strict=True):
            assert isinstance(answer, dict)
            assert after(steps[index], number, group) == oracle.as_sets(answer), (index, number)
            subscribed = [
                replace(m, owned=[tp for tp in m.owned if tp[0] in m.topics]) for m in group.members
            ]
            if any(set(m.owned) - set(answer[m.member_id]) for m in subscribed):
                members = [
                    replace(m, owned=answer[m.member_id], generation=number) for m in group.members
                ]
                going[index] = replace(group, members=members)
    assert number > 1


@pytest.mark.slow
def test_differing_groups_with_racks_where_not_all_groups_fit_a_task(spark: SparkSession) -> None:
    members = spark.createDataFrame(
        [("g", "a", ["t", "u"], "r1"), ("g", "b", ["t"], "r2"), ("h", "c", ["t"], None)],
        "group_id string, member_id string, topics array<string>, rack_id string",
    )
    topics = spark.createDataFrame(
        [("t", 2, [["r1"], ["r2"]]), ("u", 1, [["r1"]])],
        "topic string, num_partitions int, replica_racks array<array<string>>",
    )
    in_task, *others = (
        assign(members, topics, assignor="sticky", settings=settings)
        for settings in (Settings(), Settings(bytes_per_task=0), Settings(engine="rounds"))
    )
    for plan in others:
        assert_df_equality(plan, in_task, ignore_row_order=True)
