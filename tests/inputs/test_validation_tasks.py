"""The kernel of validate, without Spark: by plain looking."""

import random
from collections import Counter
from typing import Any

import pyarrow as pa

from kassign_spark.groups.task_rows import MEMBER, OWNED, SUBSCRIBED
from kassign_spark.validation.tasks import problems_arrow
from tests.task_rows import MEASURED, as_table

SEED = 31
_SIZES = {"t0": 0, "t1": 1, "t4": 4, "t9": 9}
_SCHEMA = pa.unify_schemas(
    [
        MEASURED,
        pa.schema(
            {
                "generation": pa.int64(),
                "member_seq": pa.int64(),
                "group_instance_id": pa.string(),
                "assignor": pa.string(),
                "is_known": pa.bool_(),
                "is_empty": pa.bool_(),
                "group_type": pa.string(),
                "racks": pa.string(),
                "client": pa.string(),
                "is_leader": pa.bool_(),
            }
        ),
    ]
)
Row = dict[str, Any]


def _random_rows(rng: random.Random, group: str) -> list[Row]:
    """A group with faults of every kind; each member once."""
    key = {"cluster_id": "c", "group_id": group}
    # Two by two they have one hash, and so a bucket.
    ids = [f"m{n // 2}{('Aa', 'BB')[n % 2]}" for n in range(rng.randint(1, 14))]
    alike = rng.sample([*_SIZES, "gone"], 2) if rng.random() < 0.7 else None
    rows: list[Row] = []
    assignors = rng.choice([["sticky"], ["range", "sticky"], [None], ["fair"]])
    for member in ids:
        topics = alike or rng.sample([*_SIZES, "gone"], rng.randint(0, 4))
        rows.append(
            {
                **key,
                "kind": MEMBER,
                "member_id": member,
                "texts": topics,
                "generation": rng.choice([None, 3, 4, 4, 4]),
                "member_seq": None,
                "group_instance_id": rng.choice([None, None, "i1", "i2"]),
                "assignor": rng.choice(assignors),
            }
        )
        rows += [{**key, "kind": SUBSCRIBED, "topic": topic, **_about(topic)} for topic in topics]
    for topic, size in _SIZES.items():
        for partition in range(size + 1):
            if rng.random() < 0.8:
                owner = rng.choice([*ids, *ids[:2] * 5, "stranger"])
                rows.append(_claim(key, owner, topic, partition))
            if rng.random() < 0.1:
                rows.append(_claim(key, rng.choice([*ids, None]), topic, partition))
    return rows


def _claim(key: Row, owner: str | None, topic: str | None, partition: int | None) -> Row:
    row = {**key, "kind": OWNED, "member_id": owner, "topic": topic, "partition": partition}
    return {**row, **_about(topic)}


def _about(topic: str | None) -> Row:
    size = _SIZES.get(topic or "")
    return {"size": size, "is_known": size is not None, "is_empty": size == 0}


def _problems(rows: list[Row]) -> list[Row]:
    result: list[Row] = problems_arrow(as_table(rows, _SCHEMA)).to_pylist()
    return result


def test_random_groups_by_looking() -> None:
    rng = random.Random(SEED)
    groups = [_random_rows(rng, f"g{number:03}") for number in range(120)]
    rows = [row for group in groups for row in group]
    rng.shuffle(rows)
    result = _problems(rows)
    for group in groups:
        name = group[0]["group_id"]
        here = [row for row in result if row["group_id"] == name]
        members = {row["member_id"]: row for row in group if row["kind"] == MEMBER}
        owned = [row for row in group if row["kind"] == OWNED]

        def rows_of(problem: str, *columns: str, here: list[Row] = here) -> list[tuple[Any, ...]]:
            rows = [tuple(row[c] for c in columns) for row in here if row["problem"] == problem]
            return sorted(rows, key=str)

        subscribers = Counter(topic for member in members.values() for topic in member["texts"])
        gone = [("gone", n) for topic, n in subscribers.items() if topic == "gone"]
        assert rows_of("topic_without_metadata", "topic", "number") == gone
        empty = [("t0", n) for topic, n in subscribers.items() if topic == "t0"]
        assert rows_of("topic_without_partitions", "topic", "number") == empty
        assert rows_of("owned_partition_missing", "member_id", "topic", "partition") == sorted(
            ((r["member_id"], r["topic"], r["partition"]) for r in owned if _is_gone(r)), key=str
        )
        strange = Counter(r["member_id"] for r in owned if r["member_id"] not in members)
        assert rows_of("owner_not_in_group", "member_id", "number") == sorted(
            strange.items(), key=str
        )
        claims: dict[tuple[Any, ...], list[tuple[str, int]]] = {}
        for row in owned:
            if row["member_id"] in members:
                generation = members[row["member_id"]]["generation"]
                claims.setdefault((row["topic"], row["partition"]), []).append(
                    (row["member_id"], -1 if generation is None else generation)
                )
        twice = [(*tp, sorted(by)) for tp, by in claims.items() if len(by) > 1]
        problems = [
            (topic, partition, list(zip(texts, numbers, strict=True)))
            for topic, partition, texts, numbers in rows_of(
                "claimed_twice", "topic", "partition", "texts", "numbers"
            )
        ]
        assert sorted(problems, key=str) == sorted(twice, key=str)
        by_instance: dict[str, list[str]] = {}
        for member, row in members.items():
            if row["group_instance_id"]:
                by_instance.setdefault(row["group_instance_id"], []).append(member)
        several = sorted((i, sorted(ids)) for i, ids in by_instance.items() if len(ids) > 1)
        assert rows_of("duplicate_group_instance_id", "text", "texts") == several
        named = sorted({row["assignor"] or "" for row in members.values()})
        assert rows_of("assignor_unusable", "texts") == [(named,)]
        assert rows_of("duplicate_member", "number") == []


def _is_gone(row: Row) -> bool:
    return row["size"] is None or row["partition"] >= row["size"]


def test_members_that_are_there_twice() -> None:
    key = {"cluster_id": "", "group_id": "g", "kind": MEMBER, "texts": []}
    rows = [{**key, "member_id": member} for member in ("a", "b", "a", "", "", None, None)]
    rows += [{**key, "group_id": "", "member_id": "c"}] * 2
    twice = [row for row in _problems(rows) if row["problem"] == "duplicate_member"]
    assert [(row["group_id"], row["member_id"], row["number"]) for row in twice] == [("g", "a", 2)]


def _order_is_unknown(group: str) -> list[Row]:
    """Aa and BB share a bucket, own four of four partitions, and one of three may keep two."""
    key = {"cluster_id": "c", "group_id": group}
    nothing = dict.fromkeys(("generation", "member_seq", "group_instance_id"))
    rows: list[Row] = [
        {**key, **nothing, "kind": MEMBER, "member_id": m, "texts": ["t4"], "assignor": "sticky"}
        for m in ("BB", "Aa", "c")
    ]
    rows += [{**key, "kind": SUBSCRIBED, "topic": "t4", **_about("t4")}]
    owners = ("Aa", "Aa", "BB", "BB")
    return rows + [_claim(key, owner, "t4", n) for n, owner in enumerate(owners)]


def test_an_order_that_is_not_known() -> None:
    rows = _order_is_unknown("g")
    (problem,) = (row for row in _problems(rows) if row["problem"] == "member_order_unknown")
    assert (problem["group_id"], problem["texts"], problem["number"]) == ("g", ["Aa", "BB"], 1)
    for place, row in enumerate(rows[:3]):
        row["member_seq"] = place
    assert not [row for row in _problems(rows) if row["problem"] == "member_order_unknown"]
