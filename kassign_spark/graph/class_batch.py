"""Members, topics and subscriptions of many groups in arrays: what the kernels of the graph take.

Everything is numbered from 0 over all groups of the batch, in the order of (group, name); a topic
stands once for each group that reads it.
"""

from typing import NamedTuple

import numpy as np

from kassign_spark.engine.segments import Longs, Segments
from kassign_spark.engine.task import components
from kassign_spark.groups.batch import Batch
from kassign_spark.groups.numbers import ranges, same_lists


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


def subscribed_of(batch: Batch) -> Subscribed:
    """Return the subscribers of each topic; members and topics are numbered as in the batch."""
    readers = batch.subscribers
    topic_of = np.repeat(np.arange(len(batch.size)), readers.size)
    member_of = readers.member[ranges(readers.first, readers.size)]
    order = np.lexsort((member_of, topic_of))
    return Subscribed(
        batch.member_group, batch.topic_group, batch.size, topic_of[order], member_of[order]
    )


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
        part_of_class: the part of each class.
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
    readers = np.bincount(subscribed.topic_of, minlength=len(subscribed.size))
    first, class_of_topic = same_lists(subscribed.group_of_topic, readers, subscribed.member_of)
    group_of_class = subscribed.group_of_topic[first]
    supply = np.bincount(class_of_topic, subscribed.size, len(first)).astype(np.int64)
    edges = np.isin(subscribed.topic_of, first)
    class_of = class_of_topic[subscribed.topic_of[edges]]
    member_of = subscribed.member_of[edges]
    members = np.arange(len(subscribed.group_of_member))
    label = components(class_of, member_of, len(members))
    has_edge = np.bincount(member_of, minlength=len(members)) > 0
    starts_part = has_edge & (label == members)
    parts_before = np.cumsum(starts_part) - starts_part
    first_member = np.searchsorted(subscribed.group_of_member, subscribed.group_of_member)
    part = np.where(has_edge, parts_before[label] - parts_before[first_member], -1)
    part_of_class = Segments(class_of, len(first)).least(part[member_of])
    vertices = (subscribed.group_of_member, class_of_topic, group_of_class, supply)
    return ClassGraph(*vertices, class_of, member_of, part, part_of_class)
