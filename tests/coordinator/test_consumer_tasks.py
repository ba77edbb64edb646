"""Groups folded to rows, through the kernel and back, without Spark."""

import json
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from kassign_spark.groups.read import CLAIM, MEMBER, REGEX, SUBSCRIPTION, TARGET, TOPIC, read_kinds
from kassign_spark.plans.consumer_tasks import (
    ConsumerGroup,
    consumer_groups,
    predict_consumer_arrow,
)
from tests.task_rows import SCHEMA

_TOPIC_IDS = {"t": "J6V0K9wQRmmjVk2nq0Y1zA", "u": "b1Xw2dQeT0u3s5gqk7Yp8g"}


def member(seq: int, name: str, topics: list[str], **more: Any) -> dict[str, Any]:
    texts = [more.get(key) for key in ("instance", "rack", "assignor", "topics_regex")]
    return {"place": seq, "member_id": name, "topics": topics, "number": 3, "texts": texts}


def rows_of(group: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for number, row in enumerate(group["members"]):
        texts = json.dumps(row["texts"])
        yield {**row, "kind": MEMBER, "list_number": number, "texts": texts}
        lists = {"list_number": number, "texts": json.dumps(row["topics"])}
        yield {"kind": SUBSCRIPTION, **lists}
    for name, count in (("t", 4), ("u", 2)):
        yield {"kind": TOPIC, "topic": name, "number": count, "member_id": _TOPIC_IDS[name]}
    for regex, names in group.get("regexes", {}).items():
        yield {"kind": REGEX, "topic": regex, "texts": json.dumps(names)}
    for kind, name in ((TARGET, "target"), (CLAIM, "owned")):
        for member_id, topic, partition, *position in group.get(name, ()):
            place = {"place": position[0]} if position else {}
            row = {"member_id": member_id, "topic": topic, "number": partition}
            yield {"kind": kind, **row, **place}


def table_of(*groups: dict[str, Any]) -> pa.Table:
    blank = dict.fromkeys(SCHEMA.names) | {"number": 0, "place": 0, "list_number": 0}
    rows = [
        blank
        | {"cluster_id": "", "group_id": f"g{i}"}
        | {name: value for name, value in row.items() if name in blank}
        for i, group in enumerate(groups)
        for row in rows_of(group)
    ]
    return pa.Table.from_pylist(rows, SCHEMA)


def only_group(group: dict[str, Any]) -> ConsumerGroup:
    table = table_of(group)
    batch, (claims, target), (_, rows) = read_kinds(table, (CLAIM, TARGET))
    positions = table["place"].to_numpy()[rows]
    (read,) = consumer_groups(table, batch, claims, target, positions)
    return read


def predicted(*groups: dict[str, Any], assignor: str | None = None) -> list[dict[str, Any]]:
    (answers,) = predict_consumer_arrow(table_of(*groups), assignor=assignor, with_steps=True)
    rows: list[dict[str, Any]] = answers.to_pylist()
    return rows


def assigned(row: dict[str, Any]) -> dict[str, list[tuple[str, int]]]:
    result: dict[str, list[tuple[str, int]]] = {}
    for run in row["assigned"]:
        result.setdefault(run["member_id"], []).extend((run["topic"], p) for p in run["partitions"])
    return result


_GROUPS: tuple[dict[str, Any], ...] = (
    {
        "members": [member(0, "a", ["t"]), member(1, "b", ["t"])],
        "target": [("a", "t", p, p) for p in range(4)],
        "owned": [("a", "t", p) for p in range(4)],
    },
    {"members": [member(0, "a", [], topics_regex="[tu]")], "regexes": {"[tu]": ["t", "u"]}},
    {"members": [member(0, "a", ["t"], assignor="uniform"), member(1, "b", [], assignor="range")]},
)


def test_groups_of_a_batch() -> None:
    rows = predicted(*_GROUPS)
    assert [row["verdict"] for row in rows] == ["ok", "ok", "never_settles"]
    assert "of a and b" in rows[2]["detail"]
    kept = assigned(rows[0])
    assert {member: len(tps) for member, tps in kept.items()} == {"a": 2, "b": 2}
    assert assigned(rows[1]) == {"a": [("t", p) for p in range(4)] + [("u", 0), ("u", 1)]}
    assert [row["assignor"] for row in rows] == ["uniform"] * 3


def test_steps_of_a_batch() -> None:
    rows = predicted(*_GROUPS)
    first = [(s["round"], s["member_id"], s["action"]) for s in rows[0]["steps"]]
    assert first.count((1, "a", "revoked")) == first.count((3, "b", "assigned")) == 2
    fresh = {(s["round"], s["action"]) for s in rows[1]["steps"]}
    assert fresh == {(1, "assigned")}


def test_a_group_is_not_disturbed_by_its_neighbours() -> None:
    rows = predicted(*_GROUPS)
    for i, group in enumerate(_GROUPS):
        (alone,) = predicted(group)
        assert {**alone, "group_id": f"g{i}"} == rows[i]


def test_owned_partitions_of_topics_that_are_gone_are_given_up() -> None:
    (row,) = predicted({"members": [member(0, "a", ["t"])], "owned": [("a", "gone", 5)]})
    steps = [(s["round"], s["topic"], s["partition"], s["action"]) for s in row["steps"]]
    assert (1, "gone", 5, "revoked") in steps
    assert (2, "t", 0, "assigned") in steps


def test_positions_count_only_when_all_are_there() -> None:
    group = only_group({"members": [member(0, "a", ["t"])], "target": [("a", "t", 0, -1)]})
    assert len(group.state.target_positions) == 0
    assert group.state.target_partitions.tolist() == [0]


def test_positions_are_those_of_their_rows() -> None:
    target = [("a", "t", 0, 2), ("b", "t", 1, 0), ("a", "t", 3, 0), ("a", "u", 0, 1)]
    members = [member(1, "a", ["t"]), member(0, "b", ["t"])]
    state = only_group({"members": members, "target": target}).state
    assert state.member_ids == ["b", "a"]
    columns = (state.target_members, state.target_topics, state.target_partitions)
    rows = [
        (state.member_ids[m], state.topics[t], p, position)
        for m, t, p, position in zip(*columns, state.target_positions, strict=True)
    ]
    assert sorted(rows) == sorted(target)


def test_rows_of_strangers_are_left_out() -> None:
    strangers = {"target": [("nobody", "t", 0, 0)], "owned": [("nobody", "t", 0)]}
    group = only_group({"members": [member(0, "a", ["t"])], **strangers})
    assert len(group.state.target_members) == len(group.owned_members) == 0


def test_rows_of_groups_without_members_are_left_out() -> None:
    nobody = {"members": [], "target": [("a", "t", 1, 7)], "owned": [("a", "t", 1)]}
    alone = predicted(_GROUPS[0])
    both = predicted(nobody, _GROUPS[0])
    assert [{**row, "group_id": "g0"} for row in both] == alone
