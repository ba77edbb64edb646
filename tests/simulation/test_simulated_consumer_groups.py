"""Events in groups of the new protocol inside a task: rows of the tables of KIP-848's rules."""

from collections.abc import Sequence
from typing import Any

import pytest

from kassign_spark.simulation.questions import Growth, Sweep
from kassign_spark.simulation.sweep_kernel import Variant, sweep_arrow
from tests.simulation.task_events import Row, simulated, task_table

_ID = "J6V0K9wQRmmjVk2nq0Y1zA"


def group_of(count: int, *, static: bool = False, **columns: Any) -> tuple[list[Row], list[Row]]:
    """A settled group over topic t with twice as many partitions, and its target."""
    members = [
        {
            "group_id": "g",
            "member_id": f"m{i}",
            "topics": ["t"],
            "generation": 7,
            "member_seq": i,
            "group_type": "consumer",
            "group_instance_id": f"i{i}" if static else None,
            **columns,
        }
        for i in range(count)
    ]
    target = [
        {"group_id": "g", "member_id": f"m{p // 2}", "topic": "t", "partition": p, "position": p}
        for p in range(2 * count)
    ]
    return members, target


def rows_by_event(
    members: Sequence[Row], target: Sequence[Row], *events: Row
) -> list[list[dict[str, Any]]]:
    """Return the rows of each known event and stage."""
    topics = [
        {"topic": "t", "num_partitions": len(target), "topic_id": _ID},
        {"topic": "u", "num_partitions": 3, "topic_id": "b1Xw2dQeT0u3s5gqk7Yp8g"},
    ]
    owned = [{k: v for k, v in row.items() if k != "position"} for row in target]
    numbered = [
        {**({} if e["kind"].startswith("topic_") else {"group_id": "g"}), **e, "event": n}
        for n, e in enumerate(events)
    ]
    result: dict[tuple[int, int], list[dict[str, Any]]] = {}
    for row in simulated(members, topics, owned, numbered, target):
        result.setdefault((row["event"], row["stage"]), []).append(row)
    return list(result.values())


def changes(rows: Sequence[dict[str, Any]]) -> list[tuple[Any, ...]]:
    return sorted(
        (r["round"], r["member_id"], r["topic"], r["partition"], r["action"])
        for r in rows
        if r["action"] in ("revoked", "assigned", "lost")
    )


@pytest.mark.parametrize(
    ("static", "event", "rises", "epoch", "computed", "says"),
    [
        (False, {"kind": "member_joins", "member_id": "new"}, True, 8, 0, "a new member joins"),
        (
            False,
            {"kind": "member_joins", "member_id": "new", "computed_before_ms": 400},
            *(True, 8, 5_600, "a new member joins"),
        ),
        (
            False,
            {"kind": "member_joins", "member_id": "new", "topics": []},
            *(False, 7, None, "a new member joins with an empty list of topics"),
        ),
        (False, {"kind": "member_leaves", "member_id": "m1"}, True, 8, 5_000, "leaves"),
        (
            False,
            {"kind": "member_leaves", "member_id": "m1", "stop": "remain_in_group"},
            *(True, 8, 50_000, "closes without leaving"),
        ),
        (True, {"kind": "member_leaves", "member_id": "m1"}, True, 8, 50_000, "the epoch -2"),
        (
            True,
            {"kind": "member_leaves", "member_id": "i1", "stop": "leave_group"},
            *(True, 8, 5_000, "a static member leaves"),
        ),
        (False, {"kind": "member_crashes", "member_id": "m1"}, True, 8, 50_000, "fenced"),
        (
            False,
            {"kind": "member_polls_too_late", "member_id": "m1"},
            *(True, 8, 305_000, "joins again at its next poll"),
        ),
        (
            True,
            {"kind": "member_polls_too_late", "member_id": "m1"},
            *(True, 8, 350_000, "a static member leaves with the epoch -2"),
        ),
        (
            False,
            {"kind": "subscription_changes", "member_id": "m1", "topics": ["t", "none"]},
            *(True, 8, 0, "a member's subscription changes"),
        ),
        (
            False,
            {"kind": "subscription_changes", "member_id": "m1", "topics": ["t"]},
            *(False, 7, None, "the same topics as before"),
        ),
        (
            False,
            {"kind": "subscription_changes", "topics_regex": "t|u"},
            *(True, 11, 5_000, "the broker has resolved it"),
        ),
        (False, {"kind": "topic_grows", "topic": "t", "num_partitions": 9}, True, 8, 5_000, "more"),
        (False, {"kind": "topic_disappears", "topic": "t"}, True, 8, 5_000, "is deleted"),
        (False, {"kind": "topic_disappears", "topic": "u"}, False, 7, None, "no member subscribes"),
        (
            False,
            {"kind": "topic_changes_racks", "topic": "t", "replica_racks": [["a"]]},
            *(True, 8, 5_000, "which neither assignor looks at"),
        ),
        (
            False,
            {"kind": "group_settings_change", "session_timeout_ms": 50_000},
            *(False, 7, None, "settings"),
        ),
    ],
)
def test_events(
    static: bool, event: Row, rises: bool, epoch: int, computed: int | None, says: str
) -> None:
    (rows,) = rows_by_event(*group_of(3, static=static), event)
    row = rows[0]
    assert (row["rebalance"], row["group_epoch"], row["protocol"]) == (rises, epoch, "consumer")
    assert row["computed_within_ms"] == computed
    assert says in row["reason"]
    assert (row["settled_within_ms"] is None) == (not rises)


