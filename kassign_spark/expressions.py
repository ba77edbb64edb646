"""Java's orderings and hashes as Spark expressions, ``Column -> Column``; nothing here runs Python.

Kafka's answers rest on how Java compares and hashes strings and on the order in which its hash
maps iterate.
"""

from pyspark.sql import Column
from pyspark.sql import functions as F


def java_string_order(text: Column) -> Column:
    """Give a sort key that orders strings as Java's ``String.compareTo`` does.

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
