"""Every rebalance that happened: a row per group and generation, from the group log."""

import datetime as dt
import struct
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql.streaming.state import GroupState, GroupStateTimeout
from pyspark.sql.types import StructType

from kassign_spark.groups.numbers import Longs
from kassign_spark.history.following import MOST_PRESENT, FollowState, follow, present_at_most, rest
from kassign_spark.history.log_arrays import EarlierLog, Log, longs, together
from kassign_spark.history.rebalance_columns import DAMAGED, FIRST, GAP, REBALANCES
from kassign_spark.history.rebalances_kernel import rebalances_arrow
from kassign_spark.history.whole_groups import (
    NAME,
    HasRecords,
    InPieces,
    records_of,
    run_by_whole_groups,
    with_group,
)
from kassign_spark.log.decode import NO_DAMAGE, decode_table
from kassign_spark.log.log_schemas import EACH_UNREAD, RECORDS
from kassign_spark.log.records import ARROW_SCHEMAS, COLUMNS
from kassign_spark.schemas import table_of
from kassign_spark.spark.spark_versions import arrow_schema
from kassign_spark.spark.workers import check_workers

_HEAD, _LENGTH = struct.Struct("<q"), struct.Struct("<i")


def rebalances(log: HasRecords | DataFrame) -> DataFrame:
    """List each group's rebalances: when, why, what moved, how long partitions were not read.

    A record of the log says who is in a generation, with which subscription and partitions (of the
    new protocol: which epoch, member or target is new); what happened is the difference from the
    generation before. Groups stay whole in tasks, one job; what a task holds at once
    is bounded.

    Of a stream a row comes when nothing can change it any more: with the next generation, when all
    partitions have been committed again, or ten minutes of the log later. State is kept a group and
    bounded by it; a query that starts again from its checkpoint loses nothing and repeats nothing.

    Args:
        log: what ``read_group_log`` gives, or its raw records (``log.log_schemas.RECORDS``), of a
            batch or a stream.

    Returns:
        One row per group and generation: group_id string, group_type string (`classic`,
        `consumer`), generation int (of `consumer` groups the epoch), previous_generation int, at
        timestamp, previous_at timestamp (null in the group's first row), assignor string (of
        `consumer` groups as their members vote), protocol string (`eager`, `cooperative`,
        `consumer`; null: of an assignor that is not Kafka's), member_count int; joined, left,
        changed `array<string>`: ids of members that are new, gone, or subscribe to other topics (a
        static member is itself under any id); joined_clients, left_clients, changed_clients,
        joined_hosts, left_hosts: their ``client.id`` and host; joined_away `array<double>`: seconds
        since the same client left, null where it did not within ten minutes; left_kinds
        `array<string>`: `left`, `crashed` (its partitions were not committed for longer than its
        session timeout) or `too_slow` (than its ``max.poll.interval.ms``), `left` where commits
        tell nothing; grown_topics `array<string>`; reason string (``rebalance_columns.REASONS``),
        reason_detail string; moved, kept int: partitions with another owner than the last they had,
        or the same; longest_pause double: seconds from the last commit of a partition before to the
        first after, of the longest, with longest_pause_topic string and longest_pause_partition int
        (null: nobody committed on both sides); idle int: members without a partition;
        static_restarts int: static members that came back since the generation before, without a
        rebalance; session_timeout_ms int: the longest of a member; subscription_count int: how many
        different ones they have; offset bigint: where the record stands in its partition of the
        log. `consumer` groups assign topics by id, so their pauses alone name topics.

    Raises:
        WorkerError: Spark's Python workers cannot run what they are handed.
    """
    rows = rebalances_and_unread(log).where("unread_count IS NULL")
    return rows.select(*REBALANCES.columns.names)


def rebalances_and_unread(log: HasRecords | DataFrame) -> DataFrame:
    """Return ``rebalances`` and, in rows of their own, what of the log cannot be read.

    Returns:
        ``damage.REBALANCES_AND_UNREAD``.
    """
    records = records_of(log)
    check_workers(records.sparkSession)
    schema = REBALANCES_AND_UNREAD
    if records.isStreaming:
        state = "kept binary"
        return (
            with_group(records)
            .groupBy(NAME)
            .applyInPandasWithState(_advance, schema, state, "append", GroupStateTimeout.NoTimeout)
        )
    return run_by_whole_groups(records, _rows, schema, InPieces(_follow, _rest))


