"""Racks of members and replicas as bits; ``rack_use`` says where they can change an assignment."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kassign_spark.groups.numbers import Flags, Longs, names, ranges, starts

Bits = npt.NDArray[np.uint64]
_MOST = 64


@dataclass(frozen=True)
class RackBits:
    """Sets of racks, one bit a rack.

    Attributes:
        member: the member's rack; 0: none.
        slot: racks of the partition's replicas; 0: none is known.
        member_code: code of the member's rack; 0: none.
        slot_code: codes of the racks of one partition's replicas after the other's, as given, of
            those that are known; ``slot_start``: where each begins, and the end.
        replica_racks: of each topic `list<list<string>>`, by partition, as given.
        fits: whether there are bits for all racks; else the sets are of the first 64.
    """

    member: Bits
    slot: Bits
    member_code: Longs
    slot_code: Longs
    slot_start: Longs
    replica_racks: pa.Array
    fits: bool

    def part(self, members: Longs, slots: Longs, topics: Longs) -> "RackBits":
        """Return the racks of some members and slots."""
        count = np.diff(self.slot_start)[slots]
        return RackBits(
            self.member[members],
            self.slot[slots],
            self.member_code[members],
            self.slot_code[ranges(self.slot_start[slots], count)],
            starts(count),
            self.replica_racks.take(pa.array(topics)),
            self.fits,
        )


def read_racks(of_topics: pa.Array, size: Longs, member_racks: pa.Array) -> RackBits | None:
    """Read racks; None where no member or no replica has one.

    Args:
        of_topics: of each topic `list<list<string>>`, by partition; null: none is known.
        size: partitions of each topic.
        member_racks: of each member; null and empty: none.
    """
    of_partitions = of_topics.flatten()
    replicas = of_partitions.flatten()
    rack = names(pa.chunked_array([member_racks, replicas], pa.string()))
    of_member, of_replica = np.split(rack.code, [len(member_racks)])
    is_empty = pc.equal(rack.strings, "").to_numpy(zero_copy_only=False)
    of_member = np.where(np.append(True, is_empty)[of_member], 0, of_member)
    if not of_member.any() or not of_replica.any():
        return None
    bit = np.zeros(len(rack.strings) + 1, np.uint64)
    bit[1 : _MOST + 1] = np.uint64(1) << np.arange(min(_MOST, len(bit) - 1), dtype=np.uint64)
    # Partitions that exist, of those of which racks are given.
    list_size = lengths(of_topics)
    rack_counts = np.minimum(list_size, size)
    slots = ranges(starts(size)[:-1], rack_counts)
    positions = ranges(starts(list_size)[:-1], rack_counts)
    first = starts(lengths(of_partitions))
    replica = ranges(first[positions], np.diff(first)[positions])
    slot_of = np.repeat(slots, np.diff(first)[positions])
    is_known = of_replica[replica] > 0
    slot_of, code = slot_of[is_known], of_replica[replica[is_known]]
    slot_count = int(size.sum())
    return RackBits(
        bit[of_member],
        reduce_or(bit[code], slot_of, slot_count),
        of_member,
        code,
        starts(np.bincount(slot_of, minlength=slot_count)),
        of_topics,
        len(rack.strings) <= _MOST,
    )


def lengths(lists: pa.Array) -> Longs:
    """Return the length of each list; a null list is empty."""
    sizes: Longs = pc.fill_null(pc.list_value_length(lists), 0).to_numpy().astype(np.int64)
    return sizes


def reduce_or(values: Bits, key: Longs, count: int) -> Bits:
    """Union for each key."""
    bits = np.zeros(count, np.uint64)
    np.bitwise_or.at(bits, key, values)
    return bits


def all_equal(values: Bits, key: Longs, expected: Bits) -> Flags:
    """Return for each key whether all its values are the expected ones."""
    is_equal = np.ones(len(expected), bool)
    is_equal[key[values != expected[key]]] = False
    return is_equal
