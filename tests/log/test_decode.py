"""The decoder of the group log against the coordinator's own classes of the pinned jar."""

import random
import struct
import time
from collections.abc import Sequence
from dataclasses import replace

import pytest
from pyspark.sql import SparkSession

from kassign_spark.log import structs
from kassign_spark.log.messages import KINDS, OTHER_KINDS
from tests.kafka.log_records import Bytes, Record, kinds, random_record, read, versions, write
from tests.log.batches import damaged, decoded, differences, with_messages
from tests.log.expected_rows import TABLES, ExpectedRows

Written = list[tuple[Bytes, Record]]


@pytest.fixture(scope="module")
def written(spark: SparkSession) -> Written:
    """Records of every type and version as the jar writes them, and as it reads them again."""
    rng = random.Random(18)
    records = [
        random_record(rng, type_, version)
        for type_ in kinds()
        for version in versions(type_)
        for _ in range(40)
    ]
    records += [with_messages(rng, record) for record in records if record.type == 2]
    records += [replace(rng.choice(records), value=None) for _ in range(100)]
    rng.shuffle(records)
    both = write(spark, records)
    decoded_records = read(spark, both)
    assert all(isinstance(record, Record) for record in decoded_records)
    return [
        (b, record)
        for b, record in zip(both, decoded_records, strict=True)
        if isinstance(record, Record)
    ]


@pytest.fixture(params=["a step for all lists", "a list at once"])
def lists(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both ways to read a list, each for all of them."""
    at_once = request.param == "a list at once"
    monkeypatch.setattr(structs, "_FEW_LISTS", 10**9 if at_once else 0)
    monkeypatch.setattr(structs, "_LONG_LIST", 0)


def _agrees(records: Sequence[Bytes], expected: ExpectedRows) -> None:
    result = decoded(records)
    tables = {table.name: result[i].to_pylist() for i, table in enumerate(TABLES)}
    assert differences(tables, expected.tables) == []
    assert sum(row["count"] for row in result.unread.to_pylist()) == expected.unread.total()


@pytest.mark.usefixtures("lists")
def test_every_kind_and_version_is_decoded_as_the_jar_reads_it(written: Written) -> None:
    _agrees([both for both, _ in written], ExpectedRows().all(record for _, record in written))


def test_every_kind_is_known_by_kafkas_name() -> None:
    names = {type_: key["name"].removesuffix("Key") for type_, (key, _) in kinds().items()}
    assert {type_: kind.name for type_, kind in KINDS.items()} | OTHER_KINDS == names
    assert {t: kind.newest for t, kind in KINDS.items()} == {t: versions(t)[-1] for t in KINDS}


def test_a_record_of_a_hundred_thousand_members_takes_seconds() -> None:
    count = 100_000
    head = struct.pack(">h", 3) + _text("consumer") + struct.pack(">i", 5) + _text("range")
    value = [head + _text("m-0") + struct.pack(">qi", 0, count)]
    subscription = struct.pack(">hi", 0, 1) + _text("t") + struct.pack(">i", -1)
    for i in range(count):
        assignment = struct.pack(">hi", 0, 1) + _text("t") + struct.pack(">iii", 1, i, -1)
        value += [_text(f"m-{i}"), struct.pack(">h", -1), _text("c"), _text("/h")]
        value += [struct.pack(">iii", 1, 1, len(subscription)), subscription]
        value += [struct.pack(">i", len(assignment)), assignment]
    started = time.monotonic()
    result = decoded([(struct.pack(">h", 2) + _text("g"), b"".join(value))])
    assert result.log_assignment["partition"].to_pylist() == list(range(count))
    assert not len(result.unread)
    assert time.monotonic() - started < 5, "it was 48"


def _text(text: str) -> bytes:
    return struct.pack(">h", len(text)) + text.encode()


@pytest.mark.usefixtures("lists")
def test_damaged_records_are_what_the_jar_reads_or_counted(
    written: Written, spark: SparkSession
) -> None:
    rng = random.Random(19)
    broken = [damaged(rng, both) for both, _ in rng.choices(written, k=6000)]
    decoded_records = read(spark, broken)
    assert 1000 < sum(isinstance(record, str) for record in decoded_records) < 5000
    _agrees(broken, ExpectedRows().all(decoded_records))
