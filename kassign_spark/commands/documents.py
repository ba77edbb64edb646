"""The JSON Schema of a command's ``--json`` document: declared once, in the command's file.

A declaration is written as the documents write tables, ``cluster_id? string?, group_id string``: a
``?`` behind the name says that the key may be absent, one behind the type that it may be null.
"""

import argparse
import json
from collections.abc import Sequence
from typing import Any

from kassign_spark.display import print_result
from kassign_spark.schemas import CLUSTER_ID, Table

Schema = dict[str, Any]

DIALECT = "https://json-schema.org/draft/2020-12/schema"
GROUP = "cluster_id? string?, group_id string"
"""The key of a group, as rows of JSON have it."""
COUNTS: Schema = {"type": "object", "additionalProperties": {"type": "integer", "minimum": 0}}
"""Numbers by name, where the names are not known beforehand."""

_TYPES: dict[str, Schema] = {
    "string": {"type": "string"},
    "int": {"type": "integer"},
    "bigint": {"type": "integer"},
    "double": {"type": "number"},
    "boolean": {"type": "boolean"},
    "timestamp": {"type": "string", "format": "date-time"},
}
_NEVER_NEGATIVE = ("_count", "_not_shown")


def record(declared: str | Table = "", more: str = "", **inner: Schema) -> Schema:
    """Declare an object that has these keys and no others.

    Args:
        declared: keys with their types, or a table whose columns they are.
        more: further keys.
        inner: keys whose values are objects or arrays; always there.
    """
    if isinstance(declared, Table):
        declared = _columns_of(declared)
    properties: dict[str, Schema] = {}
    required = []
    for part in ", ".join(filter(None, (declared, more))).split(", "):
        if part:
            name, data_type = part.split(" ")
            key = name.removesuffix("?")
            properties[key] = _schema_of_type(key, data_type)
            required += [key] if key == name else []
    return {
        "type": "object",
        "properties": properties | inner,
        "required": [*required, *inner],
        "additionalProperties": False,
    }


def rows(declared: str | Table = "", more: str = "", **inner: Schema) -> Schema:
    """Declare an array of objects, as ``record`` has them."""
    return {"type": "array", "items": record(declared, more, **inner)}


def maybe(schema: Schema) -> Schema:
    """Declare what may be null."""
    return {"anyOf": [schema, {"type": "null"}]}


def optional(schema: Schema, **inner: Schema) -> Schema:
    """Add keys to an object that may be absent."""
    return {**schema, "properties": schema["properties"] | inner}


def either(*schemas: Schema) -> Schema:
    """Declare the documents of a command whose options ask for different ones."""
    return {"oneOf": list(schemas)}


def one_of(names: Sequence[str]) -> Schema:
    """Declare a text that is one of these."""
    return {"type": "string", "enum": list(names)}


def to_document(command: str, summary: str, schema: Schema) -> Schema:
    """Return a command's declaration as a JSON Schema that stands alone."""
    title = f"kassign-spark {command} --json"
    return {"$schema": DIALECT, "title": title, "description": summary, **schema}


class PrintSchema(argparse.Action):
    """The option ``--json-schema``: print the schema, and do nothing else."""

    def __init__(self, *, document: Schema, **options: Any) -> None:
        super().__init__(nargs=0, default=argparse.SUPPRESS, **options)
        self.document = document

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        """Print it."""
        print_result(json.dumps(self.document, indent=2))
        parser.exit()


def _columns_of(table: Table) -> str:
    """Return a table's columns as text; where the input names no cluster, nor do the rows."""
    return ", ".join(
        f"{field.name}{'?' * (field.name == CLUSTER_ID)} "
        f"{field.dataType.simpleString()}{'?' * field.nullable}"
        for field in table.columns
    )


def _schema_of_type(key: str, text: str) -> Schema:
    if text.endswith("?"):
        return maybe(_schema_of_type(key, text[:-1]))
    if text.startswith("array<"):
        return {"type": "array", "items": _schema_of_type("", text[len("array<") : -1])}
    is_count = key.endswith(_NEVER_NEGATIVE)
    return _TYPES[text] | ({"minimum": 0} if is_count else {})


TOPIC_RANGES = rows(
    "topic string, partition_count int",
    ranges={
        "type": "array",
        "items": {"type": "array", "items": _TYPES["int"], "minItems": 2, "maxItems": 2},
    },
)
"""Partitions of topics: of each range the first and the last."""
