"""The classes of Kafka's assignors are taken wherever an assignor's name is."""

from collections.abc import Callable

import pytest
from chispa import assert_df_equality
from pyspark.sql import DataFrame, SparkSession

from kassign_spark import (
    ASSIGNORS,
    assign,
    choose_assignors,
    listener_calls,
    migrate,
    predict,
    predict_rebalance,
    rebalance,
    simulate,
    validate,
)
from kassign_spark.commands.parser import Parser
from kassign_spark.conforming import ASSIGNOR_CLASSES, CLIENT_ASSIGNORS
from kassign_spark.errors import InputError
from tests import builders
from tests.kafka.consumers import CLASSES
from tests.oracles import protocol

_BROKER = "org.apache.kafka.coordinator.group.assignor."
_OF_BROKER = {"uniform": f"{_BROKER}UniformAssignor", "range": f"{_BROKER}RangeAssignor"}
NONE_OF_KAFKAS = ["com.example.MyAssignor", f" {CLIENT_ASSIGNORS['range']}", "RangeAssignor", ""]
_SIZES = {"a": 3, "b": 2}


def _members(spark: SparkSession, names: dict[str, str]) -> DataFrame:
    """A group for each assignor of the client, and two of the new protocol."""
    rows: list[dict[str, object]] = [
        {"group_id": group, "member_id": f"m{n}", "topics": ["a", "b"], "assignor": name}
        for group, name in names.items()
        for n in range(2)
    ]
    for row in rows:
        row["member_seq"] = int(str(row["member_id"])[1:])
        if str(row["group_id"]).startswith("new-"):
            row["group_type"] = "consumer"
    return builders.members(spark, rows)


def _named(classes: bool) -> dict[str, str]:
    client = {group: CLIENT_ASSIGNORS[group] if classes else group for group in CLIENT_ASSIGNORS}
    broker = {f"new-{name}": of if classes else name for name, of in _OF_BROKER.items()}
    return client | broker


def test_the_classes_are_kafkas() -> None:
    package = "org.apache.kafka.clients.consumer."
    assert {name: package + of for name, of in CLASSES.items()} == CLIENT_ASSIGNORS
    assert set(ASSIGNOR_CLASSES) == {*CLIENT_ASSIGNORS.values(), *_OF_BROKER.values()}


@pytest.mark.slow
def test_of_members_and_events(spark: SparkSession) -> None:
    topics = builders.topics(spark, _SIZES)
    names, classes = (_members(spark, _named(classes)) for classes in (False, True))
    owned = builders.owned(
        spark, [row for g in _named(True) for row in builders.owner_rows("m0: ap0", g)]
    )
    joins = "event int, kind string, group_id string, member_id string, assignors array<string>"

    def event(classes: bool) -> DataFrame:
        listed = [CLIENT_ASSIGNORS[name] if classes else name for name in ("sticky", "range")]
        return spark.createDataFrame([(1, "member_joins", "sticky", "m2", listed)], joins)

    calls: list[Callable[[DataFrame, bool], DataFrame]] = [
        lambda members, _: assign(members, topics, owned),
        lambda members, _: predict(members, topics, owned)[1],
        lambda members, of: simulate(members, topics, owned, event(of)),
        lambda members, _: validate(members, topics, assignors=ASSIGNORS),
    ]
    for call in calls:
        assert_df_equality(
            call(classes, True), call(names, False), ignore_row_order=True, ignore_nullable=True
        )


@pytest.mark.slow
def test_of_the_parameter(spark: SparkSession) -> None:
    topics = builders.topics(spark, _SIZES)
    members = _members(spark, {"g": "range"})
    steps = rebalance(members, topics, assignor="cooperative-sticky")
    calls: dict[str, Callable[[str], DataFrame]] = {
        "roundrobin": lambda name: assign(members, topics, assignor=name),
        "sticky": lambda name: predict(members, topics, assignor=name)[0],
        "cooperative-sticky": lambda name: rebalance(members, topics, assignor=name),
        "cooperative-sticky ": lambda name: listener_calls(steps, members, assignor=name),
        "sticky ": lambda name: predict_rebalance(members, topics, assignor=name)[0],
    }
    for name, call in calls.items():
        short = name.strip()
        result, expected = call(CLIENT_ASSIGNORS[short]), call(short)
        assert_df_equality(result, expected, ignore_row_order=True)
    moved = [
        migrate(members, topics, assignor=name).verdicts.first()
        for name in ("range", _OF_BROKER["range"])
    ]
    assert moved[0] == moved[1]
    candidates = "group_id string, member_id string, assignors array<string>"
    listed = [list(map(CLIENT_ASSIGNORS.get, names)) for names in (["sticky"], ["range", "sticky"])]
    offered = spark.createDataFrame([("g", "m0", listed[0]), ("g", "m1", listed[1])], candidates)
    keys = dict.fromkeys(CLIENT_ASSIGNORS.values(), ("eager",))
    [row] = choose_assignors(offered, protocols=keys).groups.collect()
    assert (row.assignor, row.protocol, row.problem) == ("sticky", "eager", None)


def test_others_stay_unknown(spark: SparkSession) -> None:
    topics = builders.topics(spark, _SIZES)
    for name in NONE_OF_KAFKAS[:-1]:
        with pytest.raises(InputError, match="unknown assignor"):
            assign(_members(spark, {"g": "range"}), topics, assignor=name)
    groups = {f"g{n}": name for n, name in enumerate(NONE_OF_KAFKAS)}
    with pytest.raises(InputError) as error:
        assign(_members(spark, groups), topics)
    assert all(f'"{name or "null"}" of group' in str(error.value) for name in NONE_OF_KAFKAS)


def test_of_options_and_of_subscriptions() -> None:
    parser = Parser()
    parser.add_assignor(ASSIGNORS)
    assert parser.parse_args(["--assignor", CLIENT_ASSIGNORS["sticky"]]).assignor == "sticky"
    with pytest.raises(SystemExit):
        parser.parse_args(["--assignor", _OF_BROKER["uniform"]])
    subscription = protocol.Subscription(("a",), ((("a", 0)),), 3)
    for name, owned in (("sticky", ()), ("range", subscription.owned)):
        assert protocol.claims(subscription, CLIENT_ASSIGNORS[name]).owned == owned
