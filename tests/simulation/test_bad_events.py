"""Events that are not possible: one clear line each, with the file's line where there is one."""

from typing import Any

import pytest
from pyspark.sql import SparkSession

from kassign_spark.errors import InputError, SchemaError
from kassign_spark.simulation.events import check_events, with_steps
from kassign_spark.simulation.simulate import simulate
from kassign_spark.simulation.timeouts import Timeouts
from tests import builders
from tests.simulation.test_simulate import e, events_frame

_AT = {"group_id": "g", "member_id": "C0"}
_STATIC = [
    ({"kind": None}, "unknown kind null; known are member_joins, member_leaves, "),
    ({"kind": "member_left", **_AT}, 'unknown kind "member_left"; known are '),
    ({"kind": "member_leaves", "group_id": "g"}, "needs member_id"),
    ({"kind": "member_leaves", "member_id": "C0"}, "needs group_id"),
    ({"kind": "member_leaves", "group_id": "g", "member_id": ""}, "member_id is empty"),
    ({"kind": "member_leaves", **_AT, "topic": "t"}, "has no use for topic"),
    ({"kind": "topic_grows", "topic": "t"}, "needs num_partitions"),
    ({"kind": "topic_appears", "topic": "t", "num_partitions": 0}, "num_partitions is 0; must be"),
    (
        {"kind": "topic_appears", "topic": "t", "num_partitions": 2**31},
        "num_partitions is 2147483648; must be a whole number from 1 to 10000000",
    ),
    ({"kind": "topic_disappears", "topic": "t", "group_id": "g"}, "has no use for group_id"),
    (
        {"kind": "subscription_changes", "group_id": "g"},
        "needs topics, topics_pattern or topics_regex",
    ),
    (
        {"kind": "member_joins", **_AT, "topics": ["t"], "topics_pattern": "t"},
        "give topics_pattern, or topics and topics_regex, not both",
    ),
    ({"kind": "member_joins", **_AT, "topics": ["t", ""]}, "topics has a null or empty name"),
    ({"kind": "member_joins", **_AT, "topics": [None]}, "topics has a null or empty name"),
    ({"kind": "assignor_changes", **_AT}, "needs assignors"),
    ({"kind": "assignor_changes", **_AT, "assignors": []}, "assignors is empty"),
    (
        {"kind": "member_joins", **_AT, "assignors": ["range", "rnage"]},
        'unknown assignor ["rnage"]; known are cooperative-sticky, range, ',
    ),
    ({"kind": "member_restarts", **_AT, "downtime_ms": -1}, "downtime_ms is -1; must be"),
    ({"kind": "member_crashes", **_AT, "session_timeout_ms": 0}, "session_timeout_ms is 0; must"),
    ({"kind": "member_crashes", **_AT, "event": None}, "column event: give each event a number"),
]


def test_bad_events_are_refused_all_at_once(spark: SparkSession) -> None:
    rows = [{"event": n, "line": n + 1, **row} for n, (row, _) in enumerate(_STATIC)]
    with pytest.raises(InputError) as error:
        check_events(events_frame(spark, rows).repartition(2), Timeouts())
    message = str(error.value)
    assert "\n" not in message
    for n, (row, says) in enumerate(_STATIC):
        number = "without a number" if row.get("event", n) is None else n
        kind = f" ({row['kind']})" if row["kind"] else ""
        assert f"line {n + 1}: event {number}{kind}: {says}" in message


def test_events_have_an_order(spark: SparkSession) -> None:
    at_once = [
        {"event": 1, "kind": "member_leaves", **_AT},
        {"event": 1, "kind": "member_leaves", "group_id": "h", "member_id": "C0"},
        {"event": 2, "kind": "topic_disappears", "topic": "t"},
        {"event": 3, "kind": "member_restarts", **_AT},
        {"event": 5, "kind": "member_joins", **_AT},
        {"event": 4, "kind": "member_leaves", "group_id": "h", "member_id": "C1"},
        {"event": 6, "kind": "topic_disappears", "topic": "u"},
        {"event": 7, "kind": "topic_disappears", "topic": "v"},
    ]
    steps = with_steps(check_events(events_frame(spark, at_once).repartition(3), Timeouts()).frame)
    rows = sorted((r.step, r.event, r.group_id or "", r.stage) for r in steps.collect())
    assert rows == [
        (1, 1, "g", 1),
        (1, 1, "h", 1),
        (2, 2, "", 1),
        (3, 3, "g", 1),
        (3, 4, "h", 1),
        (4, 3, "g", 2),
        (5, 5, "g", 1),
        (6, 6, "", 1),
        (7, 7, "", 1),
    ]
    twice = [{**at_once[0], "event": 2}, at_once[2]]
    with pytest.raises(InputError, match="another event has the same number"):
        check_events(events_frame(spark, twice), Timeouts())


