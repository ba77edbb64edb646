"""Groups on their way between the protocols: known cases, and what holds of every walk."""

import json
import random
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from kassign_spark.coordinator.migration import MixedGroup
from kassign_spark.coordinator.target_state import ConsumerGroupState
from kassign_spark.groups.read import CLAIM, MEMBER, SUBSCRIPTION, TOPIC
from kassign_spark.inputs import re2j
from kassign_spark.whatif.migrate_kernel import CLIENT, DECLARED, ORDER, migrate_arrow
from kassign_spark.whatif.migration_rules import POLICIES, BrokerRules
from tests.task_rows import SCHEMA

_IDS = {"t": "J6V0K9wQRmmjVk2nq0Y1zA", "u": "b1Xw2dQeT0u3s5gqk7Yp8g"}

Partition = tuple[str, int]


def table(
    group_id: str,
    owned: Mapping[str, Sequence[Partition]],
    sizes: Mapping[str, int],
    *,
    static: Sequence[str] = (),
    instance: str | None = None,
    assignor: str | None = "cooperative-sticky",
    racks: Mapping[str, str] | None = None,
    replica_racks: Sequence[Sequence[str]] | None = None,
    declared: Mapping[str, Sequence[str | None]] | None = None,
    order: Sequence[str] = (),
    clients: Sequence[str] = (),
    families: Mapping[str, str] | None = None,
    subscriptions: Mapping[str, Sequence[str]] | None = None,
) -> list[dict[str, Any]]:
    """The rows of one group."""
    key = {"cluster_id": "", "group_id": group_id, "number": 0, "place": 0, "list_number": 0}
    rows: list[dict[str, Any]] = []
    lists: dict[tuple[str, ...], int] = {}
    for member, partitions in owned.items():
        topics = tuple((subscriptions or {}).get(member, sizes))
        texts: list[str | None] = [
            f"i-{member}" if member in static else instance,
            (racks or {}).get(member),
            assignor,
            *((None, families.get(member)) if families else ()),
        ]
        rows.append(
            {**key, "kind": MEMBER, "member_id": member, "number": 3, "place": -1,
             "list_number": lists.setdefault(topics, len(lists)), "texts": json.dumps(texts)}
        )  # fmt: skip
        rows += [
            {**key, "kind": CLAIM, "member_id": member, "topic": topic, "number": partition}
            for topic, partition in partitions
        ]
    rows += [
        {**key, "kind": SUBSCRIPTION, "list_number": number, "texts": json.dumps(topics)}
        for topics, number in lists.items()
    ]
    for topic, size in sizes.items():
        of_replicas = json.dumps(replica_racks) if replica_racks else None
        row = {**key, "kind": TOPIC, "topic": topic, "number": size, "texts": of_replicas}
        rows.append({**row, "member_id": _IDS.get(topic)})
    for member, declaration in (declared or {}).items():
        rows.append(
            {**key, "kind": DECLARED, "member_id": member, "texts": json.dumps(declaration)}
        )
    for place, member in enumerate(order, 100):
        rows.append({**key, "kind": ORDER, "member_id": member, "number": place})
    rows += [{**key, "kind": CLIENT, "texts": text} for text in clients]
    return rows


def migrated(
    rows: Sequence[dict[str, Any]],
    to: str = "consumer",
    assignor: str | None = None,
    rules: BrokerRules | None = None,
) -> dict[str, dict[str, Any]]:
    group_table = pa.Table.from_pylist(list(rows), schema=SCHEMA)
    chosen = assignor or {"consumer": "uniform", "classic": "cooperative-sticky"}[to]
    result = migrate_arrow(group_table, to=to, assignor=chosen, rules=rules or BrokerRules())
    return {row["group_id"]: row for of in result for row in of.to_pylist()}


def dealt(members: Sequence[str], sizes: Mapping[str, int]) -> dict[str, list[Partition]]:
    owned: dict[str, list[Partition]] = {member: [] for member in members}
    everything = [(topic, p) for topic, size in sizes.items() for p in range(size)]
    for place, partition in enumerate(everything):
        owned[members[place % len(members)]].append(partition)
    return owned


def test_members_of_several_libraries() -> None:
    sizes = {"t": 4}
    owned = dealt(["a", "b"], sizes)
    rows = [
        *table("mixed", owned, sizes, assignor="range", families={"b": "sarama"}),
        *table("alike", owned, sizes, assignor="range", families={"a": "sarama", "b": "sarama"}),
        *table("java", owned, sizes, assignor="range", families={"b": "java"}),
    ]
    details = {group: row["detail"] for group, row in migrated(rows).items()}
    assert details == {
        "mixed": "members run java, sarama: each rebalance of the classic protocol follows the "
        "rules of the one that leads then",
        "alike": None,
        "java": None,
    }


