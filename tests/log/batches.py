"""Batches of raw records for the decoder: arrays, seeded records and seeded damage."""

import base64
import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from kassign_spark.log.decode import DecodedTables, decode_table
from tests.kafka.log_records import TEXTS, Bytes, Record
from tests.log.expected_rows import recorded_at
from tests.oracles import protocol


def decoded(records: Sequence[Bytes], *, owned: bool = True) -> DecodedTables:
    """Decode records whose offsets are their places."""
    count = len(records)
    columns = {
        "key": pa.array([key for key, _ in records], pa.binary()),
        "value": pa.array([value for _, value in records], pa.binary()),
        "timestamp": pa.array([recorded_at(i) for i in range(count)], pa.timestamp("us", "UTC")),
        "partition": pa.array([0] * count, pa.int32()),
        "offset": pa.array(range(count), pa.int64()),
    }
    return decode_table(pa.table(columns), owned=owned)


def with_messages(rng: random.Random, record: Record) -> Record:
    """A group of consumers, whose members' bytes are subscriptions and assignments, mostly."""
    assert record.value is not None
    members = [
        member | {"subscription": _subscription(rng), "assignment": _assignment(rng)}
        for member in record.value["members"]
    ]
    return replace(record, value=record.value | {"protocolType": "consumer", "members": members})


def damaged(rng: random.Random, record: Bytes) -> Bytes:
    """The record with one thing wrong in its key or, mostly, in its value."""
    key, value = record
    if value is None or rng.random() < 0.2:
        return _damage(rng, key or b""), value
    return key, _damage(rng, value)


def _damage(rng: random.Random, data: bytes) -> bytes:
    at = rng.randrange(len(data) + 1)
    how = rng.randrange(6)
    if how == 0:
        return data[:at]
    if how == 1:
        return data[:at] + rng.randbytes(1) + data[at:]
    if how == 2:
        return data[:at] + rng.randbytes(rng.randrange(1, 5)) + data[at + 1 :]
    if how == 3:
        return rng.randbytes(rng.randrange(40))
    if how == 4:
        return data[:at] + b"\xff\xff\xff\xff" + data[at + 4 :]
    return (
        data[:at] + bytes([data[at] ^ 1 << rng.randrange(8)]) + data[at + 1 :] if data[at:] else b""
    )


def _subscription(rng: random.Random) -> str:
    subscription = protocol.Subscription(
        tuple(rng.sample(TEXTS, rng.randrange(5))),
        _pairs(rng),
        rng.choice((None, 0, 7)),
        rng.choice((None, "r1", "r2")),
        rng.choice((None, b"", b"abc")),
    )
    return _broken_or_not(rng, protocol.encode_subscription(subscription, rng.randrange(4)))


def _assignment(rng: random.Random) -> str:
    assignment = protocol.Assignment(_pairs(rng), rng.choice((None, b"xy")))
    return _broken_or_not(rng, protocol.encode_assignment(assignment, rng.randrange(4)))


def _pairs(rng: random.Random) -> tuple[tuple[str, int], ...]:
    topics = rng.sample(TEXTS, rng.randrange(4))
    return tuple((topic, partition) for topic in topics for partition in range(rng.randrange(9)))


def _broken_or_not(rng: random.Random, data: bytes) -> str:
    drawn = rng.random()
    if drawn < 0.1:
        data = data[: rng.randrange(len(data))]
    elif drawn < 0.15:
        data = b"\x00\x09" + data[2:]
    elif drawn < 0.2:
        data = rng.randbytes(8)
    return base64.b64encode(data).decode()


def differences(values: dict[str, list[Any]], expected: dict[str, list[Any]]) -> list[str]:
    """The first row of each table that is not as wanted."""
    different = []
    for table, rows in expected.items():
        if values[table] != rows:
            pairs = zip([*values[table], None], [*rows, None], strict=False)
            first = next(pair for pair in pairs if pair[0] != pair[1])
            different.append(f"{table}: {first[0]} is to be {first[1]}")
    return different
