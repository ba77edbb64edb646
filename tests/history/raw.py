"""Classic groups of ``logs.Made`` as the bytes that brokers write: the schemas of Kafka 4.4."""

import struct
from collections.abc import Iterable
from datetime import datetime
from typing import Any

from tests.history.logs import Made

Record = tuple[bytes, bytes | None, str, int, int, datetime]


def records(made: Made) -> list[Record]:
    """Rows of ``log.log_schemas.RECORDS``, by offset."""
    result = [_generation(made, row) for row in made.generations if row["group_type"] == "classic"]
    result += [_commit(row) for row in made.commits]
    return sorted(result, key=lambda record: record[4])


def _generation(made: Made, row: dict[str, Any]) -> Record:
    key = _short(2) + _string(row["group_id"])
    if row["is_tombstone"]:
        return key, None, "__consumer_offsets", 7, row["offset"], row["at"]
    members = [m for m in made.members if m["offset"] == row["offset"]]
    value = _short(3) + _string("consumer") + _int(row["generation"]) + _string(row["assignor"])
    value += _string(row["leader"]) + _long(int(row["at"].timestamp() * 1000))
    value += _array(_member(made, row["offset"], member) for member in members)
    return key, value, "__consumer_offsets", 7, row["offset"], row["at"]


def _member(made: Made, offset: int, member: dict[str, Any]) -> bytes:
    assigned, claims = (_partitions(made, offset, member, role) for role in ("assigned", "owned"))
    generation = member["owned_generation"]
    version = 0 if generation is None else 2
    subscription = _short(version) + _array(map(_string, member["topics"])) + _int(-1)
    if version:
        subscription += claims + _int(generation)
    assignment = _short(0) + assigned + _int(-1)
    return (
        _string(member["member_id"])
        + _string(member["group_instance_id"])
        + _string(member["client_id"])
        + _string(member["client_host"])
        + _int(member["rebalance_timeout_ms"])
        + _int(member["session_timeout_ms"])
        + _int(len(subscription))
        + subscription
        + _int(len(assignment))
        + assignment
    )


def _partitions(made: Made, offset: int, member: dict[str, Any], role: str) -> bytes:
    topics: dict[str, list[int]] = {}
    for row in made.assignment:
        place = row["offset"], row["member_id"], row["role"]
        if place == (offset, member["member_id"], role):
            topics.setdefault(row["topic"], []).append(row["partition"])
    return _array(_string(topic) + _array(map(_int, ps)) for topic, ps in topics.items())


def _commit(row: dict[str, Any]) -> Record:
    key = _short(1) + _string(row["group_id"]) + _string(row["topic"]) + _int(row["partition"])
    value = _short(3) + _long(row["committed"]) + _int(-1) + _string("")
    value += _long(int(row["at"].timestamp() * 1000))
    return key, value, "__consumer_offsets", 7, row["offset"], row["at"]


def _short(number: int) -> bytes:
    return struct.pack(">h", number)


def _int(number: int) -> bytes:
    return struct.pack(">i", number)


def _long(number: int) -> bytes:
    return struct.pack(">q", number)


def _string(text: str | None) -> bytes:
    if text is None:
        return _short(-1)
    return _short(len(text.encode())) + text.encode()


def _array(parts: Iterable[bytes]) -> bytes:
    listed = list(parts)
    return _int(len(listed)) + b"".join(listed)