_IMPOSSIBLE = [
    (e("member_leaves", "C9", group_id="g"), 'group "g" has no member "C9"'),
    (e("member_leaves", "C0", group_id="x"), 'group "x" does not exist'),
    (
        e("member_joins", "C0", group_id="new", topics=["t"]),
        'group "new" does not exist: a new group needs topics or topics_pattern, and assignors',
    ),
    (e("member_joins", "C0", group_id="h"), 'member "C0" is in group "h" already'),
    (
        e("subscription_changes", group_id="i", topics_pattern="("),
        'topics_pattern "(": not a pattern of',
    ),
    (
        e("member_joins", "C9", group_id="differ"),
        'the members of group "differ" do not all subscribe alike: give topics',
    ),
]
_OF_TOPICS = [
    (e("topic_grows", topic="t", num_partitions=4), 'topic "t" has 4 partitions and cannot get 4'),
    (e("topic_disappears", topic="no"), 'topic "no" does not exist'),
    (e("topic_appears", topic="t", num_partitions=4), 'topic "t" is there already, with 4'),
]


def _tables(spark: SparkSession) -> tuple[Any, Any, None]:
    rows: list[dict[str, Any]] = [
        {"group_id": g, "member_id": "C0", "topics": ["t"]}
        for g in ("g", "h", "i", "differ", "static")
    ]
    rows[-1]["group_instance_id"] = "i0"
    rows.append({"group_id": "differ", "member_id": "C1", "topics": ["u"]})
    members = builders.members(spark, [{**row, "assignor": "range"} for row in rows])
    return members, builders.topics(spark, {"t": 4}), None


def test_impossible_events_are_refused_with_their_lines(spark: SparkSession) -> None:
    rows = [{"event": 1, "line": 10 + n, **row} for n, (row, _) in enumerate(_IMPOSSIBLE)]
    with pytest.raises(InputError) as error:
        simulate(*_tables(spark), events_frame(spark, rows))
    message = str(error.value).split("; ")
    assert len(message) == len(_IMPOSSIBLE)
    for n, (row, says) in enumerate(_IMPOSSIBLE):
        assert message[n].startswith(f"line {10 + n}: event 1 ({row['kind']}): {says}")


def test_impossible_counts_are_refused(spark: SparkSession) -> None:
    """Each in a cluster of its own: events of topics come one after another in a cluster."""
    members, topics, _ = _tables(spark)
    clusters = spark.createDataFrame(
        [(f"c{n}",) for n in range(len(_OF_TOPICS))], "cluster_id string"
    )
    rows = [
        {"event": 1, "line": 5 + n, "cluster_id": f"c{n}", **row}
        for n, (row, _) in enumerate(_OF_TOPICS)
    ]
    events = events_frame(spark, rows)
    with pytest.raises(InputError) as error:
        simulate(members.crossJoin(clusters), topics.crossJoin(clusters), None, events)
    message = str(error.value).split("; ")
    assert len(message) == len(_OF_TOPICS)
    for n, (row, says) in enumerate(_OF_TOPICS):
        assert message[n].startswith(f"line {5 + n}: event 1 ({row['kind']}): {says}")


def test_events_of_other_clusters_are_refused(spark: SparkSession) -> None:
    members, topics, _ = _tables(spark)
    named = {"event": 1, "cluster_id": "b", **e("topic_appears", topic="x", num_partitions=1)}
    events = events_frame(spark, [named])
    with pytest.raises(SchemaError, match="cluster_id"):
        simulate(members, topics, None, events)