def _rows(table: pa.Table) -> pa.Table:
    decoded = decode_table(table)
    rows = pa.concat_tables(_rows_of_some(Log(*decoded[:4]), decoded.log_targets))
    return with_unread(rows, decoded.unread)


def _rows_of_some(log: Log, targets: pa.Table) -> Iterator[pa.Table]:
    """Process groups, several together; one with too many members alone."""
    present = present_at_most(log.generations, log.log_members)
    if (pc.sum(present["present"]).as_py() or 0) <= MOST_PRESENT:
        yield rebalances_arrow(log)
        return
    is_large = pc.greater(present["present"], MOST_PRESENT)
    large, small = present.filter(is_large), present.filter(pc.invert(is_large))
    yield rebalances_arrow(_of(log, present["group_id"], others=True))
    piece = pc.divide(pc.cumulative_sum(small["present"]), MOST_PRESENT)
    for number in pc.unique(piece):
        yield rebalances_arrow(_of(log, small["group_id"].filter(pc.equal(piece, number))))
    for group in large["group_id"]:
        group_targets = targets.filter(pc.equal(targets["group_id"], group))
        rows, follow_state = follow(None, _of(log, pa.array([group])), group_targets)
        yield from (rows, rest(follow_state))


def _of(log: Log, groups: pa.Array | pa.ChunkedArray, *, others: bool = False) -> Log:
    """Return the log of some groups, or of all others."""
    return Log(
        *(table.filter(pc.xor(pc.is_in(table["group_id"], groups), others)) for table in log)
    )


def _follow(follow_state: FollowState | None, table: pa.Table) -> tuple[pa.Table, FollowState]:
    decoded = decode_table(table)
    rows, follow_state = follow(follow_state, Log(*decoded[:4]), decoded.log_targets)
    return with_unread(rows, decoded.unread), follow_state


def _rest(follow_state: FollowState) -> pa.Table:
    return with_unread(rest(follow_state), ARROW_SCHEMAS[EACH_UNREAD.name].empty_table())


def _advance(key: tuple[Any, ...], frames: Iterable[Any], state: GroupState) -> Iterable[Any]:
    """Advance a group of a stream: its new records follow the state kept from earlier ones."""
    raw = arrow_schema(RECORDS.columns)
    columns = pa.schema([raw.field(name) for name in COLUMNS])
    tables = [
        pa.Table.from_pandas(frame[list(COLUMNS)], columns, preserve_index=False)
        for frame in frames
    ]
    table = pa.concat_tables(tables).sort_by([("partition", "ascending"), ("offset", "ascending")])
    rows, follow_state = _follow(_from_bytes(state.get[0]) if state.exists else None, table)
    state.update((_to_bytes(follow_state),))
    if len(rows):
        yield rows.to_pandas()


def _to_bytes(follow_state: FollowState) -> bytes:
    """Serialize the state: the last offset, then each table as an Arrow stream after its length."""
    parts = [_HEAD.pack(follow_state.last_offset)]
    for table in (*follow_state.log, follow_state.targets, *follow_state.before):
        sink = pa.BufferOutputStream()
        options = pa.ipc.IpcWriteOptions(compression="zstd")
        with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
            writer.write_table(table)
        written = sink.getvalue().to_pybytes()
        parts += [_LENGTH.pack(len(written)), written]
    return b"".join(parts)


def _from_bytes(data: bytes) -> FollowState:
    """Read what ``_to_bytes`` has written."""
    (last_offset,) = _HEAD.unpack_from(data)
    place, tables = _HEAD.size, []
    while place < len(data):
        (length,) = _LENGTH.unpack_from(data, place)
        place += _LENGTH.size
        with pa.ipc.open_stream(pa.BufferReader(data[place : place + length])) as reader:
            tables.append(reader.read_all())
        place += length
    return FollowState(Log(*tables[:4]), tables[4], EarlierLog(*tables[5:]), last_offset)


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
