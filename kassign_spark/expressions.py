"""Java's orderings and hashes as Spark expressions, ``Column -> Column``; nothing here runs Python.

Kafka's answers rest on how Java compares and hashes strings and on the order in which its hash
maps iterate.
"""

from collections.abc import Iterable

from pyspark.sql import Column
from pyspark.sql import functions as F

_MASK32 = 0xFFFF_FFFF
_LARGEST_TABLE_EXPONENT = 30


def java_string_order(text: Column) -> Column:
    """Return a sort key that orders strings as Java's ``String.compareTo`` does.

    Java compares UTF-16 code units, Spark compares UTF-8 bytes. The two differ when one string has
    a character above U+FFFF where the other has one in U+E000..U+FFFF, which a ``member_id`` (it
    starts with the client id, free text) can show; topic names and ``group.instance.id`` cannot.

    Args:
        text: string; null gives null.

    Returns:
        binary: the code units, big-endian. Binary columns compare by unsigned bytes.

    Example:
        >>> rows = [("\\uffee",), ("😀",), ("a",)]
        >>> ids = spark.createDataFrame(rows, "id STRING")
        >>> [row.id for row in ids.orderBy("id").collect()] == ["a", "\\uffee", "😀"]
        True
        >>> by_java = ids.orderBy(java_string_order(F.col("id")))
        >>> [row.id for row in by_java.collect()] == ["a", "😀", "\\uffee"]
        True
    """
    return F.encode(text, "UTF-16BE")


def java_hash_code(text: Column) -> Column:
    """Return Java's ``String.hashCode``: ``h = 31 * h + u`` over the UTF-16 code units u.

    The arithmetic is done in ``bigint`` modulo 2^32, so that ANSI mode has no overflow to refuse.
    A loop over the characters costs about 0.1 microseconds each; unrolled forms (arithmetic on
    ``ascii``, ``conv`` of hex digits) were slower or took a second to compile.

    Args:
        text: string; null gives null.

    Returns:
        int, the signed 32-bit hash.

    Example:
        >>> ids = spark.createDataFrame([("test",), ("my-group",), ("😀",), ("",)], "id STRING")
        >>> ids.select(java_hash_code(F.col("id")).alias("hash")).show()
        +-----------+
        |       hash|
        +-----------+
        |    3556498|
        |-1906497762|
        |    1772899|
        |          0|
        +-----------+
        <BLANKLINE>
    """
    characters = F.split(text, "")
    is_ascii = F.octet_length(text) == F.char_length(text)
    by_unit = F.aggregate(characters, _bigint(0), lambda h, c: _low32(h * 31 + F.ascii(c)))
    by_code_point = F.aggregate(characters, _bigint(0), _hash_code_point)
    return _signed32(F.when(is_ascii, by_unit).otherwise(by_code_point))


def div(dividend: Column, divisor: Column) -> Column:
    """Divide whole numbers, dropping the fraction: Java's ``/`` of ints, as bigint."""
    return F.call_function("div", dividend, divisor)


def topic_partition_hash(topic: Column, partition: Column) -> Column:
    """Return the hash of Kafka's ``TopicPartition``: ``31 * (31 + partition) + hash(topic)``.

    Args:
        topic: string.
        partition: int or bigint in the range of int.

    Returns:
        int; null where either is null.

    Example:
        >>> rows = spark.createDataFrame([("t1", 2)], "topic STRING, partition INT")
        >>> rows.select(topic_partition_hash(F.col("topic"), F.col("partition")).alias("h")).show()
        +----+
        |   h|
        +----+
        |4668|
        +----+
        <BLANKLINE>
    """
    partition_hash = (partition.cast("bigint") + 31) * 31
    return _signed32(_low32(partition_hash + java_hash_code(topic)))


