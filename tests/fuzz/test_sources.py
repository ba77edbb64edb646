"""What comes from outside: files of tables, bytes of the protocol, patterns, clients' settings."""

import json
import random
import shutil
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from pyspark.errors import IllegalArgumentException
from pyspark.sql import SparkSession

from kassign_spark import check_settings, read_snapshot, resolve_patterns, validate
from kassign_spark.inputs.patterns import INTERNAL_TOPICS
from kassign_spark.schemas import MEMBERS, OWNED, TOPICS
from kassign_spark.spark.spark_errors import SparkError, spark_message
from tests import builders
from tests.fuzz.budget import examples
from tests.fuzz.outcome import result_or_refusal
from tests.fuzz.strategies import names, text, topic_names, values, whole_numbers
from tests.oracles import protocol

_TABLES = {table.name: [*table.columns.names, "partition"] for table in (MEMBERS, TOPICS, OWNED)}
_FIT: dict[str, list[dict[str, Any]]] = {
    "members": [{"group_id": "g", "member_id": "m", "topics": ["t"], "assignor": "range"}],
    "topics": [{"topic": "t", "num_partitions": 1}],
    "owned": [{"group_id": "g", "member_id": "m", "topic": "t", "partition": 0}],
}


def _csv(rows: list[list[str]]) -> str:
    return "\n".join(",".join('"' + c.replace('"', '""') + '"' for c in row) for row in rows)


@st.composite
def _files(draw: st.DrawFn) -> dict[str, bytes]:
    """Files of a snapshot; one of them or two are anything but fit."""
    files = {f"{n}.jsonl": "\n".join(map(json.dumps, rows)).encode() for n, rows in _FIT.items()}
    for name in draw(st.lists(st.sampled_from(list(_FIT)), min_size=1, max_size=2, unique=True)):
        columns = st.sampled_from(_TABLES[name]) | names()
        ending = draw(st.sampled_from(["csv", "jsonl", "parquet"]))
        record = st.dictionaries(columns, values(), max_size=4)
        row = st.lists(text() | whole_numbers().map(str), min_size=1, max_size=3)
        content = {
            "jsonl": st.lists(record.map(json.dumps) | text(), max_size=3).map("\n".join),
            "csv": st.tuples(
                st.lists(columns, min_size=1, max_size=3), st.lists(row, max_size=3)
            ).map(lambda of: _csv([of[0], *of[1]])),
            "parquet": st.just("PAR1\0\0PAR1"),
        }[ending]
        drawn = draw(content | text() | st.binary(max_size=40))
        del files[f"{name}.jsonl"]
        files[f"{name}.{ending}"] = (
            drawn if isinstance(drawn, bytes) else drawn.encode("utf-8", "surrogatepass")
        )
    return files


def _problems(spark: SparkSession, folder: Path) -> Any:
    try:
        return result_or_refusal(lambda: validate(*read_snapshot(folder, spark)).collect())
    except SparkError as error:
        # Broken while it is read: the command says what Spark says, in one line.
        message = spark_message(error)
    assert len(message.splitlines()) == 1
    return None


@examples(8, spark=True)
@given(files=_files())
def test_files_of_a_snapshot(spark: SparkSession, tmp_path: Path, files: dict[str, bytes]) -> None:
    folder = tmp_path / "snapshot"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for name, content in files.items():
        (folder / name).write_bytes(content)
    _problems(spark, folder)


