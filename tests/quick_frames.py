"""Small frames of rows that Spark holds itself, as quick as small files are.

``createDataFrame`` makes of a list pickled rows of Python, of unknown size, which every query reads
in two tasks. A table of Arrow becomes a local relation, whose size Spark knows: it is handled as
small files are, in one task. Longer lists stay as they were, so both ways are tested.
"""

from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DoubleType,
    IntegralType,
    StringType,
    StructType,
    _parse_datatype_string,
)

from kassign_spark.spark.spark_versions import arrow_schema

_MOST_ROWS = 500
_ALIKE = (StringType, BinaryType, BooleanType, DoubleType, IntegralType)
"""What Arrow and Spark read from Python's values alike; of times they do not."""


takes_arrow = pytest.mark.skipif(
    not hasattr(DataFrame, "toArrow"),
    reason="PySpark 3.5 makes no frame of an Arrow table, and does not know a list's size",
)
"""For tests that need a frame of a table of Arrow, or one whose size Spark knows."""


def hold_small_frames() -> None:
    """Have ``createDataFrame`` make local relations of short lists of rows, from now on.

    PySpark 3.5 takes no table of Arrow; there they stay as they are.
    """
    if not hasattr(DataFrame, "toArrow"):
        return
    plain: Any = SparkSession.createDataFrame

    def create(self: SparkSession, data: Any, schema: Any = None, *more: Any, **named: Any) -> Any:
        local = _local(data, schema)
        return plain(self, *(local or (data, schema)), *more, **named)

    SparkSession.createDataFrame = create  # type: ignore[method-assign]


def _local(data: Any, schema: Any) -> tuple[pa.Table, StructType] | None:
    """The rows as a table, and their types; None: they are left to Spark."""
    if not isinstance(data, list) or not isinstance(schema, (str, StructType)):
        return None
    types = _parse_datatype_string(schema) if isinstance(schema, str) else schema
    if len(data) > _MOST_ROWS or not isinstance(types, StructType):
        return None
    if not all(isinstance(row, tuple) and len(row) == len(types) for row in data):
        return None
    if not all(_is_alike(field.dataType) for field in types):
        return None
    columns = list(zip(*data, strict=True)) or [()] * len(types)
    for field, values in zip(types, columns, strict=True):
        if not field.nullable and None in values:
            return None  # which Spark refuses
    arrow = arrow_schema(types)
    try:
        arrays = [pa.array(v, f.type) for v, f in zip(columns, arrow, strict=True)]
    except (pa.ArrowException, OverflowError):
        return None  # so does Spark
    return pa.table(arrays, arrow), types


def _is_alike(of: DataType) -> bool:
    return _is_alike(of.elementType) if isinstance(of, ArrayType) else isinstance(of, _ALIKE)
