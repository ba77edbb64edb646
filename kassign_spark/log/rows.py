"""Rows of the tables from columns of arrays, with the declared types and every column there."""

from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from kassign_spark.log import schemas
from kassign_spark.log.cursor import Ints
from kassign_spark.schemas import Table, arrow_schema


class Part(NamedTuple):
    """Some rows of a table, and the record of the batch that each is from, ascending."""

    table: str
    record: Ints
    rows: pa.Table


@cache
def arrow_schemas() -> dict[str, pa.Schema]:
    """The columns of every table as Arrow's, by its name."""
    return {table.name: arrow_schema(table.columns) for table in (*schemas.DECODED, schemas.UNREAD)}


def part(table: Table, record: Ints, /, **columns: Any) -> Part:
    """Rows of ``table``: arrays or one value for all by column; what is not given is null."""
    schema = arrow_schemas()[table.name]
    assert columns.keys() <= set(schema.names)
    arrays = [_array(columns.get(field.name), field.type, len(record)) for field in schema]
    return Part(table.name, record, pa.Table.from_arrays(arrays, schema=schema))


def ordered(table: str, parts: list[Part]) -> pa.Table:
    """Put the rows of all parts of a table in the order of their records."""
    of_table = [part for part in parts if part.table == table and len(part.record)]
    if not of_table:
        return arrow_schemas()[table].empty_table()
    if len(of_table) == 1:
        return of_table[0].rows
    order = np.argsort(np.concatenate([part.record for part in of_table]), kind="stable")
    return pa.concat_tables([part.rows for part in of_table]).take(pa.array(order))


def _array(given: Any, kind: pa.DataType, count: int) -> pa.Array:
    if given is None:
        return pa.nulls(count, kind)
    if isinstance(given, np.ndarray):
        return pa.array(given).cast(kind)
    if isinstance(given, pa.Array):
        return given if given.type == kind else given.cast(kind)
    return pa.repeat(pa.scalar(given, kind), count)
