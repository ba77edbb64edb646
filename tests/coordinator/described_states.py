"""Describe answers of the coordinator as states of the model, and answers as the same form."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from kassign_spark.coordinator.next_target import TargetOutcome
from kassign_spark.coordinator.target_state import ConsumerGroupState

Described = dict[str, Any]
Topics = Mapping[str, tuple[str, int]]
"""Id and number of partitions by name."""
Target = dict[str, list[tuple[str, int]]]


def to_state(described: Described, topics: Topics, **changed: Any) -> ConsumerGroupState:
    """The state of a described group; its target has nothing of topics that exist no more."""
    names = list(topics)
    index = {topics[name][0]: i for i, name in enumerate(names)}
    rows = []
    for m, member in enumerate(described["members"]):
        listed = [(t, p) for t, _, numbers in member["target"] for p in numbers]
        rows += [(m, index[t], p, place) for place, (t, p) in enumerate(listed) if t in index]
    target = np.array(rows, dtype=np.int64).reshape(-1, 4)
    values: dict[str, Any] = {
        "member_ids": [m["member_id"] for m in described["members"]],
        "subscriptions": [m["topics"] for m in described["members"]],
        "instance_ids": [m["instance"] for m in described["members"]],
        "topics": names,
        "topic_ids": [topics[name][0] for name in names],
        "num_partitions": [topics[name][1] for name in names],
        "target_members": target[:, 0],
        "target_topics": target[:, 1],
        "target_partitions": target[:, 2],
        "target_positions": target[:, 3],
    }
    return ConsumerGroupState(**values | changed)


def target_of(described: Described, topics: Topics) -> Target:
    """What the coordinator computed, each list sorted."""
    names = {of[0]: name for name, of in topics.items()}
    return {
        member["member_id"]: sorted(
            (names[t], p) for t, _, numbers in member["target"] for p in numbers
        )
        for member in described["members"]
    }


def named(state: ConsumerGroupState, outcome: TargetOutcome) -> Target:
    """The outcome in the same form."""
    result: Target = {member: [] for member in state.member_ids}
    starts = outcome.layout.starts
    for partition, member in enumerate(outcome.owner.tolist()):
        if member >= 0:
            topic = int(np.searchsorted(starts, partition, side="right")) - 1
            name = state.topics[topic], partition - int(starts[topic])
            result[state.member_ids[member]].append(name)
    return {member: sorted(tps) for member, tps in result.items()}
