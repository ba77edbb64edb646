"""A missing ``member_seq`` is told where it decides, and nowhere else."""

from typing import Any

import pytest
from pyspark.sql import SparkSession

from kassign_spark import predict, validate
from tests import builders
from tests.builders import owner_rows
from tests.kafka import oracle
from tests.kafka.oracle import Group, Member

# The ids Aa and BB have one hash, so always one bucket.
_JOINS = ("Aa: tp0 tp1; BB: tp2 tp3; c:", {})
_Cases = dict[str, tuple[str, dict[str, Any], bool]]
_CASES: _Cases = {
    "a third joins": (*_JOINS, True),
    "cooperative": (_JOINS[0], {"assignor": "cooperative-sticky"}, True),
    "order is given": (_JOINS[0], {"member_seq": "place"}, False),
    "order is given in part": (_JOINS[0], {"member_seq": "first"}, True),
    "order is ambiguous": (_JOINS[0], {"member_seq": "same"}, True),
    "other buckets": ("C0: tp0 tp1; C1: tp2 tp3; c:", {}, False),
    "nobody owns too much": ("Aa: tp0 tp1; BB: tp2; c: tp3", {}, False),
    "nobody owns anything": ("Aa:; BB:; c:", {}, False),
    "all may keep it": ("Aa: tp0; BB: tp1; c:; d:; e:", {}, False),
    "it divides evenly": ("Aa: tp0 tp1 up0; BB: tp2 tp3 up1; c:", {"topics": ["t", "u"]}, False),
    "both may keep it, a third not": (
        "Aa: tp0 tp1; BB: tp2 tp3; C0: up0 up1; c:; d: vp0 vp1",
        {"topics": ["t", "u", "v"]},
        False,
    ),
}


def _rows(cases: _Cases) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    members: list[dict[str, Any]] = []
    owned: list[dict[str, Any]] = []
    for group, (text, columns, _) in cases.items():
        ids = [part.split(":")[0].strip() for part in text.split(";")]
        for place, member in enumerate(ids):
            seq = {"place": place, "first": place or None, "same": 7}.get(
                columns.get("member_seq", "")
            )
            row = {"topics": ["t"], "assignor": "sticky", "generation": 4, **columns}
            members.append({**row, "group_id": group, "member_id": member, "member_seq": seq})
        owned += owner_rows(text, group)
    return members, owned


@pytest.fixture(scope="module")
def tables(spark: SparkSession) -> tuple[Any, Any, Any]:
    members, owned = _rows(_CASES)
    sizes = {"t": 4, "u": 2, "v": 2}
    return (
        builders.members(spark, members),
        builders.topics(spark, sizes),
        builders.owned(spark, owned),
    )


def test_it_is_told_where_it_decides(tables: tuple[Any, Any, Any]) -> None:
    result = [r for r in validate(*tables).collect() if r.problem == "member_order_unknown"]
    assert {r.group_id for r in result} == {
        g for g, (_, _, is_unknown) in _CASES.items() if is_unknown
    }
    assert {r.detail for r in result} == {
        "members Aa, BB share a bucket of Java's hash map, and 1 of them may keep one partition "
        "more: without member_seq it is not known which; here they are taken by member_id"
    }
    assert {(r.member_id, r.topic, r.partition) for r in result} == {(None, None, None)}


def test_a_prediction_is_inexact_for_the_same_groups(tables: tuple[Any, Any, Any]) -> None:
    verdicts = predict(*tables).verdicts.collect()
    assert {r.group_id for r in verdicts if r.verdict == "inexact"} == {
        group for group, (_, _, is_inexact) in _CASES.items() if is_inexact
    }


def test_other_groups_have_no_such_order(spark: SparkSession) -> None:
    of = {
        "no assignor is named": ({"assignor": None}, True),
        "range": ({"assignor": "range"}, False),
        "differing subscriptions": ({"topics": ["u"]}, False),
        "one reads a missing topic as well": ({"topics": ["t", "gone"]}, False),
        "another claims it later": ({"generation": 3}, False),
    }
    cases = {group: (_JOINS[0], {}, is_unknown) for group, (_, is_unknown) in of.items()}
    # Kafka would keep what is gone, but an assignment here drops it.
    members, owned = _rows({**cases, "gone": ("Aa: tp0 tp9; BB: tp2 tp8; c:", {}, False)})
    for row in members:
        change, _ = of.get(row["group_id"], ({}, False))
        if "assignor" in change or row["member_id"] == "BB":
            row.update(change)
    owned = [*owned, *owner_rows("c: tp2 tp3", "another claims it later")]
    rows = validate(
        builders.members(spark, members),
        builders.topics(spark, {"t": 4, "u": 4}),
        builders.owned(spark, owned),
    ).collect()
    group_ids = {r.group_id for r in rows if r.problem == "member_order_unknown"}
    assert group_ids == {"no assignor is named"}


def test_kafka_answers_by_that_order(spark: SparkSession) -> None:
    ids = {"Aa": [("t", 0), ("t", 1)], "BB": [("t", 2), ("t", 3)], "c": []}
    orders = [["Aa", "BB", "c"], ["BB", "Aa", "c"]]
    groups = [
        Group({"t": 4}, [Member(m, ["t"], ids[m], 4) for m in order], "sticky") for order in orders
    ]
    answers = oracle.assign(spark, groups)
    assert [len(answer["Aa"]) for answer in answers] == [2, 1]  # type: ignore[index]
