"""The order in which Java's hash maps iterate: for the keys of one group, and for many at once.

``expressions`` has the same of columns.
"""

from collections import Counter
from collections.abc import Collection, Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Longs = npt.NDArray[np.int64]

_MASK = 0xFFFF_FFFF
_FIRST_TABLE = 16
_TREE_BIN = 9
"""A bucket that gets its ninth key becomes a tree, or in a small table doubles the table early."""
_COPIED_TREE_BIN = 8
"""In the table of a copied set the eighth may do so."""
_SMALL_SET = 4
"""A Scala set of more names is a trie."""
_HASH_BITS = 35
"""Where the trie of a Scala set ends: five bits at a time, of 32."""


class HashOrder(NamedTuple):
    """The order in which ``java.util.HashMap`` iterates over keys put in one by one.

    Attributes:
        order: positions of the keys in the order of iteration.
        buckets: the bucket of each key, by position.
        is_reproduced: False where some bucket became a tree, the order of which is not modelled.
    """

    order: list[int]
    buckets: list[int]
    is_reproduced: bool


def java_string_key(text: str) -> bytes:
    """Return a sort key that orders as ``String.compareTo``: by UTF-16 code units."""
    return text.encode("utf-16-be", "surrogatepass")


def sort_as_java(texts: Sequence[str]) -> list[int]:
    """Return the positions of the strings in the order of ``String.compareTo``."""
    if all(map(str.isascii, texts)):
        return sorted(range(len(texts)), key=texts.__getitem__)
    return sorted(range(len(texts)), key=lambda i: java_string_key(texts[i]))


def java_hash(text: str) -> int:
    """Return ``String.hashCode`` as an unsigned number of 32 bits."""
    code = 0
    if text.isascii():
        for unit in text.encode():
            code = (31 * code + unit) & _MASK
        return code
    units = java_string_key(text)
    for high, low in zip(units[::2], units[1::2], strict=True):
        code = (31 * code + (high << 8) + low) & _MASK
    return code


def topic_partition_hash(topic_hash: int, partition: int) -> int:
    """Return ``TopicPartition.hashCode`` as an unsigned number of 32 bits."""
    return (31 * (31 + partition) + topic_hash) & _MASK


def bucket(code: int, capacity: int) -> int:
    """Return the bucket of a hash code in a table."""
    return (code ^ (code >> 16)) & (capacity - 1)


def capacity_for(count: int) -> int:
    """Return the table size of a map made without arguments that held ``count`` keys."""
    return max(_FIRST_TABLE, 1 << ((4 * count + 2) // 3 - 1).bit_length())


def hash_map_order(codes: Sequence[int]) -> HashOrder:
    """Order keys as a map made without arguments does after putting them in this order."""
    capacity = capacity_for(len(codes))
    buckets = [bucket(code, capacity) for code in codes]
    order = sorted(range(len(codes)), key=buckets.__getitem__)
    return HashOrder(order, buckets, _without_trees(codes))


def member_order(member_ids: Sequence[str]) -> HashOrder:
    """Order members as a map of their ids iterates, in which they were put in this order."""
    return hash_map_order([java_hash(member_id) for member_id in member_ids])


def has_tree(codes: Collection[int], capacity: int) -> bool:
    """Return whether enough keys share a bucket for it to become a tree."""
    if len(codes) < _TREE_BIN:
        return False
    return max(Counter(bucket(code, capacity) for code in codes).values()) >= _TREE_BIN


def _without_trees(codes: Sequence[int]) -> bool:
    """Return whether no bucket ever had nine keys, also while the table grew."""
    capacity = _FIRST_TABLE
    while len(codes) >= _TREE_BIN:
        inserted = codes[: capacity * 3 // 4]
        if has_tree(inserted, capacity):
            return False
        if len(inserted) == len(codes):
            break
        capacity *= 2
    return True


def copied_set_order(codes: Sequence[int], sized_for: int) -> HashOrder:
    """Order keys as a ``HashSet`` made from a collection of ``sized_for`` keys iterates."""
    capacity = max(1 << (4 * sized_for // 3).bit_length(), capacity_for(len(codes)))
    buckets = [bucket(code, capacity) for code in codes]
    order = sorted(range(len(codes)), key=buckets.__getitem__)
    return HashOrder(order, buckets, max(Counter(buckets).values(), default=0) < _COPIED_TREE_BIN)


def java_hash_codes(strings: pa.Array) -> npt.NDArray[np.uint32]:
    """Return Java's ``String.hashCode`` of each string; none is empty."""
    texts = strings.to_pylist()
    joined = "".join(texts)
    units: npt.NDArray[np.integer]
    if joined.isascii():
        units = np.frombuffer(joined.encode(), np.uint8)
        lengths = pc.binary_length(strings).to_numpy().astype(np.int64)
    else:
        units = np.frombuffer(joined.encode("utf-16-le"), "<u2")
        lengths = np.array([len(text.encode("utf-16-le")) // 2 for text in texts])
    ends = np.cumsum(lengths)
    powers = np.ones(lengths.max(initial=1), np.uint32)
    powers[1:] = 31
    powers = np.multiply.accumulate(powers, dtype=np.uint32)
    places = np.repeat(ends, lengths) - 1 - np.arange(ends[-1] if len(ends) else 0)
    terms = units.astype(np.uint32) * powers[places]
    return np.add.reduceat(terms, ends - lengths, dtype=np.uint32) if len(ends) else terms


def bucket_keys(codes: Longs, capacities: Longs) -> Longs:
    """Return the buckets of many 32-bit hash codes, each in a table of its own size."""
    buckets: Longs = (codes ^ codes >> 16) & (capacities - 1)
    return buckets


def map_capacities(counts: Longs) -> Longs:
    """Return the table sizes of maps made without arguments that held ``counts`` keys."""
    return powers_of_two((4 * counts + 2) // 3)


def copied_set_capacities(counts: Longs) -> Longs:
    """Return the table sizes of sets made from collections of ``counts`` keys."""
    return powers_of_two(4 * counts // 3 + 1)


def powers_of_two(counts: Longs, least: int = _FIRST_TABLE) -> Longs:
    """Round up, to ``least`` at the least."""
    capacities = np.full_like(counts, least)
    while (short := capacities < counts).any():
        capacities[short] *= 2
    return capacities


def scala_set_order(names: Collection[str]) -> list[str]:
    """Return different names in the order of a Scala 2.13 set, in which a broker lists topics.

    Up to four names keep their order. More are a trie over five bits of the hash at a time: of
    each node first the single names, then the nodes below.
    """
    if len(names) <= _SMALL_SET:
        return [*names]
    return _trie_order([(_improve_hash(java_hash(name)), name) for name in names], 0)


def _trie_order(hashed: list[tuple[int, str]], shift: int) -> list[str]:
    if shift >= _HASH_BITS:  # one hash: in the order in which they came
        return [name for _, name in hashed]
    slots: dict[int, list[tuple[int, str]]] = {}
    for code, name in hashed:
        slots.setdefault(code >> shift & 31, []).append((code, name))
    in_order = [slots[slot] for slot in sorted(slots)]
    single = [each[0][1] for each in in_order if len(each) == 1]
    nodes = (_trie_order(each, shift + 5) for each in in_order if len(each) > 1)
    return [*single, *chain.from_iterable(nodes)]


def _improve_hash(code: int) -> int:
    """Compute ``scala.collection.Hashing.improve``, without a sign."""
    code = (code + ~(code << 9)) & _MASK
    code ^= code >> 14
    code = (code + (code << 4)) & _MASK
    return code ^ code >> 10
