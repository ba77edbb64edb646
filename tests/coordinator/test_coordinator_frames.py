"""Fleets of groups of the new protocol as DataFrames: the coordinator's answers, and bad input."""

from collections import defaultdict
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from kassign_spark import assign, listener_calls, predict, rebalance, violations
from kassign_spark.errors import InputError
from kassign_spark.schemas import CLUSTER_ID, MEMBERS, OWNED, TARGET, TOPICS, Table
from tests.coordinator.chains import Computation
from tests.coordinator.described_states import Target, target_of
from tests.coordinator.predicted import predict_consumer_groups

_NAMES = ["group_id", "member_id", "topics", "member_seq", "group_type", "assignor"]


def frame(spark: SparkSession, table: Table, rows: list[tuple[Any, ...]], *names: str) -> DataFrame:
    fields = {field.name: field for field in table.columns}
    return spark.createDataFrame(rows, StructType([fields[name] for name in names]))


@pytest.fixture(scope="module")
def chosen(computed: dict[str, list[Computation]]) -> list[tuple[str, Computation]]:
    """Some of each assignor, in the form in which a snapshot has them."""
    return [(a, c) for a, of in computed.items() for c in of[::4] if not c.joined]


def tables(
    spark: SparkSession, chosen: list[tuple[str, Computation]]
) -> tuple[DataFrame, DataFrame, DataFrame, DataFrame]:
    """Each group in a cluster of its own, as each has its own topics."""
    members, topics, owned, target = [], [], [], []
    for number, (assignor, computation) in enumerate(chosen):
        cluster, group = f"c{number}", f"g{number % 7}"
        for name, (topic_id, count) in computation.topics.items():
            topics.append((cluster, name, topic_id, count))
        ids = {topic_id: name for name, (topic_id, _) in computation.topics.items()}
        described = computation.script.answers[computation.before]
        for seq, m in enumerate(described["members"]):
            subscribed = (m["topics"], seq, "consumer", assignor, m["epoch"])
            members.append((cluster, group, m["member_id"], m["instance"], *subscribed))
            owned += [
                (cluster, group, m["member_id"], name, p)
                for _, name, numbers in m["assignment"]
                for p in numbers
            ]
            listed = [(t, p) for t, _, numbers in m["target"] for p in numbers]
            target += [
                (cluster, group, m["member_id"], ids[t], p, position)
                for position, (t, p) in enumerate(listed)
                if t in ids
            ]
    named = ("group_instance_id", "topics", "member_seq", "group_type", "assignor", "generation")
    keys = (CLUSTER_ID, "group_id", "member_id")
    return (
        frame(spark, MEMBERS, members, *keys, *named),
        frame(spark, TOPICS, topics, CLUSTER_ID, "topic", "topic_id", "num_partitions"),
        frame(spark, OWNED, owned, *keys, "topic", "partition"),
        frame(spark, TARGET, target, *keys, "topic", "partition", "position"),
    )


def test_a_fleet_gets_the_coordinators_targets(
    spark: SparkSession, chosen: list[tuple[str, Computation]]
) -> None:
    members, topics, owned, target = tables(spark, chosen)
    result = predict_consumer_groups(members, topics, owned, target=target)
    assigned: dict[str, Target] = defaultdict(dict)
    for row in result.assignment.collect():
        assigned[row.cluster_id].setdefault(row.member_id, []).append((row.topic, row.partition))
    verdicts = {row.cluster_id: (row.verdict, row.detail) for row in result.verdicts.collect()}
    assert len(verdicts) == len(chosen) > 300
    ties, differing = 0, []
    for number, (_, computation) in enumerate(chosen):
        answer = target_of(computation.script.answers[computation.after], computation.topics)
        mine = assigned[f"c{number}"]
        got = {member: sorted(mine.get(member, [])) for member in answer}
        ties += verdicts[f"c{number}"][0] == "never_settles"
        if verdicts[f"c{number}"][0] != "ok" or got != answer:
            differing.append((number, computation.event, verdicts[f"c{number}"]))
    assert differing == []
    assert ties == 0
    rounds = result.steps.groupBy("cluster_id").agg({"round": "max"}).collect()
    assert max(row[1] for row in rounds) == 3


