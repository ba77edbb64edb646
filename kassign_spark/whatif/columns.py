"""The columns that tasks answer with: those that a result declares, for Spark and for Arrow."""

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from kassign_spark.results import RESULTS
from kassign_spark.schemas import CLUSTER_ID, arrow_schema, table_of


def columns_of(result: str) -> str:
    """The columns of a result of ``RESULTS`` as Spark reads a schema, ``cluster_id`` first."""
    columns = {CLUSTER_ID: "string", **RESULTS[result]}
    return ", ".join(f"{name} {of}" for name, of in columns.items())


def arrow_types(columns: str) -> dict[str, pa.DataType]:
    """By name the types of columns that are written as ``columns_of`` does."""
    schema = arrow_schema(table_of("columns", columns).columns)
    return dict(zip(schema.names, schema.types, strict=True))


def arrow_table(columns: str, given: Mapping[str, Any]) -> pa.Table:
    """Make a table with these columns, of arrays or values; null is what is not given."""
    types = arrow_types(columns)
    nothing = {name: pa.nulls(len(given["group_id"]), of) for name, of in types.items()}
    return pa.Table.from_pydict(nothing | dict(given), pa.schema(types))
