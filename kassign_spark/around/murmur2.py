"""Kafka's murmur2 hash of binary columns, as a Spark expression that Spark compiles.

Spark has no expression that reads bytes as a number. But the CRC-32 of exactly four bytes is one
to one and, but for a constant, linear over XOR: so four look-ups, one for each byte of the
checksum, give back the four bytes as a little-endian number, which is how murmur2 reads them.
"""

import zlib
from functools import cache

from pyspark.sql import Column
from pyspark.sql import functions as F

_MULTIPLIER = 0x5BD1_E995
_SEED = 0x9747_B28C
_MASK32 = 0xFFFF_FFFF
_COMPILED_WORDS = 10
"""Keys of up to 43 bytes (a UUID has 36) take the compiled way; each word more slows all keys."""


def murmur2(data: Column) -> Column:
    """Give the hash that Kafka's producer takes of a key's bytes (``Utils.murmur2``).

    Over 1 million keys a second on one core up to 43 bytes; longer ones take a loop that Spark
    interprets: 0.6 microseconds and more for each four bytes, no faster than plain Python.

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
    is_short = F.length(data) < 4 * (_COMPILED_WORDS + 1)
    # Of a coalesce, Spark shares common parts within the first argument only, as it is the one
    # that is always evaluated; without sharing, every word would be read eight times. Hence no
    # when() around it: it is computed for all keys, and made null for the long ones.
    return F.coalesce(_compiled(data) + F.when(is_short, 0), _interpreted(data))


def _compiled(data: Column) -> Column:
    """Hash up to ``_COMPILED_WORDS`` words and a tail, unrolled; wrong for longer data."""
    length = F.length(data)
    words = F.shiftright(length, 2)
    padded = _zero_padded(F.substring(data, F.lit(1), words * 4), 4 * _COMPILED_WORDS)
    tables = _word_tables()
    state = _start(length)
    for i in range(_COMPILED_WORDS):
        mixed = _low32(_word(padded, F.lit(4 * i + 1), tables) * _MULTIPLIER)
        mixed = _low32(mixed.bitwiseXOR(F.shiftright(mixed, 24)) * _MULTIPLIER)
        # Past the last word the state stays: the padding is zero and mixes to zero.
        factor = F.when(words > i, _MULTIPLIER).otherwise(1)
        state = _low32(state * factor).bitwiseXOR(mixed)
    state = _with_tail(state, data, tables)
    state = _low32(state.bitwiseXOR(F.shiftright(state, 13)) * _MULTIPLIER)
    return state.bitwiseXOR(F.shiftright(state, 15))


def _interpreted(data: Column) -> Column:
    """Hash any number of words in a loop; ``transform`` stands for a variable in each step."""
    words = F.shiftright(F.length(data), 2)
    tables = _word_tables()
    starts = F.filter(
        F.sequence(F.lit(1), F.greatest(words * 4, F.lit(1)), F.lit(4)), lambda at: at <= words * 4
    )
    mixed = F.transform(starts, lambda at: _low32(_word(data, at, tables) * _MULTIPLIER))
    mixed = F.transform(mixed, lambda k: _low32(k.bitwiseXOR(F.shiftright(k, 24)) * _MULTIPLIER))

    def finish(state: Column) -> Column:
        state = F.transform(
            F.array(_with_tail(state, data, tables)),
            lambda h: _low32(h.bitwiseXOR(F.shiftright(h, 13)) * _MULTIPLIER),
        )
        return F.get(F.transform(state, lambda h: h.bitwiseXOR(F.shiftright(h, 15))), F.lit(0))

    return F.aggregate(
        mixed,
        _start(F.length(data)),
        lambda h, k: _low32(h * _MULTIPLIER).bitwiseXOR(k),
        finish,
    )


def _start(length: Column) -> Column:
    return length.cast("bigint").bitwiseXOR(F.lit(_SEED))


def _with_tail(state: Column, data: Column, tables: list[Column]) -> Column:
    """Take in the one to three bytes behind the last word, if there are any."""
    length = F.length(data)
    tail = _zero_padded(F.substring(data, F.shiftright(length, 2) * 4 + 1, F.lit(4)), 4)
    factor = F.when(length.bitwiseAND(3) > 0, _MULTIPLIER).otherwise(1)
    return _low32(state.bitwiseXOR(_word(tail, F.lit(1), tables)) * factor)


def _zero_padded(data: Column, length: int) -> Column:
    return F.rpad(data, length, F.lit(b"\x00"))


def _low32(value: Column) -> Column:
    return value.bitwiseAND(F.lit(_MASK32))


def _word(data: Column, start: Column, tables: list[Column]) -> Column:
    """Read four bytes from ``start`` (counted from 1) as a little-endian number, a bigint."""
    checksum = F.crc32(F.substring(data, start, F.lit(4)))
    parts = [
        F.get(table, F.shiftright(checksum, 8 * i).bitwiseAND(0xFF).cast("int"))
        for i, table in enumerate(tables)
    ]
    return parts[0].bitwiseXOR(parts[1]).bitwiseXOR(parts[2]).bitwiseXOR(parts[3])


def _word_tables() -> list[Column]:
    """Four arrays of 256 bigints; Spark's optimizer folds each into one literal."""
    return [F.split(F.lit(text), ",").cast("array<bigint>") for text in _word_table_texts()]


@cache
def _word_table_texts() -> list[str]:
    constant = _word_of_checksum(0)
    tables = [
        [_word_of_checksum(byte << 8 * i) ^ (constant if i else 0) for byte in range(256)]
        for i in range(4)
    ]
    return [",".join(map(str, table)) for table in tables]


def _word_of_checksum(checksum: int) -> int:
    """Find the little-endian word that has this CRC-32: the algorithm run backwards, by bytes."""
    forward = [zlib.crc32(bytes([byte ^ 0xFF])) ^ 0xFF00_0000 for byte in range(256)]
    by_top_byte = {value >> 24: byte for byte, value in enumerate(forward)}
    register = checksum ^ _MASK32
    for _ in range(4):
        byte = by_top_byte[register >> 24]
        register = (register ^ forward[byte]) << 8 & _MASK32 | byte
    return register ^ _MASK32
