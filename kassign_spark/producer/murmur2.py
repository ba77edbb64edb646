"""Kafka's murmur2 hash of binary columns, as a Spark expression that Spark compiles.

Spark itself uses Apache Commons Codec, whose ``MurmurHash2.hash32`` is Kafka's ``Utils.murmur2``:
the same algorithm, the same seed (0x9747b28c), the bytes of the tail without their sign. The
expression calls it in place, on each executor's JVM. Spark Connect has no way to say so; there the
keys go to Python workers, which takes several times as long.
"""

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import Column
from pyspark.sql import functions as F

from kassign_spark.spark.sessions import columns_are_of_connect
from kassign_spark.spark.spark_versions import arrow_udf, static_int

_SEED, _M, _R = 0x9747B28C, np.uint32(0x5BD1E995), np.uint32(24)
_BLOCK = 4
_CLASS = "org.apache.commons.codec.digest.MurmurHash2"


def murmur2(data: Column) -> Column:
    """Return the hash that Kafka's producer takes of a key's bytes (``Utils.murmur2``).

    Args:
        data: binary; null gives null.

    Returns:
        bigint in 0..2^32-1: Java's int without its sign.

    Example:
        >>> keys = spark.createDataFrame([("21",), ("foobar",), ("",)], "key STRING")
        >>> keys.select(murmur2(F.col("key").cast("binary")).alias("hash")).show()
        +----------+
        |      hash|
        +----------+
        |3321034988|
        |3504634814|
        | 275646681|
        +----------+
        <BLANKLINE>
    """
    if columns_are_of_connect():
        return arrow_udf(murmur2_of, "bigint")(data)
    hashed = static_int(_CLASS, "hash32", data, F.length(data))
    return hashed.cast("bigint").bitwiseAND(F.lit(0xFFFF_FFFF))


def murmur2_of(keys: pa.Array) -> pa.Array:
    """Return the hash of each key, in numpy: for sessions that cannot reach Java's.

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
        word = _little_endian(raw, start[:left] + _BLOCK * block, _BLOCK) * _M
        word ^= word >> _R
        hashed[:left] = (hashed[:left] * _M) ^ (word * _M)
    rest = length[order] % _BLOCK
    for count in range(1, _BLOCK):
        rows = np.flatnonzero(rest == count)
        tail = _little_endian(raw, start[rows] + _BLOCK * blocks[rows], count)
        hashed[rows] = (hashed[rows] ^ tail) * _M
    hashed ^= hashed >> np.uint32(13)
    hashed *= _M
    hashed ^= hashed >> np.uint32(15)
    hashes = np.empty(len(keys), np.int64)
    hashes[order] = hashed
    return pa.array(hashes, mask=np.asarray(keys.is_null()))


def _little_endian(
    raw: NDArray[np.uint8], first: NDArray[np.int64], count: int
) -> NDArray[np.uint32]:
    word = np.zeros(len(first), np.uint32)
    for place in range(count):
        word |= raw[first + place].astype(np.uint32) << np.uint32(8 * place)
    return word
