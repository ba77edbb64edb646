"""Versions of Kafka's client as numbers that compare."""

import re

from pyspark.sql import Column
from pyspark.sql import functions as F

from kassign_spark.errors import InputError

_PATTERN = r"^\s*(\d{1,4})\.(\d{1,3})(?:\.(\d{1,3}))?(?:[.-].*)?\s*$"


def version_of(text: str) -> int:
    """Read a version such as ``3.9.1``, ``0.10.2.1`` or ``4.1.0-rc1``; three parts count.

    Returns:
        A number that orders versions: 3009001.

    Raises:
        InputError: the text is no version.
    """
    match = re.match(_PATTERN, text)
    if match is None:
        raise InputError(f'client_version is "{text}"; give one like 3.9.1')
    major, minor, patch = match.groups(default="0")
    return (int(major) * 1000 + int(minor)) * 1000 + int(patch)


def version_number(text: Column) -> Column:
    """Read versions of a column as ``version_of`` does.

    Args:
        text: string.

    Returns:
        bigint; null where the text is null or no version.

    Example:
        >>> rows = [("3.9.1",), ("0.10.2.1",), ("4.0",), ("newest",)]
        >>> versions = spark.createDataFrame(rows, "v STRING")
        >>> versions.select("v", version_number(F.col("v")).alias("number")).show()
        +--------+-------+
        |       v| number|
        +--------+-------+
        |   3.9.1|3009001|
        |0.10.2.1|  10002|
        |     4.0|4000000|
        |  newest|   NULL|
        +--------+-------+
        <BLANKLINE>
    """
    major, minor, patch = (F.regexp_extract(text, _PATTERN, i) for i in (1, 2, 3))
    # A group that took no part in the match is an empty text.
    patch = F.when(patch == "", "0").otherwise(patch)
    number = (major.cast("bigint") * 1000 + minor.cast("bigint")) * 1000 + patch.cast("bigint")
    return F.when(text.rlike(_PATTERN), number)
