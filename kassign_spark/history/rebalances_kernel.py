"""Every rebalance of the groups of a task: who came and went, what moved, who waited, and why."""

from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kassign_spark.client.protocols import COOPERATIVE, COOPERATIVE_ASSIGNORS, EAGER
from kassign_spark.groups.numbers import Flags, Longs, Names, find, key, ranges, starts
from kassign_spark.history.absences import Turnover, find_absences, find_turnover
from kassign_spark.history.log_arrays import (
    NOTHING,
    TIME,
    EarlierLog,
    Log,
    View,
    distinct,
    longs,
    repeats,
    run_ends,
)
from kassign_spark.history.reasons import explain_heads
from kassign_spark.history.rebalance_columns import LEFT_KINDS, REBALANCES
from kassign_spark.history.views import build_view
from kassign_spark.plans.protocol_choice import PROTOCOLS
from kassign_spark.spark.spark_versions import arrow_schema

CONSUMER = "consumer"
_PROTOCOLS = (EAGER, COOPERATIVE, CONSUMER)
_KNOWN = {
    name: _PROTOCOLS.index(COOPERATIVE if name in COOPERATIVE_ASSIGNORS else EAGER)
    for name in PROTOCOLS
}
ROWS = arrow_schema(REBALANCES.columns)
PAUSE_WITHIN = 600_000_000
"""Microseconds after a rebalance in which the first commit has to come to end a pause."""


class Moves(NamedTuple):
    """Partitions of each record by how they changed since somebody last had them."""

    moved: Longs
    kept: Longs
    handed_over: Longs
    """Those that nobody had in the record before, but somebody earlier."""
    owners: Longs
    """Members with a partition."""
    grown: Longs
    """Records and topics (``key``) with a partition above all that the log had shown."""
    begun: Longs
    """Records and topics of which no partition was assigned before."""


def rebalances_arrow(log: Log) -> pa.Table:
    """Return every rebalance in a log, by group and in its order: ``REBALANCES``."""
    return read_rebalances(log).rows


class RebalanceRows(NamedTuple):
    """The rows of a log, and what they were made of."""

    rows: pa.Table
    view: View
    turnover: Turnover


def read_rebalances(log: Log, earlier: EarlierLog = NOTHING) -> RebalanceRows:
    """Return the rows of a log of which something may have come before."""
    view = build_view(log, earlier)
    turnover = find_turnover(view)
    return RebalanceRows(_rows(view, log.log_members, turnover), view, turnover)


def _moves(view: View) -> Moves:
    assigned, records = view.assigned, view.records
    size = len(records.group)
    topic = key(assigned.era, assigned.topic)
    order = np.lexsort((assigned.owner, assigned.record, assigned.partition, topic))
    topic, partition = topic[order], assigned.partition[order]
    record, owner = assigned.record[order], assigned.owner[order]
    same, twice = repeats(topic, partition), repeats(topic, partition, record)
    with_owner = distinct(key(record[record >= 0], owner[record >= 0]))
    # A partition that several members have in one record counts once, with the first of them.
    topic, partition, record, owner = (a[~twice] for a in (topic, partition, record, owner))
    same = same[~twice]
    had, last = np.append(-1, owner)[:-1], np.append(-1, record)[:-1]
    is_kept = same & (had == owner)
    is_moved = same & (had != owner)
    before = np.append(records.head, -1)[records.previous[np.maximum(record, 0)]]
    handed = same & (last != before) & (record >= 0)

    def count(rows: Flags) -> Longs:
        records_of_rows = record[rows]
        return np.bincount(records_of_rows[records_of_rows >= 0], minlength=size)

    grown, begun = _grown(topic, partition, record)
    return Moves(
        count(is_moved),
        count(is_kept),
        count(handed),
        np.bincount(with_owner >> 32, minlength=size),
        grown,
        begun,
    )


