"""Groups folded to rows, through the kernel and back, without Spark."""

from typing import Any

import pyarrow as pa

from kassign_spark.coordinator.arrow import groups_of, predict_batches

_TOPIC_IDS = {"t": "J6V0K9wQRmmjVk2nq0Y1zA", "u": "b1Xw2dQeT0u3s5gqk7Yp8g"}

_MEMBERS = pa.list_(
    pa.struct(
        [
            ("member_seq", pa.int64()),
            ("member_id", pa.string()),
            ("group_instance_id", pa.string()),
            ("topics", pa.list_(pa.string())),
            ("topics_regex", pa.string()),
            ("assignor", pa.string()),
            ("generation", pa.int64()),
        ]
    )
)
_TOPICS = pa.list_(
    pa.struct([("topic", pa.string()), ("topic_id", pa.string()), ("num_partitions", pa.int32())])
)
_REGEXES = pa.list_(pa.struct([("topics_regex", pa.string()), ("names", pa.list_(pa.string()))]))
_HELD = [("member_id", pa.string()), ("topic", pa.string()), ("partition", pa.int64())]
_TARGET = pa.list_(pa.struct([*_HELD, ("position", pa.int64())]))


def member(seq: int, name: str, topics: list[str] | None, **more: Any) -> dict[str, Any]:
    given = {"member_seq": seq, "member_id": name, "topics": topics, "generation": 3}
    return {"group_instance_id": None, "topics_regex": None, "assignor": None, **given, **more}


def batch(*groups: dict[str, Any]) -> pa.RecordBatch:
    topics = [
        {"topic": name, "topic_id": _TOPIC_IDS[name], "num_partitions": n}
        for name, n in (("t", 4), ("u", 2))
    ]
    types = {"members": _MEMBERS, "topics": _TOPICS, "regexes": _REGEXES, "target": _TARGET}
    types["held"] = pa.list_(pa.struct(_HELD))
    columns = {
        name: pa.array([group.get(name, topics if name == "topics" else []) for group in groups], t)
        for name, t in types.items()
    }
    keys = {"cluster_id": [""] * len(groups), "group_id": [f"g{i}" for i in range(len(groups))]}
    return pa.RecordBatch.from_pydict({k: pa.array(v) for k, v in keys.items()} | columns)


def predicted(*groups: dict[str, Any], assignor: str | None = None) -> list[dict[str, Any]]:
    (found,) = predict_batches([batch(*groups)], assignor, True)
    rows: list[dict[str, Any]] = found.to_pylist()
    return rows


def assigned(row: dict[str, Any]) -> dict[str, list[tuple[str, int]]]:
    found: dict[str, list[tuple[str, int]]] = {}
    for run in row["assigned"]:
        found.setdefault(run["member_id"], []).extend((run["topic"], p) for p in run["partitions"])
    return found


_GROUPS: tuple[dict[str, Any], ...] = (
    {
        "members": [member(0, "a", ["t"]), member(1, "b", ["t"])],
        "target": [
            {"member_id": "a", "topic": "t", "partition": p, "position": p} for p in range(4)
        ],
        "held": [{"member_id": "a", "topic": "t", "partition": p} for p in range(4)],
    },
    {"members": [member(0, "a", None, topics_regex="[tu]")], "regexes": [
        {"topics_regex": "[tu]", "names": ["t", "u"]}
    ]},
    {
        "members": [member(0, "a", ["t"], assignor="uniform"), member(1, "b", [], assignor="range")]
    },
)  # fmt: skip


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


def test_held_partitions_of_topics_that_are_gone_are_given_up() -> None:
    held = [{"member_id": "a", "topic": "gone", "partition": 5}]
    (row,) = predicted({"members": [member(0, "a", ["t"])], "held": held})
    steps = [(s["round"], s["topic"], s["partition"], s["action"]) for s in row["steps"]]
    assert (1, "gone", 5, "revoked") in steps
    assert (2, "t", 0, "assigned") in steps


def test_positions_count_only_when_all_are_there() -> None:
    target = [{"member_id": "a", "topic": "t", "partition": 0, "position": None}]
    (group,) = groups_of(batch({"members": [member(0, "a", ["t"])], "target": target}))
    assert len(group.state.target_positions) == 0
    assert group.state.target_partitions.tolist() == [0]


def test_rows_of_strangers_are_left_out() -> None:
    row = {"member_id": "nobody", "topic": "t", "partition": 0, "position": 0}
    held = {"member_id": "nobody", "topic": "t", "partition": 0}
    (group,) = groups_of(
        batch({"members": [member(0, "a", ["t"])], "target": [row], "held": [held]})
    )
    assert len(group.state.target_members) == len(group.held_members) == 0
