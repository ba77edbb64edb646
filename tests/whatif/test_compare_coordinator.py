"""The rows of the new protocol in ``compare``, inside a task: counted again group by group."""

from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from kassign_spark.coordinator.next_target import next_target
from kassign_spark.coordinator.target_state import ConsumerGroupState
from kassign_spark.whatif.compare_kernel import compare_arrow
from tests.kafka.oracle import Group, Member
from tests.random_states import random_states
from tests.task_rows import name_of, table_of

GROUPS = random_states(300, seed=16, assignors=["range", "sticky"], hostile_share=0)
IDS = {f"t{i}": f"{i:021d}A" for i in range(30)}


@pytest.fixture(scope="module")
def compared() -> dict[tuple[str, str], dict[str, Any]]:
    table = table_of(GROUPS)
    ids = pc.if_else(
        pc.equal(table["kind"], 2),
        pa.array([IDS.get(topic) for topic in table["topic"].to_pylist()], pa.string()),
        table["member_id"],
    )
    table = table.set_column(table.schema.get_field_index("member_id"), "member_id", ids)
    rows = [row for piece in compare_arrow(table) for row in piece.to_pylist()]
    assert Counter(row["protocol"] for row in rows) == {
        "eager": 4 * len(GROUPS),
        "cooperative": len(GROUPS),
        "consumer": 2 * len(GROUPS),
    }
    return {(r["group_id"], r["assignor"]): r for r in rows if r["protocol"] == "consumer"}


def _state(group: Group) -> ConsumerGroupState:
    topics = list(group.topics)
    seen: set[tuple[str, int]] = set()
    target = []
    for place, member in enumerate(group.members):
        for topic, partition in member.owned:
            size = _size(group, topic)
            if partition < size and (topic, partition) not in seen:
                seen.add((topic, partition))
                target.append((place, topics.index(topic), partition))
    columns = np.array(target, np.int64).reshape(-1, 3).T
    return ConsumerGroupState(
        member_ids=[member.member_id for member in group.members],
        subscriptions=[member.topics for member in group.members],
        instance_ids=[member.group_instance_id for member in group.members],
        topics=topics,
        num_partitions=[_size(group, topic) for topic in topics],
        topic_ids=[IDS.get(topic) for topic in topics],
        target_members=columns[0],
        target_topics=columns[1],
        target_partitions=columns[2],
    )


def _size(group: Group, topic: str) -> int:
    size = group.topics.get(topic, 0)
    return size if isinstance(size, int) else len(size)


@pytest.mark.parametrize("assignor", ["uniform", "range"])
def test_rows_are_what_the_model_answers(
    compared: dict[tuple[str, str], dict[str, Any]], assignor: str
) -> None:
    moves = exact = 0
    for number, group in enumerate(GROUPS):
        row = compared[name_of(number), assignor]
        claimed = Counter(tp for member in group.members for tp in set(member.owned))
        if any(count > 1 for count in claimed.values()):
            continue
        state = _state(group)
        outcome = next_target(state, assignor)
        if outcome.verdict != row["verdict"]:
            # Topics that nobody reads are not in the task.
            assert (outcome.verdict, row["verdict"]) == ("inexact", "ok")
        topics, starts = list(state.topics), outcome.layout.starts
        owners = {(topics[t], p): m for m, t, p in _rows(state)}
        loads = Counter(dict.fromkeys(range(len(group.members)), 0))
        moved = kept = 0
        for topic, name in enumerate(topics):
            for p in range(state.num_partitions[topic]):
                owner = int(outcome.owner[int(starts[topic]) + p])
                if owner >= 0:
                    loads[owner] += 1
                    moved += owners.get((name, p), owner) != owner
                    kept += owners.get((name, p)) == owner
        assert row["partition_count"] == sum(loads.values()), number
        assert row["spread"] == max(loads.values()) - min(loads.values())
        if row["verdict"] == "ok" or assignor == "range":
            exact += 1
            assert (row["moved"], row["kept"]) == (moved, kept), number
        assert row["rounds"] <= 3
        assert row["paused"] >= row["moved"]
        moves += moved
    assert moves > 100
    assert exact > 60


def _rows(state: ConsumerGroupState) -> list[tuple[int, int, int]]:
    columns = (state.target_members, state.target_topics, state.target_partitions)
    return list(zip(*(column.tolist() for column in columns), strict=True))


def test_locality_that_would_be_lost() -> None:
    racks = [["a"], ["b"], ["a"], ["b"]]
    members = [
        Member("m1", ["t"], [("t", 0), ("t", 2)], 1, rack_id="a"),
        Member("m2", ["t"], [("t", 1), ("t", 3)], 1, rack_id="b"),
    ]
    (group,) = [Group({"t": racks}, members)]
    rows = [row for piece in compare_arrow(table_of([group])) for row in piece.to_pylist()]
    result = {(row["assignor"], row["protocol"]): row for row in rows}
    assert result["range", "consumer"]["cross_rack_more"] == 2, "blocks, whatever the racks"
    assert result["uniform", "consumer"]["cross_rack_more"] == 0, "nothing moves"
    assert result["cooperative-sticky", "cooperative"]["cross_rack_more"] == 0