def one_group(spark: SparkSession, *votes: str | None) -> tuple[DataFrame, DataFrame]:
    members = [("g", f"m{i}", ["t"], i, "consumer", vote) for i, vote in enumerate(votes)]
    topics = [("t", "J6V0K9wQRmmjVk2nq0Y1zA", 4)]
    return (
        frame(spark, MEMBERS, members, *_NAMES),
        frame(spark, TOPICS, topics, "topic", "topic_id", "num_partitions"),
    )


def test_groups_of_other_types_are_left_out(spark: SparkSession) -> None:
    members, topics = one_group(spark, None)
    rows = [("old", "m", ["t"], 0, None, "sticky"), ("old2", "m", ["t"], 0, "classic", "range")]
    both = members.unionByName(frame(spark, MEMBERS, rows, *_NAMES))
    result = predict_consumer_groups(both, topics)
    assert [row.group_id for row in result.verdicts.collect()] == ["g"]
    assert result.assignment.columns == ["group_id", "member_id", "topic", "partition"]
    assert {row.member_id for row in result.assignment.collect()} == {"m0"}


def test_a_tie_of_votes_never_settles(spark: SparkSession) -> None:
    result = predict_consumer_groups(*one_group(spark, "uniform", "range"))
    (row,) = result.verdicts.collect()
    assert row.verdict == "never_settles"
    assert "m0 and m1" in row.detail


def test_an_assignor_for_all_overrides_the_votes(spark: SparkSession) -> None:
    members, topics = one_group(spark, "uniform", "range")
    (row,) = predict_consumer_groups(members, topics, assignor="range").verdicts.collect()
    assert (row.verdict, row.detail) == ("ok", None)


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        (
            [("g", "m0", "t", 0, 0), ("g", "m0", "t", 1, 0)],
            'table target, column position: 0 appears 2 times for member "m0" of group "g": '
            "give each place in a member's list once",
        ),
        (
            [("g", "m0", "t", 0, 0), ("g", "m1", "t", 0, 0)],
            'table target, column partition: t-0 appears 2 times of group "g": the coordinator '
            "gives a partition to one member",
        ),
        (
            [("old", "m", "t", 0, 0)],
            'table target, column group_id: "old" is not of group_type consumer in members: only '
            "such groups have one",
        ),
        (
            [("g", "m0", "t", 0, -1)],
            'table target, column position: -1 (at group_id="g" member_id="m0" topic="t" '
            "partition=0): must be a whole number from 0 to 2147483647",
        ),
    ],
    ids=["position twice", "partition twice", "classic group", "negative position"],
)
def test_bad_targets(spark: SparkSession, rows: list[tuple[Any, ...]], says: str) -> None:
    members, topics = one_group(spark, None, None)
    old = frame(spark, MEMBERS, [("old", "m", ["t"], 0, "classic", "range")], *_NAMES)
    columns = ("group_id", "member_id", "topic", "partition", "position")
    with pytest.raises(InputError) as error:
        predict_consumer_groups(
            members.unionByName(old), topics, target=frame(spark, TARGET, rows, *columns)
        )
    assert str(error.value) == says


