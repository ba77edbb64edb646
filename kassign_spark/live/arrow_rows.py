"""A plain Python function applied to columns of a frame, batch by batch, through Arrow."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import accumulate
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import DataType, StructType

from kassign_spark.errors import SchemaError
from kassign_spark.live.wire import Partitions, ProtocolError
from kassign_spark.schemas import arrow_schema

PARTITIONS = "ARRAY<STRUCT<topic: STRING, partition: INT>>"

Row = tuple[Any, ...]
"""The values of one row's new columns; the last one, ``error``, may be left out."""


def map_rows(
    frame: DataFrame, inputs: Mapping[str, DataType], outputs: str, convert: Callable[..., Row]
) -> DataFrame:
    """Add columns to a frame: what ``convert`` makes of the values of the input columns.

    Args:
        frame: any frame.
        inputs: names and types of the columns that ``convert`` takes; ``bigint`` does for ``int``.
        outputs: the new columns as DDL; a string column ``error`` follows them.
        convert: takes one row's values. Where it raises ``ProtocolError``, the text of that goes
            to ``error`` and the other new columns are null.

    Raises:
        SchemaError: an input column is missing or of a wrong type, or an output column is there.
    """
    added = struct_of(f"{outputs}, error STRING")
    _check(frame, inputs, added)
    schema = StructType([*frame.schema, *added])
    types = arrow_schema(added).types

    def convert_row(*values: Any) -> Row:
        try:
            row = convert(*values)
        except ProtocolError as error:
            return (*[None] * (len(added) - 1), str(error))
        return row if len(row) == len(added) else (*row, None)

    def convert_batches(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            values = [batch.column(name).to_pylist() for name in inputs]
            rows = [convert_row(*row) for row in zip(*values, strict=True)]
            arrays = [_array([row[i] for row in rows], type_) for i, type_ in enumerate(types)]
            yield pa.RecordBatch.from_arrays([*batch.columns, *arrays], names=schema.names)

    return frame.mapInArrow(convert_batches, schema)


def struct_of(ddl: str) -> StructType:
    """Read DDL as columns; ``fromDDL`` itself promises no more than some type."""
    columns = StructType.fromDDL(ddl)
    assert isinstance(columns, StructType)
    return columns


def _check(frame: DataFrame, inputs: Mapping[str, DataType], added: StructType) -> None:
    given = {field.name: field.dataType for field in frame.schema}
    problems = []
    for name, wanted in inputs.items():
        if name not in given:
            problems.append(f"column {name} ({wanted.simpleString()}) is missing")
        elif _shape(given[name]) != _shape(wanted):
            problems.append(
                f"column {name} must be {wanted.simpleString()}, not {given[name].simpleString()}"
            )
    lower = {name.lower() for name in given}
    taken = [name for name in added.names if name.lower() in lower]
    if taken:
        problems.append(f"column {', '.join(taken)} is there already: rename or drop it")
    if problems:
        raise SchemaError("; ".join(problems))


def _shape(type_: DataType) -> str:
    return type_.simpleString().replace("bigint", "int")


def _array(values: list[Any], type_: pa.DataType) -> pa.Array:
    if pa.types.is_list(type_) and pa.types.is_struct(type_.value_type):
        return _partition_lists(values)
    return pa.array(values, type_)


def _partition_lists(values: list[Partitions | None]) -> pa.Array:
    """Build the lists from their flat parts: a dict a partition would cost several times more."""
    ends = list(accumulate((len(pairs or ()) for pairs in values), initial=0))
    flat = [pair for pairs in values for pair in pairs or ()]
    topics = pa.array([topic for topic, _ in flat], type=pa.string())
    numbers = pa.array([partition for _, partition in flat], type=pa.int32())
    structs = pa.StructArray.from_arrays([topics, numbers], names=["topic", "partition"])
    absent = pa.array([pairs is None for pairs in values], type=pa.bool_())
    return pa.ListArray.from_arrays(pa.array(ends, type=pa.int32()), structs, mask=absent)
