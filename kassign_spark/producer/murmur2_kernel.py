"""Kafka's murmur2 over many keys at once: for sessions that cannot reach Java's."""

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

_SEED, _M, _R = 0x9747B28C, np.uint32(0x5BD1E995), np.uint32(24)
_BLOCK = 4


def murmur2_of(keys: pa.Array) -> pa.Array:
    """Give the hash of each key (``Utils.murmur2``).

    All keys go through their blocks side by side; the longest come first, so that those which have
    a block left are always the first ones.

    Args:
        keys: binary, of any length; nulls stay null.

    Returns:
        bigint in 0..2^32-1.
    """
    keys = keys.cast(pa.large_binary())
    raw = np.frombuffer(keys.buffers()[2] or b"", np.uint8)
    ends = np.frombuffer(keys.buffers()[1], np.int64)[keys.offset : keys.offset + len(keys) + 1]
    # A null's place in the buffer may be anything; hashed as an empty key it touches none.
    length = np.where(np.asarray(keys.is_null()), 0, np.diff(ends))
    order = np.argsort(-length, kind="stable")
    start, blocks = ends[:-1][order], length[order] // _BLOCK
    hashed = (_SEED ^ length[order]).astype(np.uint32)
    for block in range(int(blocks.max(initial=0))):
        left = int(np.searchsorted(-blocks, -block))
        found = _little_endian(raw, start[:left] + _BLOCK * block, _BLOCK) * _M
        found ^= found >> _R
        hashed[:left] = (hashed[:left] * _M) ^ (found * _M)
    rest = length[order] % _BLOCK
    for count in range(1, _BLOCK):
        of = np.flatnonzero(rest == count)
        tail = _little_endian(raw, start[of] + _BLOCK * blocks[of], count)
        hashed[of] = (hashed[of] ^ tail) * _M
    hashed ^= hashed >> np.uint32(13)
    hashed *= _M
    hashed ^= hashed >> np.uint32(15)
    found = np.empty(len(keys), np.int64)
    found[order] = hashed
    return pa.array(found, mask=np.asarray(keys.is_null()))


def _little_endian(raw: NDArray[np.uint8], at: NDArray[np.int64], count: int) -> NDArray[np.uint32]:
    found = np.zeros(len(at), np.uint32)
    for place in range(count):
        found |= raw[at + place].astype(np.uint32) << np.uint32(8 * place)
    return found