def test_a_newcomer_to_a_group_of_range_takes_two() -> None:
    """kip-848.md, 8: range's 4/4 and a newcomer gave 3/3/2 with two moves."""
    state = ConsumerGroupState(["a", "b", "c"], [["t"]] * 3, ["t"], [8], [_IDS["t"]])
    group = MixedGroup(
        state, np.repeat([0, 1], 4), np.zeros(3, bool), np.array([True, True, False])
    )
    change = group.join(2, as_new=True)
    assert np.bincount(change.after).tolist() == [3, 3, 2]
    assert len(change.moves) == 2
    # Both others are classic and eager: they stop everything, also what they keep.
    assert change.pauses.all()


def test_members_without_a_place_in_the_order_come_last() -> None:
    owned = {name: [("t", p)] for p, name in enumerate("abc")}
    row = migrated(table("g", owned, {"t": 3}, order=["c", "b"]))["g"]
    assert list(dict.fromkeys(step["member_id"] for step in row["steps"])) == ["c", "b", "a"]


def test_static_members_go_for_free() -> None:
    owned = {"a": [("t", p) for p in range(7)], "b": [("t", 7)]}
    row = migrated(table("g", owned, {"t": 8}, static=["a", "b"], order=["b", "a"]))["g"]
    steps = [(s["member_id"], s["event"], s["unread"], s["is_rebalance"]) for s in row["steps"]]
    assert steps == [("b", "replace", 1, False), ("a", "replace", 7, False)]
    assert (row["verdict"], row["way"], row["moved"], row["paused"]) == ("ready", "online", 0, 0)
    # Nobody has computed a target yet; the first change will, and level 7 and 1.
    assert (row["end_moved"], row["next_moved"]) == (0, 3)


@pytest.mark.parametrize(
    ("assignor", "paused"), [("cooperative-sticky", [0, 4, 0, 4]), ("range", [4, 8, 0, 4])]
)
def test_a_dynamic_group_step_by_step(assignor: str, paused: list[int]) -> None:
    owned = {"a": [("t", p) for p in range(4)], "b": [("t", p) for p in range(4, 8)]}
    row = migrated(table("g", owned, {"t": 8}, assignor=assignor))["g"]
    steps = row["steps"]
    assert [(s["member_id"], s["event"]) for s in steps] == [
        ("a", "leave"), ("a", "join"), ("b", "leave"), ("b", "join"),
    ]  # fmt: skip
    # The first rebalance is the classic one of those that stay.
    assert [s["group_type"] for s in steps] == ["classic", "consumer", "consumer", "consumer"]
    assert [s["unread"] for s in steps] == [4, 0, 4, 0]
    moved = [4, 4, 4, 4]
    assert [s["moved"] for s in steps] == moved
    # b is classic until it leaves: where it is eager, it gives up all that it has each time.
    assert [s["paused"] for s in steps] == paused
    assert row["moved"] == sum(moved)
    assert [s["pausing_members"] for s in steps][1:] == [["b"], [], ["a"]]


def test_a_group_of_one_is_empty_in_between() -> None:
    owned = {"a": [("t", p) for p in range(4)]}
    for to in ("consumer", "classic"):
        row = migrated(table("g", owned, {"t": 4}), to)["g"]
        assert [(s["event"], s["unread"], s["moved"]) for s in row["steps"]] == [
            ("leave", 4, 0),
            ("join", 0, 0),
        ]
        assert (row["moved"], row["paused"], row["end_moved"]) == (0, 0, 0)
        # An empty group takes members of either protocol, whatever the policy.
        for policy in POLICIES:
            row = migrated(table("g", owned, {"t": 4}), to, rules=BrokerRules(policy))["g"]
            assert (row["verdict"], row["way"]) == ("ready", "offline")
        static = table("g", owned, {"t": 4}, static=["a"])
        row = migrated(static, to, rules=BrokerRules("disabled"))["g"]
        assert (row["verdict"], row["way"]) == ("blocked", "offline")


def test_a_task_without_such_groups() -> None:
    """Claims of groups that have the protocol already come along."""
    rows = table("g", {"a": [("t", 0)]}, {"t": 1})
    assert migrated([row for row in rows if row["kind"] == CLAIM]) == {}


