"""Racks as bits: which partitions have a replica where a member is."""

from collections.abc import Sequence
from functools import reduce
from operator import or_
from typing import NamedTuple

from kassign_spark.client.group_state import GroupState, Layout


class Racks(NamedTuple):
    """Racks of a group; a set of racks is an integer, one bit a rack.

    Attributes:
        of_member: the member's rack, 0 for none.
        of_partition: racks of all replicas, by id; 0 for a partition that does not exist.
    """

    of_member: list[int]
    of_partition: list[int]

    def mismatch(self, member: int, partition: int) -> bool:
        """Return whether the member has a rack and the partition has no replica in it."""
        rack = self.of_member[member]
        return rack != 0 and not rack & self.of_partition[partition]


def number_racks(state: GroupState, layout: Layout) -> Racks | None:
    """Assign a bit to each rack; None where no member or no replica has a rack."""
    if not any(state.member_racks) or not any(state.replica_racks):
        return None
    bits: dict[str, int] = {}
    of_member = [
        bits.setdefault(rack, 1 << len(bits)) if rack else 0 for rack in state.member_racks
    ]
    replica_racks = dict(zip(state.topics, state.replica_racks, strict=True))
    of_partition = [0] * len(layout.topic_of)
    for topic, name in enumerate(layout.topics):
        of_topic = replica_racks[name] or ()
        for partition, racks in zip(layout.existing(topic), of_topic, strict=False):
            for rack in racks or ():
                if rack is not None:
                    of_partition[partition] |= bits.setdefault(rack, 1 << len(bits))
    return Racks(of_member, of_partition)


def need_matching(member_racks: Sequence[int], partition_racks: Sequence[int]) -> bool:
    """Return whether racks can change anything.

    They can where some member's rack is among the replicas' racks, and not every partition has a
    replica in each of those racks (``AbstractPartitionAssignor.useRackAwareAssignment``).
    """
    members, all_replicas = reduce(or_, member_racks, 0), reduce(or_, partition_racks, 0)
    return bool(members & all_replicas) and any(racks != all_replicas for racks in partition_racks)