@examples(2, spark=True)
@given(seed=st.integers(0, 10_000))
def test_damaged_parquet_files(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    folder = tmp_path / "snapshot"
    shutil.rmtree(folder, ignore_errors=True)
    for name, rows in _FIT.items():
        frame = getattr(builders, name)(spark, rows).coalesce(1)
        frame.write.parquet(str(folder / f"{name}.parquet"))
    part = next((folder / f"{rng.choice(list(_FIT))}.parquet").glob("part-*"))
    (part.parent / f".{part.name}.crc").unlink()
    data = bytearray(part.read_bytes())
    for _ in range(rng.randint(1, 4)):
        data[rng.randrange(len(data))] = rng.randrange(256)
    part.write_bytes(bytes(data[: rng.choice((len(data), rng.randrange(len(data))))]))
    _problems(spark, folder)


def _partitions() -> st.SearchStrategy[tuple[tuple[str, int], ...]]:
    number = st.integers(-(2**31), 2**31 - 1)
    return st.lists(st.tuples(text(), number), max_size=4).map(tuple)


def _messages() -> st.SearchStrategy[bytes]:
    """Messages of every kind, whole, cut, with bytes changed, or not messages at all."""
    generation = st.none() | st.integers(0, 2**31 - 1)
    whole = st.one_of(
        st.builds(
            protocol.encode_subscription,
            st.builds(
                protocol.Subscription,
                st.lists(text(), max_size=3).map(tuple),
                _partitions(),
                generation,
                st.none() | text(),
                st.none() | st.binary(max_size=20),
            ),
            st.integers(0, 3),
        ),
        st.builds(
            protocol.encode_assignment,
            st.builds(protocol.Assignment, _partitions(), st.none() | st.binary(max_size=20)),
            st.integers(0, 3),
        ),
        st.builds(
            protocol.encode_sticky_user_data, st.builds(protocol.Claims, _partitions(), generation)
        ),
    )

    def changed(data: bytes, at: int, value: int) -> bytes:
        return data[: at % (len(data) + 1)] + bytes([value]) + data[at % (len(data) + 1) + 1 :]

    spoilt = st.builds(changed, whole, st.integers(0, 99), st.integers(0, 255))
    cut = st.builds(lambda data, at: data[:at], whole, st.integers(0, 40))
    return whole | spoilt | cut | st.binary(max_size=60)


_DECODERS = (
    protocol.decode_subscription,
    protocol.decode_assignment,
    protocol.decode_sticky_user_data,
    protocol.decode_cooperative_sticky_user_data,
)


@examples(500)
@given(data=_messages())
def test_bytes_of_the_protocol(data: bytes) -> None:
    for decode in _DECODERS:
        assert result_or_refusal(lambda decode=decode: (decode(data),)) != ()  # type: ignore[misc]


_PIECES = [*"()[]{}|*+?.\\^$-,:<>=!#&ab09 \n", r"\Q", r"\E", "(?x)", "(?i)", r"\p{L}", "(?<n>"]


@examples(2, spark=True)
@given(
    patterns=st.lists(
        st.lists(st.sampled_from(_PIECES), max_size=8).map("".join) | text(),
        min_size=20,
        max_size=30,
        unique=True,
    ),
    topics=st.lists(topic_names(), min_size=3, max_size=6, unique=True),
)
def test_patterns_are_javas(spark: SparkSession, patterns: list[str], topics: list[str]) -> None:
    members = [
        {"group_id": "g", "member_id": str(i), "topics": None, "topics_pattern": pattern}
        for i, pattern in enumerate(patterns)
    ]
    rows = [{"topic": topic, "num_partitions": 1} for topic in topics]
    result = resolve_patterns(builders.members(spark, members), builders.topics(spark, rows))
    resolved = {patterns[int(row.member_id)]: row.topics for row in result.collect()}
    compiled: Any = spark._jvm.java.util.regex.Pattern  # type: ignore[union-attr]
    for pattern in patterns:
        try:
            expected = [t for t in topics if compiled.compile(pattern).matcher(t).matches()]
        except IllegalArgumentException:  # a PatternSyntaxException is one
            expected = None
        if not pattern:
            expected = None
        names_found = resolved[pattern]
        assert (names_found is None) == (expected is None), pattern
        assert sorted(names_found or []) == sorted(set(expected or []) - set(INTERNAL_TOPICS))


_SETTINGS = [
    "session.timeout.ms",
    "heartbeat.interval.ms",
    "group.instance.id",
    "group.id",
    "group.protocol",
    "partition.assignment.strategy",
    "request.timeout.ms",
]


@examples(1, spark=True)
@given(
    rows=st.lists(
        st.tuples(
            st.none() | names(),
            st.none() | st.sampled_from(["3.9.1", "0.10", "4.4.0", "99999999999.1.1"]) | text(),
            st.none() | st.sampled_from(_SETTINGS) | text(),
            st.none() | text() | whole_numbers().map(str),
        ),
        min_size=20,
        max_size=40,
    )
)
def test_settings_of_clients(spark: SparkSession, rows: list[tuple[str | None, ...]]) -> None:
    columns = "client string, client_version string, setting string, value string"
    check_settings(spark.createDataFrame(rows, columns)).collect()