def test_only_what_moves_is_revoked_and_it_comes_in_the_third_round() -> None:
    (rows,) = rows_by_event(
        *group_of(2), {"kind": "topic_grows", "topic": "t", "num_partitions": 5}
    )
    assert [(r[0], r[4]) for r in changes(rows)] == [(1, "assigned")]
    (rows,) = rows_by_event(*group_of(2), {"kind": "member_joins", "member_id": "new"})
    assert [(r[0], r[4]) for r in changes(rows)] == [(1, "revoked"), (3, "assigned")]
    assert rows[0]["settled_within_ms"] == 10_000


def test_a_topic_that_is_made_again_is_taken_first() -> None:
    (rows,) = rows_by_event(
        *group_of(2), {"kind": "topic_is_recreated", "topic": "t", "num_partitions": 2}
    )
    actions = [(r[0], r[4]) for r in changes(rows)]
    assert actions == [(1, "revoked")] * 4 + [(2, "assigned")] * 2


def test_a_static_restart() -> None:
    restart = {"kind": "member_restarts", "member_id": "i1", "downtime_ms": 10_000}
    (rows,) = rows_by_event(*group_of(3, static=True), restart)
    assert (rows[0]["stage"], rows[0]["rebalance"], rows[0]["group_epoch"]) == (2, False, 7)
    assert changes(rows) == []
    other = rows_by_event(*group_of(3, static=True), {**restart, "topics": ["t", "u"]})
    assert (other[0][0]["rebalance"], other[0][0]["group_epoch"]) == (True, 8)
    late = rows_by_event(*group_of(3, static=True), {**restart, "downtime_ms": 46_000})
    assert [rows[0]["group_epoch"] for rows in late] == [8, 9]
    crashed = rows_by_event(*group_of(3, static=True), {**restart, "stop": "crash"})
    assert "UNRELEASED_INSTANCE_ID" in crashed[1][0]["reason"]
    # The group's own session timeout counts, unless the event has one.
    kept = rows_by_event(
        *group_of(3, static=True),
        {"kind": "group_settings_change", "session_timeout_ms": 60_000},
        {**restart, "downtime_ms": 46_000},
    )
    assert [rows[0]["rebalance"] for rows in kept] == [False, False]


@pytest.mark.parametrize(
    ("more", "stages"),
    [
        ({"downtime_ms": 2_000}, 1),
        ({"downtime_ms": 3_000}, 2),
        ({"downtime_ms": 800, "computed_before_ms": 100, "heartbeat_interval_ms": 100}, 1),
        ({"downtime_ms": 900, "computed_before_ms": 100, "heartbeat_interval_ms": 100}, 2),
    ],
)
def test_a_dynamic_restart_is_free_if_nobody_computes_meanwhile(more: Row, stages: int) -> None:
    restart = {"kind": "member_restarts", "member_id": "m1", **more}
    result = rows_by_event(*group_of(3), restart)
    assert len(result) == stages
    assert result[-1][0]["group_epoch"] == 9
    got = [r[1:4] for r in changes(result[-1]) if r[4] == "assigned" and r[1] == "m1"]
    if stages == 1:
        assert got == [("m1", "t", 2), ("m1", "t", 3)], "the hole, and nothing else"
        assert {r[1] for r in changes(result[0])} == {"m1"}
        assert [r[0] for r in changes(result[0]) if r[4] == "revoked"] == [0, 0], "on closing"
        assert result[0][0]["verdict"] == "drawn"


