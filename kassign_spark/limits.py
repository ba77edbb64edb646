"""Limits of inputs: one for each count, far beyond every existing cluster.

A count is a few bytes to write and gigabytes to follow, so it is held to its limit before anything
is made of it: tables in the first look at them, files while they are read.
"""

import errno
from pathlib import Path

PARTITIONS_OF_A_TOPIC = 10_000_000
PARTITIONS_OF_A_GROUP = 20_000_000
"""Partitions of all topics that the members of a group read."""
MEMBERS_OF_A_GROUP = 1_000_000
NEW_MEMBERS_OF_A_SWEEP = 10_000
VARIANTS_OF_A_SWEEP = 1_000
SWEEPS = 100
EVENTS = 100_000
PATTERN_CHARACTERS = 32_767
"""Characters of a member's pattern or regex: the longest string of Kafka's protocol."""
MOST_WEIGHT, LEAST_CAPACITY = 1e60, 1e-60
"""The greatest weight or move cost of a partition, and capacity of a member; the least capacity."""
TASKS = 1_000_000
TEXT_FILE_BYTES = 16 << 20
"""Bytes of a file that Python reads as a whole: events, settings, properties."""


def read_text(path: str | Path, encoding: str = "utf-8") -> str:
    """Read a text file whole; line ends are ``\\n``.

    Raises:
        OSError: it cannot be read, or has more than ``TEXT_FILE_BYTES``.
        UnicodeDecodeError: it is in another encoding.
    """
    with Path(path).open("rb") as file:
        content = file.read(TEXT_FILE_BYTES + 1)
    if len(content) > TEXT_FILE_BYTES:
        raise OSError(errno.EFBIG, f"has more than {TEXT_FILE_BYTES:,} bytes")
    return content.decode(encoding).replace("\r\n", "\n").replace("\r", "\n")
