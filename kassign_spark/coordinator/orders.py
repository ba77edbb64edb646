"""The orders in which the coordinator's Java collections iterate over members and topics."""

import base64
import hashlib
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from kassign_spark.client.hash_order import java_hash

Ints = NDArray[np.int64]

_MASK_32, _MASK_64 = 0xFFFF_FFFF, 0xFFFF_FFFF_FFFF_FFFF
_GOLDEN = 0x9E37_79B9_7F4A_7C15
"""``BaseHashTable`` multiplies a hash by this and takes the upper bits."""
_ID_BYTES = 16
_TOPICS_REMEMBERED = 100_000
"""The groups of a task read the same topics, and a group is often computed many times."""


def slot_of(member_id: str, bits: int) -> int:
    """Return a member's slot in the coordinator's table of 2^bits slots."""
    return _spread_64(member_id) >> (64 - bits)


def order_by_ids(member_ids: Sequence[str]) -> list[int]:
    """Order members as the coordinator most likely does, from nothing but their ids.

    Right in 97 % of groups: the order inside a slot is that of joining, which ids do not show.
    """
    products = [_spread_64(member) for member in member_ids]
    return sorted(range(len(member_ids)), key=lambda i: (products[i], member_ids[i]))


def _spread_64(member_id: str) -> int:
    code = java_hash(member_id)
    signed = code - (1 << 32) if code >> 31 else code
    return signed * _GOLDEN & _MASK_64


@lru_cache(maxsize=_TOPICS_REMEMBERED)
def topic_id_bits(topic_id: str) -> tuple[int, int]:
    """Return the two signed longs of a topic id, by which ``Uuid.compareTo`` orders.

    Raises:
        ValueError: not 22 characters of URL-safe base64.
    """
    if len(topic_id) != 22:
        raise ValueError(topic_id)
    # Strictly: the decoder alone would skip over characters that are not of its alphabet.
    data = base64.b64decode(topic_id + "==", altchars=b"-_", validate=True)
    return int.from_bytes(data[:8], signed=True), int.from_bytes(data[8:], signed=True)


def drawn_id(text: str) -> str:
    """Draw 22 characters that stand in for an id, always the same for one text."""
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:_ID_BYTES]
    return base64.urlsafe_b64encode(digest).decode().rstrip("=")


@lru_cache(maxsize=_TOPICS_REMEMBERED)
def topic_id_hash(topic_id: str) -> int:
    """Return ``Uuid.hashCode`` as an unsigned number of 32 bits."""
    high, low = topic_id_bits(topic_id)
    mixed = (high ^ low) & _MASK_64
    return (mixed >> 32 ^ mixed) & _MASK_32


def inverse(order: list[int] | Ints) -> Ints:
    """Return the place of each element in an order."""
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    return place
