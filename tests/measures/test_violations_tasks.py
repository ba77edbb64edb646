"""The kernel of violations, without Spark: by plain looking."""

import random
from typing import Any

from kassign_spark.groups.task_rows import ASSIGNED, MEMBER, OWNED, SUBSCRIBED
from kassign_spark.measures.violations_tasks import UNKNOWN_TOPIC, broken_arrow
from tests.task_rows import as_table

SEED = 77
_SIZES = {"t0": 0, "t1": 1, "t4": 4, "t9": 9}
Row = dict[str, Any]
Broken = tuple[str, str, str | None, str | None, int | None]


def _random_rows(rng: random.Random, group: str) -> list[Row]:
    """A group with a fault here and there, and null in all columns now and then."""
    key = {"cluster_id": "c", "group_id": group}
    ids = [f"m{n}" for n in range(rng.randint(1, 4))]
    names = [*_SIZES, "gone"]
    rows: list[Row] = []
    for member in ids:
        topics = rng.sample(names, rng.randint(0, 4))
        rows.append({**key, "kind": MEMBER, "member_id": member, "texts": topics})
        rows += [{**key, "kind": SUBSCRIBED, "topic": t, "size": _SIZES.get(t)} for t in topics]
    everyone = [*ids, *ids, "stranger", None]
    for kind in (ASSIGNED, OWNED):
        for _ in range(rng.randint(0, 14)):
            topic = rng.choice([*names, None])
            rows.append(
                {
                    **key,
                    "kind": kind,
                    "member_id": rng.choice(everyone),
                    "topic": topic,
                    "partition": rng.choice([None, -1, *range(10)]),
                    "size": _SIZES.get(topic or "") if kind == ASSIGNED else None,
                }
            )
    return rows


def _by_looking(rows: list[Row]) -> set[Broken]:
    """What is wrong with one group; of members that are strange, without the partition."""
    group = rows[0]["group_id"]
    subscriptions = {r["member_id"]: r["texts"] for r in rows if r["kind"] == MEMBER}
    assigned = [r for r in rows if r["kind"] == ASSIGNED]
    broken: set[Broken] = set()
    for row in assigned:
        member, topic, partition = row["member_id"], row["topic"], row["partition"]
        if member not in subscriptions:
            broken.add((group, "unknown_member", member, topic, None))
        elif topic not in subscriptions[member]:
            broken.add((group, "not_subscribed", member, topic, None))
        size = row["size"]
        if size is None or (partition is not None and not 0 <= partition < size):
            broken.add((group, "unknown_partition", member, topic, partition))
        same = [
            r["member_id"]
            for r in assigned
            if (r["topic"], r["partition"]) == (topic, partition) and r["member_id"]
        ]
        if topic is not None and len(same) > 1:
            broken.add((group, "assigned_twice", min(same), topic, partition))
    for topic in {r["topic"] for r in rows if r["kind"] == SUBSCRIBED}:
        at = {r["partition"] for r in assigned if r["topic"] == topic} - {None}
        withheld = {
            r["partition"]
            for r in rows
            if r["kind"] == OWNED and r["topic"] == topic and r["member_id"] in subscriptions
        }
        if len(at) < _SIZES.get(topic, 0):
            missing = set(range(_SIZES[topic])) - at - withheld
            broken |= {(group, "unassigned", None, topic, number) for number in missing}
    return broken


def test_random_groups_by_looking() -> None:
    rng = random.Random(SEED)
    groups = [_random_rows(rng, f"g{number:03}") for number in range(300)]
    rows = [row for group in groups for row in group]
    rng.shuffle(rows)
    result: set[Broken] = set()
    for row in broken_arrow(as_table(rows)).to_pylist():
        strange = row["rule"] in ("unknown_member", "not_subscribed")
        last = row["partition"] if row["last"] is None else row["last"]
        numbers = [None] if strange or last is None else range(row["partition"], last + 1)
        for number in numbers:
            result.add((row["group_id"], row["rule"], row["member_id"], row["topic"], number))
    # Topics that are not there are no violations of an assignment; "gone" is the only one here.
    unknown = {broken for broken in result if broken[1] == UNKNOWN_TOPIC}
    assert {topic for _, _, _, topic, _ in unknown} == {"gone"}
    result -= unknown
    expected = set().union(*map(_by_looking, groups))
    assert result == expected
    assert {rule for _, rule, *_ in result} == {
        "unknown_member",
        "not_subscribed",
        "unknown_partition",
        "assigned_twice",
        "unassigned",
    }


def test_a_topic_of_any_size_is_one_row() -> None:
    key = {"cluster_id": "", "group_id": "g"}
    rows: list[Row] = [
        {**key, "kind": MEMBER, "member_id": "a", "texts": ["t"]},
        {**key, "kind": SUBSCRIBED, "topic": "t", "size": 2**31 - 1},
        {
            **key,
            "kind": ASSIGNED,
            "member_id": "a",
            "topic": "t",
            "partition": 7,
            "size": 2**31 - 1,
        },
    ]
    result = broken_arrow(as_table(rows)).to_pylist()
    assert [(row["partition"], row["last"]) for row in result] == [(0, 6), (8, 2**31 - 2)]