def test_bad_members_and_topics(spark: SparkSession) -> None:
    members, topics = one_group(spark, "Uniform")
    with pytest.raises(InputError, match='"Uniform" of member "m0" of group "g": the coordinator'):
        predict_consumer_groups(members, topics)
    members, _ = one_group(spark, None)
    bad = frame(spark, TOPICS, [("t", "J6V0", 4)], "topic", "topic_id", "num_partitions")
    with pytest.raises(InputError, match=r'column topic_id: "J6V0" .*22 characters of URL-safe'):
        predict_consumer_groups(members, bad)
    ids = [("t", f"{letter}6V0K9wQRmmjVk2nq0Y1zA", 4) for letter in "JK"]
    twice = frame(spark, TOPICS, ids, "topic", "topic_id", "num_partitions")
    with pytest.raises(InputError, match=r'topic "t" is given with "J6.*" and with "K6.*once'):
        predict_consumer_groups(members, twice)
    for epoch, least, kind in ((-3, -2, "consumer"), (-2, -1, "classic")):
        rows = [("g", "m0", ["t"], epoch, kind)]
        named = ("group_id", "member_id", "topics", "generation", "group_type")
        with pytest.raises(InputError, match=f"generation: {epoch} .*number from {least} to"):
            predict(frame(spark, MEMBERS, rows, *named), topics)
    rows = [("g", "m0", ["t"], "share")]
    named = ("group_id", "member_id", "topics", "group_type")
    with pytest.raises(InputError, match=r'group_type: "share" .*must be classic'):
        predict_consumer_groups(frame(spark, MEMBERS, rows, *named), topics)


def mixed(spark: SparkSession) -> tuple[DataFrame, DataFrame, DataFrame, DataFrame]:
    """One group of each type, and a second member that has just joined each."""
    members, topics = one_group(spark, None, None)
    rows = [("old", f"m{i}", ["t"], i, None, "cooperative-sticky") for i in range(2)]
    columns = ("group_id", "member_id", "topic", "partition")
    owned = [(group, "m0", "t", p) for group in ("g", "old") for p in range(4)]
    target = [(*row, row[3]) for row in owned if row[0] == "g"]
    return (
        members.unionByName(frame(spark, MEMBERS, rows, *_NAMES)),
        topics,
        frame(spark, OWNED, owned, *columns),
        frame(spark, TARGET, target, *columns, "position"),
    )


def counted(assignment: DataFrame) -> dict[tuple[str, str], int]:
    return {
        (row.group_id, row.member_id): row["count"]
        for row in assignment.groupBy("group_id", "member_id").count().collect()
    }


def test_both_types_in_one_call(spark: SparkSession) -> None:
    members, topics, owned, target = mixed(spark)
    predicted = predict(members, topics, owned, target=target)
    expected_counts = {("g", "m0"): 2, ("g", "m1"): 2}
    # The classic group's second member has to wait until the first one has revoked.
    classic = {("old", "m0"): 2}
    assert counted(predicted.assignment) == expected_counts | classic
    verdicts = {row.group_id: row.verdict for row in predicted.verdicts.collect()}
    assert verdicts == {"g": "ok", "old": "ok"}
    assert counted(assign(members, topics, owned, target=target)) == expected_counts | classic
    alone = predict(members.where("group_id = 'old'").drop("group_type"), topics, owned)
    assert counted(alone.assignment) == classic


@pytest.mark.parametrize("exact", [False, True])
def test_rounds_of_both_types(spark: SparkSession, exact: bool) -> None:
    members, topics, owned, target = mixed(spark)
    if exact:
        result, verdicts = rebalance(members, topics, owned, target=target, exact=True)
        assert {row.group_id for row in verdicts.collect()} == {"g", "old"}
    else:
        result = rebalance(members, topics, owned, target=target)
    rounds = defaultdict(set)
    for row in result.collect():
        if row.action in ("revoked", "assigned"):
            rounds[row.group_id].add((row.round, row.member_id, row.action))
    assert rounds["g"] == {(1, "m0", "revoked"), (3, "m1", "assigned")}
    assert rounds["old"] == {(1, "m0", "revoked"), (2, "m1", "assigned")}


