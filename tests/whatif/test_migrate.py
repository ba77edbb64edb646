"""Fleets on their way between the protocols as DataFrames, and bad input."""

from typing import Any, NamedTuple

import pytest
from pyspark.sql import DataFrame, SparkSession

from kassign_spark import migrate
from kassign_spark.errors import InputError, SchemaError
from kassign_spark.inputs import re2j
from tests import builders
from tests.query_counter import counting

_PATTERN = "t|(?!x)u"
_CLIENTS = "client string, client_version string, setting string, value string"
_ORDER = "group_id string, member_id string, position int"


class Tables(NamedTuple):
    members: DataFrame
    topics: DataFrame
    owned: DataFrame


@pytest.fixture(scope="module")
def tables(spark: SparkSession) -> Tables:
    """Three classic groups, one of them static, one with a pattern; one of the new protocol."""
    members, owned = [], []
    for group, kind in (
        ("plain", None),
        ("static", "classic"),
        ("pattern", None),
        ("new", "consumer"),
    ):
        for i in range(2):
            member = f"{group}-{i}"
            members.append(
                {
                    "group_id": group,
                    "member_id": member,
                    "group_instance_id": f"i{i}" if group == "static" else None,
                    "topics": None if group == "pattern" else ["t"],
                    "topics_pattern": _PATTERN if group == "pattern" else None,
                    "assignor": "uniform" if kind == "consumer" else "cooperative-sticky",
                    "group_type": kind,
                    "generation": 3,
                }
            )
            owned += [
                {"group_id": group, "member_id": member, "topic": "t", "partition": 2 * i + p}
                for p in range(2)
            ]
    topics = [
        {"topic": "t", "num_partitions": 4, "topic_id": "J6V0K9wQRmmjVk2nq0Y1zA"},
        {"topic": "__consumer_offsets", "num_partitions": 50},
    ]
    return Tables(
        builders.members(spark, members),
        builders.topics(spark, topics),
        builders.owned(spark, owned),
    )


def test_a_fleet_goes_over_and_back(spark: SparkSession, tables: Tables) -> None:
    clients = [("c", "3.6.0", "group.id", "plain"), ("d", "4.4.0", "group.id", "static")]
    order = [("plain", "plain-1", 0)]
    with counting(spark) as counted:
        result = migrate(
            *tables,
            order=spark.createDataFrame(order, _ORDER),
            clients=spark.createDataFrame(clients, _CLIENTS),
        )
    # One for the order, one that looks at the tables, twice as there is a pattern, and the answer.
    assert counted.queries <= 5, counted
    verdicts = {row.group_id: row for row in result.verdicts.collect()}
    assert {name: row.verdict for name, row in verdicts.items()} == {
        "plain": "blocked",
        "static": "ready",
        "pattern": "risky",
    }
    assert verdicts["plain"].detail == (
        'client "c", group.protocol: unknown to clients before 3.7.0, which ignore it'
    )
    assert _PATTERN in verdicts["pattern"].detail
    assert f"as a SubscriptionPattern {re2j.problem(_PATTERN)}; as" in verdicts["pattern"].detail
    steps = result.steps.orderBy("group_id", "step").collect()
    assert [(s.group_id, s.member_id, s.event) for s in steps if s.group_id != "pattern"] == [
        ("plain", "plain-1", "leave"),
        ("plain", "plain-1", "join"),
        ("plain", "plain-0", "leave"),
        ("plain", "plain-0", "join"),
        ("static", "static-0", "replace"),
        ("static", "static-1", "replace"),
    ]
    assert verdicts["plain"].moved == sum(s.moved for s in steps if s.group_id == "plain") == 8
    assert result.verdicts.columns[0] == result.steps.columns[0] == "group_id"
    assert "cross_rack_before" in result.verdicts.columns
    back = migrate(*tables, to="classic")
    (verdict,) = back.verdicts.collect()
    assert (verdict.group_id, verdict.verdict, verdict.step_count) == ("new", "ready", 4)


def test_nothing_is_known_of_owned(tables: Tables) -> None:
    (row,) = migrate(tables.members.where("group_id = 'plain'"), tables.topics).verdicts.collect()
    assert (row.verdict, row.step_count, row.moved, row.paused) == ("ready", 4, None, None)


def test_bad_input_is_refused_in_one_line(spark: SparkSession, tables: Tables) -> None:
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"to": "streams"}, "to is 'streams'; it must be one of consumer, classic"),
        (
            {"policy": "both"},
            "policy is 'both'; it must be one of bidirectional, upgrade, downgrade",
        ),
        (
            {"assignor": "sticky"},
            "unknown assignor 'sticky' of consumer groups; known are range, u",
        ),
        ({"to": "classic", "assignor": "uniform"}, "unknown assignor 'uniform' of classic groups"),
        ({"max_size": 0}, "max_size is 0; it must be a whole number from 1 to 2147483647"),
    ]
    for arguments, says in wrong:
        with pytest.raises(InputError) as error:
            migrate(*tables, **arguments)
        assert str(error.value).startswith(says)
    orders = [
        ([("plain", "plain-7", 0)], '"plain-7" of group "plain": there is no such member'),
        ([("plain", "plain-0", 0), ("plain", "plain-0", 1)], "give each member one position"),
    ]
    for rows, says in orders:
        with pytest.raises(InputError, match=says):
            migrate(*tables, order=spark.createDataFrame(rows, _ORDER))
    with pytest.raises(SchemaError, match="table order: column position"):
        migrate(
            *tables, order=spark.createDataFrame([("a", "b")], "group_id string, member_id string")
        )
