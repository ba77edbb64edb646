"""Kafka's primitive types on the wire, big-endian; the one place that takes bytes apart.

Every read is checked against the bytes that are there, so no count or length found in broken bytes
is believed.
"""

import struct
from collections.abc import Sequence, Sized

from kassign_spark.errors import KassignError

Partitions = tuple[tuple[str, int], ...]
"""(topic, partition) pairs."""


class ProtocolError(KassignError):
    """Bytes are no such message, or values do not fit into one; the text says where."""


class Reader:
    """A cursor over bytes that never reads behind their end."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def remaining(self) -> int:
        """Count the bytes not read yet."""
        return len(self._data) - self._at

    def version(self, newest: int) -> int:
        """Read the version in front of a message; one above ``newest`` is read as that."""
        version = self._integer(">h", "version")
        if version < 0:
            raise ProtocolError(f"version {version} is negative")
        return min(version, newest)

    def int32(self, field: str) -> int:
        """Read a number; ``field`` names it in errors, here and below."""
        return self._integer(">i", field)

    def count(self, field: str) -> int:
        """Read how many elements an array has."""
        count = self.int32(f"number of {field}")
        # No element is shorter than a byte: a greater count is broken, whatever follows.
        if not 0 <= count <= self.remaining():
            raise ProtocolError(f"number of {field} is {count}, with {self.remaining()} bytes left")
        return count

    def string(self, field: str) -> str:
        """Read a text that must be there."""
        text = self.nullable_string(field)
        if text is None:
            raise ProtocolError(f"{field} has a negative length")
        return text

    def nullable_string(self, field: str) -> str | None:
        """Read a text; None where its length is negative."""
        length = self._integer(">h", f"length of {field}")
        if length < 0:
            return None
        try:
            return self._take(length, field).decode("utf-8")
        except UnicodeDecodeError as error:
            raise ProtocolError(f"{field} is not UTF-8: {error.reason}") from None

    def nullable_bytes(self, field: str) -> bytes | None:
        """Read bytes; None where their length is negative."""
        length = self.int32(f"length of {field}")
        return None if length < 0 else self._take(length, field)

    def partitions_by_topic(self, field: str) -> Partitions:
        """Read topics with their partitions; a topic that appears twice has both lists."""
        pairs: list[tuple[str, int]] = []
        for _ in range(self.count(f"topics of {field}")):
            topic = self.string(f"topic of {field}")
            count = self.count(field)
            numbers = struct.unpack(f">{count}i", self._take(4 * count, field))
            pairs.extend((topic, number) for number in numbers)
        return tuple(pairs)

    def _integer(self, form: str, field: str) -> int:
        value: int = struct.unpack(form, self._take(struct.calcsize(form), field))[0]
        return value

    def _take(self, length: int, field: str) -> bytes:
        if length > self.remaining():
            raise ProtocolError(
                f"the bytes end within {field}: {length} needed at {self._at}, "
                f"{self.remaining()} left"
            )
        self._at += length
        return self._data[self._at - length : self._at]


def int16(value: int, field: str) -> bytes:
    """Write a number of two bytes."""
    return _packed(">h", value, field)


def int32(value: int, field: str) -> bytes:
    """Write a number of four bytes."""
    return _packed(">i", value, field)


def _packed(form: str, value: int, field: str) -> bytes:
    try:
        return struct.pack(form, value)
    except struct.error:
        raise ProtocolError(f"{field} {value!r} does not fit into its field") from None


def count(values: Sized) -> bytes:
    """Write how many elements an array has."""
    return int32(len(values), "count")


def string(text: str) -> bytes:
    """Write a text."""
    try:
        encoded = text.encode("utf-8")
    except UnicodeEncodeError:
        raise ProtocolError(f"{text!r} cannot be written as UTF-8") from None
    return int16(len(encoded), f"length of {text[:40]!r}:") + encoded


def nullable_bytes(data: bytes | None) -> bytes:
    """Write bytes, or that there are none."""
    return int32(-1, "length") if data is None else count(data) + data


def partitions_by_topic(pairs: Sequence[tuple[str, int]]) -> bytes:
    """Write topics by first appearance, each with its partitions in the order given."""
    by_topic: dict[str, list[int]] = {}
    for topic, partition in pairs:
        by_topic.setdefault(topic, []).append(partition)
    parts = [count(by_topic)]
    for topic, partitions in by_topic.items():
        parts += [string(topic), count(partitions)]
        parts += [int32(partition, f"partition of {topic}:") for partition in partitions]
    return b"".join(parts)
