"""The second example is what a real coordinator and real consumers held."""

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np

from kassign_spark.coordinator.next_target import next_target
from kassign_spark.coordinator.target_state import ConsumerGroupState
from tests.kafka.make_new_protocol_fleet import GROUPS, TOPICS

_FOLDER = Path(__file__).parents[2] / "examples" / "both-protocols"


def _rows(table: str) -> dict[str, list[dict[str, Any]]]:
    result = defaultdict(list)
    for line in (_FOLDER / table / f"{table}.json").read_text().splitlines():
        row = json.loads(line)
        result[row.get("group_id", "")].append(row)
    return result


def test_it_is_the_fleet_that_was_started() -> None:
    members = _rows("members")
    result = {
        name: (rows[0]["assignor"], len(rows), rows[0].get("group_type") == "consumer")
        for name, rows in members.items()
    }
    assert result == {g.group_id: (g.assignor, g.member_count, g.is_new) for g in GROUPS}
    sizes = {row["topic"]: row["num_partitions"] for row in _rows("topics")[""]}
    assert TOPICS.items() <= sizes.items()
    assert set(_rows("group_settings")) == {g.group_id for g in GROUPS if g.is_new}


def test_every_target_is_what_the_coordinator_computes_again() -> None:
    """And in a group that has settled members own just that."""
    members, target, owned = (_rows(name) for name in ("members", "target", "owned"))
    topics = _rows("topics")[""]
    names = [row["topic"] for row in topics]
    compared = 0
    for group in GROUPS:
        rows = target[group.group_id]
        assert bool(rows) == group.is_new
        if not group.is_new:
            continue
        described = sorted(members[group.group_id], key=lambda row: int(row["member_seq"]))
        ids = [row["member_id"] for row in described]
        state = ConsumerGroupState(
            member_ids=ids,
            subscriptions=[row["topics"] for row in described],
            topics=names,
            num_partitions=[row["num_partitions"] for row in topics],
            topic_ids=[row["topic_id"] for row in topics],
            instance_ids=[row.get("group_instance_id") for row in described],
            votes=[row["assignor"] for row in described],
            target_members=np.array([ids.index(row["member_id"]) for row in rows]),
            target_topics=np.array([names.index(row["topic"]) for row in rows]),
            target_partitions=np.array([row["partition"] for row in rows]),
            target_positions=np.array([row["position"] for row in rows]),
        )
        outcome = next_target(state)
        assert (outcome.assignor, outcome.verdict) == (group.assignor, "ok")
        mine = {(row["topic"], row["partition"]): row["member_id"] for row in rows}
        assert mine == {
            (row["topic"], row["partition"]): row["member_id"] for row in owned[group.group_id]
        }
        starts = outcome.layout.starts
        for (topic, partition), member in mine.items():
            slot = starts[names.index(topic)] + partition
            assert ids[outcome.owner[slot]] == member
        assert (outcome.owner >= 0).sum() == len(mine)
        compared += 1
    assert compared == 3