def _grown(topic: Longs, partition: Longs, record: Longs) -> tuple[Longs, Longs]:
    """Return records and topics with a partition above all earlier ones, or with their first."""
    order = np.lexsort((partition, record, topic))
    topic, partition, record = topic[order], partition[order], record[order]
    ends = run_ends(topic, record)
    topic, most, record = topic[ends], partition[ends], record[ends]
    number = np.cumsum(np.diff(topic, prepend=-1) != 0)
    highest = np.maximum.accumulate(key(number, most)) if len(most) else most
    begins = np.diff(number, prepend=0) != 0
    rises = np.append(False, highest[1:] > highest[:-1])[: len(most)] & ~begins
    names = topic & ((1 << 32) - 1)
    begins &= record >= 0
    return key(record[rises], names[rises]), key(record[begins], names[begins])


def _grown_topics(view: View, turnover: Turnover, moves: Moves) -> tuple[Longs, Longs]:
    """Return records and topics that grew, or were created while members waited for them."""
    records = view.records
    record, topic = moves.begun >> 32, moves.begun & ((1 << 32) - 1)
    later = ~records.is_first[record]
    record, topic = record[later], topic[later]
    changed = np.isin(record, np.concatenate((turnover.joined_at, turnover.changed_at)))
    # Of the new protocol topics have ids, which subscriptions do not name.
    by_id = records.is_consumer[record] & ~changed
    before = records.previous[record]
    rows = np.flatnonzero(np.isin(view.present.record, before[~by_id]))
    lists = view.lists.take(pa.array(view.present.subscription[rows] >> 32))
    offsets = np.asarray(lists.offsets, np.int64)
    waiting = distinct(
        key(
            np.repeat(view.present.record[rows], np.diff(offsets)),
            np.asarray(lists.flatten(), np.int64),
        )
    )
    waited = by_id | (find(waiting, key(before, topic)) >= 0)
    grown = np.unique(np.concatenate((moves.grown, key(record[waited], topic[waited]))))
    return grown >> 32, grown & ((1 << 32) - 1)


class Pauses(NamedTuple):
    """The longest pause of each record in microseconds (-1: unknown), and its partition."""

    longest: Longs
    topic: Longs
    partition: Longs


def _pauses(view: View) -> Pauses:
    """Find the longest pause of each record.

    A pause is from the last commit of a partition before the record to its first after it, and
    belongs to the last record between the two: each counts once.
    """
    commits, records = view.committed, view.records
    size = len(records.group)
    order = np.lexsort((commits.offset, commits.partition, commits.topic, commits.group))
    group, topic, partition = (
        column[order] for column in (commits.group, commits.topic, commits.partition)
    )
    record, at = commits.record[order], commits.at[order]
    after = np.flatnonzero(repeats(group, topic, partition) & (np.diff(record, prepend=0) > 0))
    ended = record[after]
    after = after[~records.is_first[ended] & (at[after] - records.at[ended] <= PAUSE_WITHIN)]
    ended, length = record[after], np.maximum(at[after] - at[after - 1], 0)
    best = np.lexsort((partition[after], topic[after], -length, ended))
    best = best[np.diff(ended[best], prepend=-1) != 0]
    pauses = Pauses(np.full(size, -1), np.zeros(size, np.int64), np.zeros(size, np.int64))
    pauses.longest[ended[best]] = length[best]
    pauses.topic[ended[best]] = topic[after[best]]
    pauses.partition[ended[best]] = partition[after[best]]
    return pauses


