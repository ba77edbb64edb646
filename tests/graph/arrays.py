"""Groups of the tests as the arrays that the kernels of the graph take, and back."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from kassign_spark.graph.class_batch import Subscribed
from tests.oracles.mixed_groups import MixedGroup


class Batch(NamedTuple):
    """Arrays, and the names that their numbers stand for."""

    subscribed: Subscribed
    members: list[tuple[int, str]]
    topics: list[tuple[int, str]]


def batch_of(groups: Sequence[MixedGroup]) -> Batch:
    """Number members and topics by group and name; topics that nobody reads are not there."""
    members = [(g, m) for g, group in enumerate(groups) for m in sorted(group.subscriptions)]
    topics = [
        (g, topic)
        for g, group in enumerate(groups)
        for topic, count in sorted(group.partitions.items())
        if count and group.subscribers(topic)
    ]
    member_number = {name: number for number, name in enumerate(members)}
    edges = [
        (t, member_number[g, m])
        for t, (g, topic) in enumerate(topics)
        for m in sorted(groups[g].subscribers(topic))
    ]
    pairs = np.array(edges, dtype=np.int64).reshape(-1, 2)
    return Batch(
        Subscribed(
            np.array([g for g, _ in members], dtype=np.int64),
            np.array([g for g, _ in topics], dtype=np.int64),
            np.array([groups[g].partitions[t] for g, t in topics], dtype=np.int64),
            pairs[:, 0],
            pairs[:, 1],
        ),
        members,
        topics,
    )