def test_the_way_back() -> None:
    owned = dealt(["a", "b", "c"], {"t": 9})
    row = migrated(table("g", owned, {"t": 9}, assignor="uniform"), "classic", "range")["g"]
    steps = row["steps"]
    assert [s["group_type"] for s in steps] == ["consumer"] * 4 + ["classic"] * 2
    # Had c gone before the others settled, both would have been told that they lost theirs.
    assert [s["may_lose_members"] for s in steps] == [[]] * 4 + [["a", "b"], []]
    # From then on it is the classic client: range gives blocks again, and all revoke all.
    assert [s["paused"] for s in steps][4:] == [6, 9]
    static = migrated(
        table("g", owned, {"t": 9}, static=["a", "b", "c"], assignor="uniform"), "classic", "range"
    )["g"]
    assert [s["event"] for s in static["steps"]] == ["replace"] * 3
    assert [s["group_type"] for s in static["steps"]] == ["consumer", "consumer", "classic"]
    assert static["next_moved"] > static["moved"] == 0


def test_racks_that_no_coordinator_looks_at() -> None:
    """Each member reads what is in its rack, until the holes of restarts go round."""
    members = ["a", "b", "c"]
    owned = {m: [("t", 3 * i + j) for j in range(3)] for i, m in enumerate(members)}
    racks = [[m] for m in members for _ in range(3)]
    rows = table("g", owned, {"t": 9}, racks={m: m for m in members}, replica_racks=racks)
    row = migrated(rows)["g"]
    reader = {move["partition"]: move for step in row["steps"] for move in step["moves"]}
    across = sum([move["to_member_id"]] != racks[p] for p, move in reader.items())
    assert (row["cross_rack_before"], row["cross_rack_after"]) == (0, across)
    assert across > 1
    assert row["verdict"] == "risky"
    assert row["detail"].startswith(f"{across} more partitions read across racks in the end")


def _declaration(pattern: str) -> dict[str, Any]:
    return {"declared": {"a": [pattern, re2j.problem(pattern), None]}}


_OF_UPGRADES: list[tuple[dict[str, Any], BrokerRules, str, str | None, str | None]] = [
    ({}, BrokerRules(), "ready", "online", None),
    ({"assignor": "stream"}, BrokerRules(), "blocked", None, "Kafka Streams"),
    ({"assignor": "sessioned"}, BrokerRules(), "blocked", None, "Kafka Connect"),
    ({"assignor": "own"}, BrokerRules(), "risky", "online", "assignor own is none of Kafka's own"),
    ({"assignor": None}, BrokerRules(), "risky", "online", "a member names no assignor"),
    ({}, BrokerRules("upgrade"), "risky", "online", "no way back online"),
    ({}, BrokerRules("downgrade"), "blocked", "offline", "policy is downgrade"),
    ({}, BrokerRules("disabled"), "blocked", "offline", "policy is disabled"),
    ({}, BrokerRules(max_size=1), "blocked", None, "2 members, more than the 1 of"),
    ({}, BrokerRules(max_size=2), "ready", "online", None),
    ({"instance": "i"}, BrokerRules(), "blocked", None, "UNRELEASED_INSTANCE_ID"),
    ({"instance": "i", "static": ["a"]}, BrokerRules(), "ready", "online", None),
    ({"clients": ["client x: no"]}, BrokerRules(), "blocked", None, "client x: no"),
    (
        _declaration("t|(?!u)"),
        BrokerRules(),
        "risky",
        "online",
        "invalid or unsupported Perl syntax; as",
    ),
    (
        _declaration("(t{500}){3}"),
        BrokerRules(),
        "risky",
        "online",
        "SubscriptionPattern it is not resolv",
    ),
    ({"declared": {"a": [".*", "internal", None]}}, BrokerRules(), "risky", "online", "internal"),
    ({"declared": {"a": ["t", None, None]}}, BrokerRules(), "ready", "online", None),
    ({"assignor": "range"}, BrokerRules(), "risky", "online", "range gives one member the same"),
]
_OF_DOWNGRADES: list[tuple[dict[str, Any], BrokerRules, str, str | None, str | None]] = [
    ({}, BrokerRules(), "ready", "online", None),
    ({}, BrokerRules("downgrade"), "ready", "online", None),
    ({}, BrokerRules("upgrade"), "blocked", "offline", "stay unread until somebody joins"),
    ({}, BrokerRules("disabled"), "blocked", "offline", "INCONSISTENT_GROUP_PROTOCOL"),
    (
        {"declared": {"b": [None, None, "t.*"]}},
        BrokerRules(),
        "blocked",
        None,
        "member b subscribes",
    ),
    ({}, BrokerRules(max_size=1), "blocked", None, "group.max.size"),
]