def test_what_depends_on_ids_that_are_drawn() -> None:
    joins = {"kind": "member_joins", "member_id": "new"}
    (rows,) = rows_by_event(*group_of(3), joins)
    assert (rows[0]["verdict"], rows[0]["detail"]) == (
        "drawn",
        "ids are drawn: of new; with 4 other draws nothing changes",
    )
    leaves = [{"kind": "member_leaves", "member_id": of} for of in ("m1", "m2")]
    rows = rows_by_event(*group_of(4), leaves[0], joins, leaves[1])[2]
    assert rows[0]["verdict"] == "drawn"
    assert "ids are drawn: of new; with 4 other draws the members' counts" in rows[0]["detail"]
    # An id as Kafka's client makes them is taken as it is.
    known = {"kind": "member_joins", "member_id": "Ie5fVIhPQ0CTKBDuKc8vKA"}
    (rows,) = rows_by_event(*group_of(3), known)
    assert (rows[0]["verdict"], rows[0]["detail"]) == ("ok", None)


def test_votes() -> None:
    joins = {"kind": "member_joins", "member_id": "new", "assignors": ["range"]}
    (rows,) = rows_by_event(*group_of(3), joins)
    assert rows[0]["assignor"] == "range", "one vote decides for all that name none"
    members, target = group_of(1, assignor="uniform")
    (rows,) = rows_by_event(members, target, joins)
    assert rows[0]["verdict"] == "never_settles"


@pytest.mark.parametrize(
    ("event", "says"),
    [
        (
            {"kind": "member_joins", "member_id": "new", "assignors": ["sticky"]},
            'group "g": a consumer of the new protocol names one of range, uniform',
        ),
        (
            {"kind": "member_restarts", "member_id": "m1", "stop": "crash"},
            'group "g": a dynamic member that crashes stays until its session ends: give two '
            "events, member_joins with another member_id and member_crashes",
        ),
        (
            {"kind": "topic_changes_racks", "topic": "u", "replica_racks": [["a"]] * 4},
            'topic "u" has 3 partitions, and replica_racks names 4',
        ),
        ({"kind": "member_leaves", "member_id": "x"}, 'group "g" has no member "x"'),
    ],
)
def test_impossible_events(event: Row, says: str) -> None:
    ((row,),) = rows_by_event(*group_of(3), event)
    assert row["problem"] == says


@pytest.mark.parametrize(
    ("event", "says"),
    [
        ({"kind": "member_leaves", "member_id": "m1", "stop": "close"}, "is classic: stop is for"),
        ({"kind": "group_settings_change", "session_timeout_ms": 1}, "settings of their own"),
    ],
)
def test_classic_groups_have_none_of_it(event: Row, says: str) -> None:
    members, _ = group_of(3)
    classic = [{**m, "group_type": None, "assignor": "range"} for m in members]
    ((row,),) = rows_by_event(classic, [], event)
    assert says in row["problem"]


def test_a_sweep_says_what_depends_on_ids() -> None:
    members, target = group_of(4)
    topics = [{"topic": "t", "num_partitions": 8, "topic_id": _ID}]
    owned = [{k: v for k, v in row.items() if k != "position"} for row in target]
    asked = Sweep(members=(-1, 0, 2), partitions=(Growth(), Growth(more=2)))
    variants = [
        Variant(1, "", change, growth, asked)
        for change in asked.members
        for growth in asked.partitions
    ]
    table = task_table(members, topics, owned, [], target)
    rows = [row for piece in sweep_arrow(table, variants=variants) for row in piece.to_pylist()]
    result = {(row["member_change"], row["partition_more"]): row for row in rows}
    counts = ("min_assigned", "max_assigned", "moved_count", "paused_count", "rounds")
    assert [result[0, 0][name] for name in counts] == [2, 2, 0, 0, 0]
    assert [result[-1, 0][name] for name in counts] == [2, 3, 2, 0, 1]
    assert [result[2, 0][name] for name in counts] == [1, 2, 2, 2, 3]
    assert [result[0, 2][name] for name in counts] == [2, 3, 0, 0, 1]
    assert result[0, 0]["detail"] is None
    assert "ids are drawn: of m0+1, m1+2; with 4 other draws" in result[2, 0]["detail"]
