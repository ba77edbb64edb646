"""Members, topics and subscriptions of many groups in arrays: what the kernels of the graph take.

Everything is numbered from 0 over all groups of the batch, in the order of (group, name); a topic
stands once for each group that reads it.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kassign_spark.assignors.segments import Longs, Segments

Flags = npt.NDArray[np.bool_]
Words = npt.NDArray[np.uint64]


class Subscribed(NamedTuple):
    """Groups, their members, the topics that somebody reads, and who subscribes to which.

    Attributes:
        group_of_member: of each member; not descending.
        group_of_topic: of each topic; not descending.
        size: partitions of each topic, >= 1.
        topic_of: of each subscription; subscriptions are different, by topic and then by member.
        member_of: of each subscription.
    """

    group_of_member: Longs
    group_of_topic: Longs
    size: Longs
    topic_of: Longs
    member_of: Longs


class ClassGraph(NamedTuple):
    """The eligibility graph: edges between topic classes and members, by class, then by member.

    A class is of topics of one group with the same subscribers: who may take a partition of one may
    take any of all of them. Classes are numbered by their first topics, so group by group.

    Attributes:
        group_of_member: of each member.
        class_of_topic: of each topic of ``Subscribed``.
        group_of_class: of each class.
        supply: partitions of each class.
        class_of: of each edge.
        member_of: of each edge.
        part_of_member: the connected component, counted from 0 within the group in the order of
            the first members; -1: the member can take nothing.
        part_of_class: likewise.
    """

    group_of_member: Longs
    class_of_topic: Longs
    group_of_class: Longs
    supply: Longs
    class_of: Longs
    member_of: Longs
    part_of_member: Longs
    part_of_class: Longs


def class_graph(subscribed: Subscribed) -> ClassGraph:
    """Fold topics with the same subscribers into classes, and find the connected components."""
    first, class_of_topic = _same_readers(subscribed)
    group_of_class = subscribed.group_of_topic[first]
    supply = np.bincount(class_of_topic, subscribed.size, len(first)).astype(np.int64)
    is_first = np.zeros(len(subscribed.size), bool)
    is_first[first] = True
    edges = is_first[subscribed.topic_of]
    class_of = class_of_topic[subscribed.topic_of[edges]]
    member_of = subscribed.member_of[edges]
    members = np.arange(len(subscribed.group_of_member))
    label = components(class_of, member_of, len(first), len(members))
    has_edge = np.bincount(member_of, minlength=len(members)) > 0
    starts_part = has_edge & (label == members)
    parts_before = np.cumsum(starts_part) - starts_part
    first_member = np.searchsorted(subscribed.group_of_member, subscribed.group_of_member)
    part = np.where(has_edge, parts_before[label] - parts_before[first_member], -1)
    part_of_class = Segments(class_of, len(first)).least(part[member_of])
    return ClassGraph(
        subscribed.group_of_member,
        class_of_topic,
        group_of_class,
        supply,
        class_of,
        member_of,
        part,
        part_of_class,
    )


def components(class_of: Longs, member_of: Longs, class_count: int, member_count: int) -> Longs:
    """Name connected components: for each member the least member of its own."""
    label = np.arange(member_count)
    by_class = Segments(class_of, class_count)
    by_member = Segments(member_of, member_count)
    while True:
        of_class = by_class.least(label[member_of])
        lower = np.minimum(label, by_member.least(of_class[class_of]))
        lower = lower[lower]
        if np.array_equal(lower, label):
            return label
        label = lower


def _same_readers(subscribed: Subscribed) -> tuple[Longs, Longs]:
    """Find the topics with the same readers: the first topic of each class, the class of each."""
    topic_of, member_of = subscribed.topic_of, subscribed.member_of
    count = np.bincount(topic_of, minlength=len(subscribed.size))
    begin = np.cumsum(count) - count
    mark = np.zeros(len(count), np.uint64)
    if len(topic_of):
        mark = np.add.reduceat(_scattered(member_of), begin)
    _, first, class_of_topic = np.unique(
        np.stack((subscribed.group_of_topic.astype(np.uint64), count.astype(np.uint64), mark)),
        axis=1,
        return_index=True,
        return_inverse=True,
    )
    class_of_topic = class_of_topic.reshape(-1)
    # The marks of different sets may be the same by chance: so the sets themselves are compared.
    place = np.arange(len(topic_of)) - begin[topic_of]
    alike = member_of[begin[first[class_of_topic]][topic_of] + place] == member_of
    if not alike.all():
        sets = [member_of[b : b + n].tobytes() for b, n in zip(begin, count, strict=True)]
        _, first, class_of_topic = np.unique(
            np.array(sets, dtype=object), return_index=True, return_inverse=True
        )
    by_first = np.empty(len(first), np.int64)
    by_first[np.argsort(first)] = np.arange(len(first))
    return np.sort(first), by_first[class_of_topic]


def _scattered(numbers: Longs) -> Words:
    """Scatter numbers over 64 bits, so that sums of different sets differ (SplitMix64)."""
    word = (numbers.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return word ^ (word >> np.uint64(31))