@pytest.mark.parametrize(("to", "cases"), [("consumer", _OF_UPGRADES), ("classic", _OF_DOWNGRADES)])
def test_verdicts(to: str, cases: list[tuple[Any, ...]]) -> None:
    sizes = {"t": 2, "u": 2}
    for group_rows, rules, verdict, way, says in cases:
        row = migrated(table("g", dealt(["a", "b"], sizes), sizes, **group_rows), to, rules=rules)[
            "g"
        ]
        assert (row["verdict"], row["way"]) == (verdict, way), (group_rows, rules, row["detail"])
        assert (row["detail"] is None) if says is None else (says in row["detail"]), row["detail"]


def _random_group(rng: random.Random, name: str) -> tuple[list[dict[str, Any]], Any]:
    members = [f"{name}-{i}" for i in range(rng.randint(1, 8))]
    sizes = {topic: rng.randint(1, 12) for topic in rng.sample(["t", "u", "v"], rng.randint(1, 3))}
    alike = rng.random() < 0.5
    subscriptions = {
        m: sorted(sizes) if alike else sorted(rng.sample(sorted(sizes), rng.randint(1, len(sizes))))
        for m in members
    }
    owned: dict[str, list[Partition]] = {m: [] for m in members}
    for topic, size in sizes.items():
        readers = [m for m in members if topic in subscriptions[m]]
        for partition in range(size if readers else 0):
            owned[rng.choice(readers)].append((topic, partition))
    static = [m for m in members if rng.random() < 0.3]
    order = rng.sample(members, len(members))
    assignor = rng.choice(["range", "roundrobin", "sticky", "cooperative-sticky"])
    rows = table(
        name, owned, sizes, static=static, order=order, assignor=assignor,
        subscriptions=subscriptions,
    )  # fmt: skip
    return rows, (owned, sizes, subscriptions, static, order)


@pytest.mark.parametrize("to", ["consumer", "classic"])
def test_what_holds_of_every_walk(to: str) -> None:
    rng = random.Random(848)
    groups = {f"g{i}": _random_group(rng, f"g{i}") for i in range(150)}
    rows = [row for of, _ in groups.values() for row in of]
    result = migrated(rows, to)
    rng.shuffle(rows)
    assert migrated(rows, to) == result
    for name, (_, (owned, sizes, subscriptions, static, order)) in groups.items():
        row, holder = result[name], {tp: m for m, of in owned.items() for tp in of}
        first, everything = dict(holder), len(holder)
        events = [(s["member_id"], s["event"]) for s in row["steps"]]
        assert events == [
            (m, event)
            for m in order
            for event in (["replace"] if m in static else ["leave", "join"])
        ]
        gone: dict[Partition, str] = {}
        for step in row["steps"]:
            moves = {(m["topic"], m["partition"]): m for m in step["moves"]}
            assert step["moved"] == len(moves)
            for tp, move in moves.items():
                assert holder[tp] == move["from_member_id"] != move["to_member_id"]
                assert tp[0] in subscriptions[move["to_member_id"]]
                if step["event"] == "leave":
                    assert move["to_member_id"] != step["member_id"]
                holder[tp] = move["to_member_id"]
            if step["event"] == "leave":
                # Partitions that nobody else reads wait for the member to come back.
                left = [tp for tp, m in holder.items() if m == step["member_id"]]
                others = {
                    t for m in subscriptions if m != step["member_id"] for t in subscriptions[m]
                }
                assert not {tp[0] for tp in left} & others
                gone = {tp: holder.pop(tp) for tp in left}
            elif step["event"] == "join":
                # They are nobody's then, so it is no move; only their reader has a new id.
                readers = {t: [m for m in subscriptions if t in subscriptions[m]] for t in sizes}
                assert all(readers[tp[0]] == [step["member_id"]] for tp in gone)
                holder |= gone
                gone = {}
            assert step["paused"] >= sum(
                m["from_member_id"] != step["member_id"] for m in moves.values()
            )
            assert step["member_id"] not in step["pausing_members"] or step["event"] == "join"
        assert len(holder) == everything
        assert row["moved"] == sum(s["moved"] for s in row["steps"])
        assert row["paused"] == sum(s["paused"] for s in row["steps"])
        assert row["end_moved"] == sum(holder[tp] != first[tp] for tp in first)
        if not static:
            assert row["next_moved"] == 0
