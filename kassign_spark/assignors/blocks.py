"""`range` and `roundrobin` inside a task, for groups in which racks do not count.

The same rules as in ``range`` and ``roundrobin``, over arrays: where an answer is one of several
that a call wants of the same groups (rounds, variants, events), all of them are made in one task.
"""

import numpy as np

from kassign_spark.groups.batch import Batch
from kassign_spark.groups.numbers import Longs


def range_owners(batch: Batch) -> Longs:
    """Give consecutive blocks of each topic to its subscribers, the first ones longer."""
    subscribers = batch.subscribers
    count = subscribers.size[batch.slot_topic]
    length, longer = np.divmod(batch.size[batch.slot_topic], count)
    partition, in_longer = batch.slot_partition, longer * (length + 1)
    block = np.where(
        partition < in_longer,
        partition // (length + 1),
        longer + (partition - in_longer) // np.maximum(length, 1),
    )
    owners: Longs = subscribers.member[subscribers.first[batch.slot_topic] + block]
    return owners


def roundrobin_owners(batch: Batch) -> Longs:
    """Deal partitions to a group's members in turn, skipping those that do not subscribe."""
    subscribers = batch.subscribers
    first = batch.first_slot[:-1]
    taker = (first - batch.first_slot[batch.first_topic[batch.topic_group]]) % np.maximum(
        subscribers.size, 1
    )
    for group in np.flatnonzero(~batch.is_alike).tolist():
        _scan(batch, group, taker)
    turn = (taker[batch.slot_topic] + batch.slot_partition) % subscribers.size[batch.slot_topic]
    return subscribers.member[subscribers.first[batch.slot_topic] + turn]


def _scan(batch: Batch, group: int, taker: Longs) -> None:
    """Find the first taker of each topic of a group: the pointer is the state between topics."""
    subscribers, rank = batch.subscribers, batch.rank
    pointer, members = 0, int(batch.first_member[group + 1] - batch.first_member[group])
    for topic in range(int(batch.first_topic[group]), int(batch.first_topic[group + 1])):
        first, count = int(subscribers.first[topic]), int(subscribers.size[topic])
        ranks = rank[subscribers.member[first : first + count]]
        taker[topic] = int(np.searchsorted(ranks, pointer)) % count
        last = (int(taker[topic]) + int(batch.size[topic]) - 1) % count
        pointer = (int(ranks[last]) + 1) % members