def hash_map_capacity(count: Column) -> Column:
    """Return the table size of a ``java.util.HashMap`` made without arguments.

    That is the least power of two, at least 16, of which ``count`` is at most three quarters. (A
    map copied from another one can be larger: 32, not 16, for 12 keys in Java 17.)

    Args:
        count: whole number >= 0, how many keys the map holds; it must never have held more.

    Returns:
        int: 16, 32, 64, ... up to 2^30.

    Example:
        >>> counts = spark.createDataFrame([(0,), (12,), (13,), (24,), (25,)], "count INT")
        >>> counts.select("count", hash_map_capacity(F.col("count")).alias("capacity")).show()
        +-----+--------+
        |count|capacity|
        +-----+--------+
        |    0|      16|
        |   12|      16|
        |   13|      32|
        |   24|      32|
        |   25|      64|
        +-----+--------+
        <BLANKLINE>
    """
    # 2^digits(n) is the least power of two above n; four binary digits make the smallest table.
    keys_needing_room = div(count.cast("bigint") * 4 + 2, F.lit(3))
    digits = F.length(F.bin(F.greatest(keys_needing_room - 1, _bigint(15))))
    return _power_of_two(F.least(digits, F.lit(_LARGEST_TABLE_EXPONENT)))


def hash_bucket(hash_code: Column, capacity: Column) -> Column:
    """Return the place of a key in the table of a ``java.util.HashMap``.

    A map iterates by bucket, and inside a bucket in the order in which the keys were put: order
    by ``hash_bucket`` and then by that order. A crowded bucket may break that order
    (``member_order.crowded_buckets``).

    Args:
        hash_code: int, as ``java_hash_code`` gives it.
        capacity: int, as ``hash_map_capacity`` gives it.

    Returns:
        int in 0..capacity-1.

    Example:
        >>> hashes = spark.createDataFrame([(3556498,), (-1906497762,)], "hash INT")
        >>> hashes.select(hash_bucket(F.col("hash"), F.lit(16)).alias("bucket")).show()
        +------+
        |bucket|
        +------+
        |     4|
        |     3|
        +------+
        <BLANKLINE>
    """
    spread = hash_code.bitwiseXOR(F.shiftrightunsigned(hash_code, 16))
    return spread.bitwiseAND(capacity - 1)


def _hash_code_point(hash_code: Column, character: Column) -> Column:
    """Take one character into a hash: one code unit, or two beyond U+FFFF."""
    code = F.ascii(character)
    beyond = code - 0x10000
    high = F.shiftright(beyond, 10) + 0xD800
    low = beyond.bitwiseAND(F.lit(0x3FF)) + 0xDC00
    pair = hash_code * (31 * 31) + high * 31 + low
    return _low32(F.when(beyond < 0, hash_code * 31 + code).otherwise(pair))


def _bigint(value: int) -> Column:
    return F.lit(value).cast("bigint")


def _power_of_two(exponent: Column) -> Column:
    return F.call_function("shiftleft", F.lit(1), exponent)


def _low32(value: Column) -> Column:
    """Keep the low 32 bits of a bigint, as a number in 0..2^32-1."""
    return value.bitwiseAND(_bigint(_MASK32))


def _signed32(value: Column) -> Column:
    """Read a number in 0..2^32-1 as Java's int; shifts never overflow, a plain cast would."""
    return F.shiftright(F.shiftleft(value, 32), 32).cast("int")


def is_group_of(names: Iterable[tuple[str, str]]) -> Column:
    """Return the condition that a row is of one of a few hundred groups; needs no join.

    Names are cluster_id and group_id. Where these are null in a row, so is the answer.
    """
    by_cluster: dict[str, list[str]] = {}
    for cluster_id, group_id in names:
        by_cluster.setdefault(cluster_id, []).append(group_id)
    condition = F.lit(False)
    for cluster_id, group_ids in by_cluster.items():
        is_cluster = F.col("cluster_id") == F.lit(cluster_id)
        condition = condition | (is_cluster & F.col("group_id").isin(group_ids))
    return condition
