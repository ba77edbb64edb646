"""Every rebalance that happened: a row per group and generation, from the group log."""

import struct
from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql.streaming.state import GroupState, GroupStateTimeout

from kassign_spark.history.damage import REBALANCES_AND_UNREAD, with_unread
from kassign_spark.history.following import MOST_PRESENT, FollowState, follow, present_at_most, rest
from kassign_spark.history.log_arrays import EarlierLog, Log
from kassign_spark.history.rebalance_columns import REBALANCES
from kassign_spark.history.rebalances_kernel import rebalances_arrow
from kassign_spark.history.whole_groups import (
    NAME,
    HasRecords,
    InPieces,
    records_of,
    run_by_whole_groups,
    with_group,
)
from kassign_spark.log.decode import decode_table
from kassign_spark.log.log_schemas import EACH_UNREAD, RECORDS
from kassign_spark.log.records import ARROW_SCHEMAS, COLUMNS
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
