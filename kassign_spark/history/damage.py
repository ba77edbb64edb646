"""Find the part of the log that cannot be read, and the gaps between rebalances that it causes."""

import datetime as dt

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import StructType

from kassign_spark.groups.numbers import Longs
from kassign_spark.history.log_arrays import longs, together
from kassign_spark.history.rebalance_columns import DAMAGED, FIRST, GAP, REBALANCES
from kassign_spark.log.decode import NO_DAMAGE
from kassign_spark.schemas import table_of
from kassign_spark.spark.spark_versions import arrow_schema

_UNREAD = table_of("unread", "unread_kind string?, unread_reason string?, unread_count bigint?")
REBALANCES_AND_UNREAD = StructType([*REBALANCES.columns, *_UNREAD.columns])
"""Rebalances and, with ``unread_count`` and nothing else but a ``group_id``, what cannot be read;
a group that the key does not name is the empty text."""

_SCHEMA = arrow_schema(REBALANCES_AND_UNREAD)
_MAKE_GENERATIONS = pa.array(["GroupMetadata", "ConsumerGroupMetadata"])
"""Kinds of records whose loss is a hole between generations."""


def with_unread(rows: pa.Table, unread: pa.Table) -> pa.Table:
    """Mark in ``rows`` the gaps that are damage, and add rows for what is unread.

    The rows are of ``rebalance_columns.REBALANCES``, ``unread`` is of
    ``log.log_schemas.EACH_UNREAD``.
    """
    unread = unread.filter(pc.invert(pc.is_in(unread["reason"], pa.array(NO_DAMAGE))))
    if not len(unread):
        return _fill_columns(rows)
    making = unread.filter(pc.is_in(unread["kind"], _MAKE_GENERATIONS))
    between = _between(rows, making)
    reason, detail = rows["reason"], rows["reason_detail"]
    torn = pa.array(between > 0)
    is_gap = pc.and_(torn, pc.equal(reason, GAP))
    lost = pc.binary_join_element_wise(
        pc.cast(pa.array(between), pa.string()), " records before it cannot be read", ""
    )
    both = pc.binary_join_element_wise(detail, lost, "; ", null_handling="skip")
    is_torn = pc.or_(is_gap, pc.and_(torn, pc.equal(reason, FIRST)))
    rows = _with(rows, "reason", pc.if_else(is_gap, DAMAGED, reason))
    rows = _with(rows, "reason_detail", pc.if_else(is_torn, both, detail))
    damage_rows = (
        unread.group_by(["group_id", "kind", "reason"])
        .aggregate([("count", "sum")])
        .rename_columns(["group_id", *_UNREAD.columns.names])
    )
    damage_rows = _with(damage_rows, "group_id", pc.fill_null(damage_rows["group_id"], ""))
    return pa.concat_tables([_fill_columns(rows), _fill_columns(damage_rows)])


def _between(rows: pa.Table, unread: pa.Table) -> Longs:
    """Count what is unread between each row and the one before it of its group."""
    lost_group, row_group = (names.code for names in together(unread["group_id"], rows["group_id"]))
    group = np.concatenate((lost_group, row_group))
    offset = np.concatenate((longs(unread["offset"]), longs(rows["offset"])))
    is_row = np.arange(len(group)) >= len(unread)
    order = np.lexsort((is_row, offset, group))
    place = np.flatnonzero(is_row[order])
    so_far = np.cumsum(~is_row[order])[place]
    of_row = group[order[place]]
    in_groups_before = np.searchsorted(np.sort(lost_group), of_row)
    begins = np.diff(of_row, prepend=-1) != 0
    before = np.where(begins, in_groups_before, np.append(0, so_far[:-1]))
    between = np.zeros(len(rows), np.int64)
    between[order[place] - len(unread)] = so_far - before
    return between


def _fill_columns(table: pa.Table) -> pa.Table:
    """Return all columns of ``REBALANCES_AND_UNREAD``: unread rows have empty values."""
    is_rebalance = "reason" in table.column_names
    columns = [
        table[field.name].cast(field.type)
        if field.name in table.column_names
        else pa.repeat(_nothing(field, is_rebalance=is_rebalance), len(table))
        for field in _SCHEMA
    ]
    return pa.Table.from_arrays(columns, schema=_SCHEMA)


def _nothing(field: pa.Field, *, is_rebalance: bool) -> pa.Scalar:
    if is_rebalance or field.nullable:
        return pa.scalar(None, field.type)
    if pa.types.is_list(field.type):
        return pa.scalar([], field.type)
    if pa.types.is_timestamp(field.type):
        return pa.scalar(dt.datetime.fromtimestamp(0, dt.UTC), field.type)
    return pa.scalar("" if pa.types.is_string(field.type) else 0, field.type)


def _with(table: pa.Table, name: str, values: pa.Array) -> pa.Table:
    place = table.schema.get_field_index(name)
    return table.set_column(place, table.schema.field(place), values)