@pytest.mark.slow
def test_listeners_of_both_types(spark: SparkSession) -> None:
    members, topics, owned, target = mixed(spark)
    steps = rebalance(members, topics, owned, target=target)
    calls = listener_calls(steps, members)
    expected_counts = {
        (row.round, row.member_id, row.call): (row.callback, len(row.partitions))
        for row in calls.where("moment = 'after_heartbeat'").collect()
    }
    assert expected_counts == {
        (1, "m0", 1): ("onPartitionsRevoked", 2),
        (1, "m0", 2): ("onPartitionsAssigned", 0),
        # It has no epoch yet: a member that has just come is told that it has nothing.
        (1, "m1", 1): ("onPartitionsAssigned", 0),
        (3, "m1", 1): ("onPartitionsAssigned", 2),
    }
    assert {row.group_id for row in calls.where("moment = 'after_sync'").collect()} == {"old"}
    classic = members.where("group_id = 'old'").drop("group_type")
    alone = listener_calls(steps.where("group_id = 'old'"), classic)
    assert calls.where("group_id = 'old'").count() == alone.count() > 0


def test_a_target_without_such_groups(spark: SparkSession) -> None:
    members, topics, owned, target = mixed(spark)
    with pytest.raises(InputError, match='"g" is not of group_type consumer in members'):
        predict(members.drop("group_type"), topics, owned, target=target, assignor="range")


def test_regexes_find_internal_topics_too(spark: SparkSession) -> None:
    rows = [("g", "m0", None, "consumer", ".*"), ("g", "m1", [], "consumer", "t|u")]
    named = ("group_id", "member_id", "topics", "group_type", "topics_regex")
    topics = frame(
        spark, TOPICS, [("t", 2), ("tu", 1), ("__consumer_offsets", 3)], "topic", "num_partitions"
    )
    result = predict_consumer_groups(frame(spark, MEMBERS, rows, *named), topics)
    assigned = {(row.topic, row.partition): row.member_id for row in result.assignment.collect()}
    assert len(assigned) == 6
    assert {assigned["__consumer_offsets", p] for p in range(3)} == {"m0"}
    assert assigned["tu", 0] == "m0"
    # What a regex finds counts as subscribed wherever a plan is checked.
    broken = violations(result.assignment, frame(spark, MEMBERS, rows, *named), topics)
    assert broken.count() == 0


_REFUSED = {
    r"(?!a).*": "invalid or unsupported Perl syntax",
    r"(?<=a)b": "invalid named capture",
    r"(a)\1": "invalid escape sequence",
    r"\w*+": "invalid nested repetition operator",
    "(?>a)": "invalid or unsupported Perl syntax",
    "(": "missing closing )",
}
_USED = [r"t\d*\+?", "[*+]+", r"\Qt\E", "[a-z&&[^b]]", "[[:alpha:]]+"]


@pytest.mark.slow
def test_regexes_are_refused_in_the_brokers_words(spark: SparkSession) -> None:
    topics = frame(spark, TOPICS, [("t", 2), ("Q", 1)], "topic", "num_partitions")
    named = ("group_id", "member_id", "topics", "group_type", "topics_regex")
    rows = [
        (kind, f"m{i}", [], "consumer", regex)
        for kind, of in (("refused", [*_REFUSED, ""]), ("used", _USED))
        for i, regex in enumerate(of)
    ]
    members = frame(spark, MEMBERS, rows, *named)
    with pytest.raises(InputError) as error:
        predict_consumer_groups(members, topics)
    message = str(error.value)
    for words in _REFUSED.values():
        assert f"the broker refuses it (INVALID_REGULAR_EXPRESSION): {words}" in message
    assert "is empty, which to the broker is not a regex" in message
    assert 'group_id="used"' not in message
    result = predict_consumer_groups(members.where("group_id = 'used'"), topics)
    # RE2/J reads [[:alpha:]] as letters, Java as one of ":alph".
    assert {row.topic for row in result.assignment.collect()} == {"t", "Q"}
