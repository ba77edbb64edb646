"""The coordinator's `range`: blocks by topic, neither sticky nor aware of racks."""

import numpy as np

from kassign_spark.client.hash_order import java_string_key
from kassign_spark.coordinator.orders import Ints
from kassign_spark.coordinator.target_state import NOBODY, ConsumerGroupState, Layout


def assign_range(state: ConsumerGroupState, layout: Layout) -> Ints:
    """Return the owner of every partition by the group coordinator's ``RangeAssignor``.

    Of each topic every subscriber has one block; subscribers come in the order of their
    `group.instance.id`, after them those that have none in the order of their ids.

    Returns:
        For each partition of the layout a position in ``member_ids``, or ``NOBODY``.
    """
    instances = state.instance_ids or [None] * len(state.member_ids)
    keys = [
        (not instance, java_string_key(instance or member))
        for member, instance in zip(state.member_ids, instances, strict=True)
    ]
    order = sorted(range(len(keys)), key=lambda i: (keys[i], i))
    owner = np.full(int(layout.starts[-1]), NOBODY, dtype=np.int64)
    for topic, members in subscribers_by_topic(layout, np.array(order, dtype=np.int64)):
        start, end = int(layout.starts[topic]), int(layout.starts[topic + 1])
        base, extra = divmod(end - start, len(members))
        sizes = np.full(len(members), base)
        sizes[:extra] += 1
        owner[start:end] = np.repeat(members, sizes)
    return owner


def subscribers_by_topic(layout: Layout, order: Ints) -> list[tuple[int, Ints]]:
    """Return the subscribed topics, ascending, each with its members in the given order."""
    if not len(order):
        return []
    if layout.is_homogeneous:
        return [(int(topic), order) for topic in layout.subscribed[0]]
    topics = np.concatenate([layout.subscribed[member] for member in order])
    members = np.repeat(order, [len(layout.subscribed[member]) for member in order])
    if not len(topics):
        return []
    by_topic = np.argsort(topics, kind="stable")
    distinct, firsts = np.unique(topics[by_topic], return_index=True)
    parts = np.split(members[by_topic], firsts[1:])
    return [(int(topic), part) for topic, part in zip(distinct, parts, strict=True) if len(part)]
