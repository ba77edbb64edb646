"""Records of ``__consumer_offsets`` by the pinned jar's own classes, on the Spark session's JVM.

What a record may hold is taken from the message definitions that lie in the jar.
"""

import base64
import json
import random
import re
import zipfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from pyspark.sql import SparkSession

from tests.kafka.coordinator import random_topic_id
from tests.kafka.jars import KAFKA_VERSION, coordinator_jars
from tests.kafka.oracle import new_java_object

Bytes = tuple[bytes | None, bytes | None]
"""Key and value."""

TEXTS = ("g", "orders", "orders-1", "größe", "consumer-1-3f2a", "/10.0.0.7", "x" * 200, "日本")


@dataclass(frozen=True)
class Record:
    """What a record says, in the names of Kafka's definitions; no value: a tombstone."""

    type: int
    key: dict[str, Any]
    version: int = 0
    value: dict[str, Any] | None = None


def write(spark: SparkSession, records: Iterable[Record]) -> list[Bytes]:
    """The bytes of all records, in one call."""
    lines = "\n".join(json.dumps(vars(record)) for record in records)
    written = [json.loads(line) for line in _records(spark).write(lines).splitlines()]
    return [(_from64(each["key"]), _from64(each.get("value"))) for each in written]


def read(spark: SparkSession, records: Iterable[Bytes]) -> list[Record | str]:
    """What the bytes say, or the error that they are to the coordinator; in one call."""
    lines = "\n".join(
        json.dumps({"key": _to64(key), "value": _to64(value)}) for key, value in records
    )
    answers = [json.loads(line) for line in _records(spark).read(lines).splitlines()]
    return [
        each["error"]
        if "error" in each
        else Record(each["type"], each["key"], each.get("version", 0), each.get("value"))
        for each in answers
    ]


@cache
def kinds() -> dict[int, tuple[dict[str, Any], dict[str, Any]]]:
    """The definitions of keys and values by the type of the record."""
    jar = next(
        jar
        for jar in coordinator_jars()
        if jar.name.endswith(f"_kafka-group-coordinator-{KAFKA_VERSION}.jar")
    )
    definitions: dict[tuple[int, str], dict[str, Any]] = {}
    with zipfile.ZipFile(jar) as files:
        for name in files.namelist():
            if re.fullmatch(r"common/message/\w+(Key|Value)\.json", name):
                text = re.sub(r"(?m)^\s*//.*$", "", files.read(name).decode())
                definition = json.loads(text)
                definitions[definition["apiKey"], definition["type"]] = definition
    types = sorted({type_ for type_, _ in definitions})
    return {
        type_: (
            definitions[type_, "coordinator-key"],
            definitions[type_, "coordinator-value"],
        )
        for type_ in types
    }


def versions(type_: int) -> range:
    """The versions of a value that the jar can read."""
    first, _, last = kinds()[type_][1]["validVersions"].partition("-")
    return range(int(first), int(last or first) + 1)


def random_record(rng: random.Random, type_: int, version: int) -> Record:
    key, value = kinds()[type_]
    return Record(type_, _struct(rng, key, 0), version, _struct(rng, value, version))


def _struct(rng: random.Random, definition: dict[str, Any], version: int) -> dict[str, Any]:
    shared = {struct["name"]: struct for struct in definition.get("commonStructs", [])}

    def fields(listed: Sequence[dict[str, Any]]) -> dict[str, Any]:
        return {
            field["name"][0].lower() + field["name"][1:]: value(field)
            for field in listed
            if _has(field.get("versions", "0+"), version)
            and not (_is_tagged(field) and rng.random() < 0.4)
        }

    def value(field: dict[str, Any]) -> Any:
        if _has(field.get("nullableVersions", "none"), version) and rng.random() < 0.3:
            return None
        kind = field["type"]
        if kind.startswith("[]"):
            count = rng.choice((0, 1, 2, 2, 5, 130 if kind == "[]int32" else 9))
            return [element(kind[2:], field) for _ in range(count)]
        return element(kind, field)

    def element(kind: str, field: dict[str, Any]) -> Any:
        if kind == "uint16":
            return rng.randrange(1 << 16)
        if kind in _BITS:
            return _number(rng, _BITS[kind])
        if kind == "string":
            return rng.choice((*TEXTS, ""))
        if kind == "uuid":
            return random_topic_id(rng)
        if kind == "bytes":
            return _to64(rng.randbytes(rng.choice((0, 1, 40))))
        if kind == "bool":
            return rng.random() < 0.5
        return fields((field if "fields" in field else shared[kind])["fields"])

    return fields(definition["fields"])


_BITS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}


def _number(rng: random.Random, bits: int) -> int:
    """Small ones mostly, and any."""
    if rng.random() < 0.7:
        return rng.randrange(-1, 100)
    return rng.randrange(-(1 << bits - 1), 1 << bits - 1)


def _is_tagged(field: dict[str, Any]) -> bool:
    return "tag" in field


def _has(versions: str, version: int) -> bool:
    if versions == "none":
        return False
    first, plus, last = re.fullmatch(r"(\d+)(\+?)(?:-(\d+))?", versions).groups()  # type: ignore[union-attr]
    return int(first) <= version and (bool(plus) or version <= int(last or first))


def _to64(data: bytes | None) -> str | None:
    return None if data is None else base64.b64encode(data).decode()


def _from64(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text)


@cache
def _records(spark: SparkSession) -> Any:
    return new_java_object(spark, "Records")