def _rows(view: View, table: pa.Table, turnover: Turnover) -> pa.Table:
    records, present = view.records, view.present
    moves, waited, absences = _moves(view), _pauses(view), find_absences(view, table, turnover)
    heads = np.flatnonzero(records.is_head)
    size = len(records.group)
    earlier = np.append(records.head, -1)[records.previous[heads]]
    has_earlier = earlier >= 0
    grown_at, grown = _grown_topics(view, turnover, moves)
    # What a static member's return changes is seen at the next generation.
    returned = np.bincount(
        turnover.returned_at[~records.is_head[turnover.returned_at]], minlength=size
    )
    by_head = np.bincount(records.head, returned, size).astype(np.int64)
    # Of the new protocol it makes no record of the group: this epoch is the first to show it.
    shown = np.bincount(
        turnover.returned_at[records.is_consumer[turnover.returned_at]], minlength=size
    )
    timeouts = np.full(size, -1)
    np.maximum.at(timeouts, present.record, longs(table["session_timeout_ms"])[present.row])
    number = np.unique(present.subscription, return_inverse=True)[1]
    subscriptions = np.bincount(distinct(key(present.record, number)) >> 32, minlength=size)
    protocol = _protocols(view)
    reason, detail = explain_heads(
        view, turnover, absences, heads, (grown_at, grown), moves.handed_over
    )

    def beside(rows: Longs, record_of_value: Longs, values: pa.Array) -> pa.Array:
        """Return a list for each head, by member id, of the values beside rows of ``present``."""
        order = np.lexsort((present.member[rows], record_of_value))
        return _lists(record_of_value[order], values.take(pa.array(order)), heads)

    def listed(rows: Longs, record_of_value: Longs, names: Names, codes: Longs) -> pa.Array:
        return beside(rows, record_of_value, names.take(codes[rows]))

    texts, people = view.texts, view.people
    joined, left = (turnover.joined, turnover.joined_at), (turnover.left, turnover.left_at)
    changed = turnover.changed, turnover.changed_at
    columns = {
        "group_id": view.group_names.take(records.group[heads]),
        "group_type": pc.if_else(pa.array(records.is_consumer[heads]), "consumer", "classic"),
        "generation": records.generation[heads],
        "previous_generation": pa.array(records.generation[earlier], mask=~has_earlier),
        "at": pa.array(records.at[heads], TIME),
        "previous_at": pa.array(records.at[earlier], TIME, mask=~has_earlier),
        "assignor": texts.take(records.assignor[heads]),
        "protocol": pa.array(_PROTOCOLS).take(pa.array(protocol[heads], mask=protocol[heads] < 0)),
        "member_count": records.member_count[heads],
        "joined": listed(*joined, people, present.member),
        "joined_clients": listed(*joined, texts, present.client),
        "joined_hosts": listed(*joined, texts, present.host),
        "joined_away": beside(*joined, _seconds(absences.away)),
        "left": listed(*left, people, present.member),
        "left_clients": listed(*left, texts, present.client),
        "left_hosts": listed(*left, texts, present.host),
        "left_kinds": beside(*left, pa.array(LEFT_KINDS).take(pa.array(absences.kind))),
        "changed": listed(*changed, people, present.member),
        "changed_clients": listed(*changed, texts, present.client),
        "grown_topics": _lists(grown_at, view.topics.take(grown), heads),
        "reason": reason,
        "reason_detail": detail,
        "moved": moves.moved[heads],
        "kept": moves.kept[heads],
        "longest_pause": _seconds(waited.longest[heads]),
        "longest_pause_topic": view.topics.take(waited.topic[heads]),
        "longest_pause_partition": pa.array(
            waited.partition[heads], mask=waited.longest[heads] < 0
        ),
        "idle": np.maximum(records.member_count - moves.owners, 0)[heads],
        "static_restarts": np.where(has_earlier, by_head[earlier], 0) + shown[heads],
        "session_timeout_ms": pa.array(timeouts[heads], mask=timeouts[heads] < 0),
        "subscription_count": subscriptions[heads],
        "offset": records.offset[heads],
    }
    return pa.table(columns).cast(ROWS)


def _protocols(view: View) -> Longs:
    """Return the protocol of each record as a place in ``_PROTOCOLS``; -1: not known."""
    numbers = [-1, *(_KNOWN.get(name, -1) for name in view.texts.strings.to_pylist())]
    return np.where(
        view.records.is_consumer,
        _PROTOCOLS.index(CONSUMER),
        np.array(numbers)[view.records.assignor],
    )


def _seconds(micros: Longs) -> pa.Array:
    return pa.array(micros / 1e6, mask=micros < 0)


def _lists(record_of_value: Longs, values: pa.Array, heads: Longs) -> pa.Array:
    """Return for each head the values of its record, sorted by head."""
    begin, end = (
        np.searchsorted(record_of_value, heads),
        np.searchsorted(record_of_value, heads, side="right"),
    )
    rows = ranges(begin, end - begin)
    offsets = pa.array(starts(end - begin).astype(np.int32))
    return pa.ListArray.from_arrays(offsets, values.take(pa.array(rows)))
