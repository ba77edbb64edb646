"""One group's log as it comes: what is reported at once, what waits, and what is kept for later.

What is kept is bounded by the group: two generations, who had each partition last, the clients that
left in the last minutes, and of each partition and generation a few commits.
"""

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kassign_spark.history.absences import RESTART_WITHIN
from kassign_spark.history.log_arrays import (
    LEAVES,
    NOTHING,
    OWNERS,
    TIME,
    EarlierLog,
    Log,
    View,
    longs,
    repeats,
    run_ends,
    times,
)
from kassign_spark.history.rebalances_kernel import (
    PAUSE_WITHIN,
    ROWS,
    RebalanceRows,
    read_rebalances,
)

MOST_PRESENT = 1_000_000
"""Members of epochs that are seen at once: each epoch has all members that are there."""


class FollowState(NamedTuple):
    """The state of a group between two pieces of its log.

    Attributes:
        log: the last generations and what came after them.
        targets: when targets were computed, of the new protocol (``LOG_TARGETS``).
        before: what is known of earlier ones.
        last_offset: the offset of the last generation that was reported; -1: none.
    """

    log: Log
    targets: pa.Table
    before: EarlierLog
    last_offset: int


def follow(state: FollowState | None, log: Log, targets: pa.Table) -> tuple[pa.Table, FollowState]:
    """Follow the log of one group, piece by piece if it is too large to read at once.

    A generation is reported when nothing that comes can change its row: the next one is there, or
    each partition that was committed before it has been committed again, or ``PAUSE_WITHIN`` has
    passed by the clock of the log; of the new protocol, also its target has to be known.

    Args:
        state: what earlier batches left; None: there was none.
        log: records of the group, all later than those before.
        targets: ``LOG_TARGETS`` of the group.

    Returns:
        rows of ``REBALANCES``, and the state for the next batch.
    """
    rows = [ROWS.empty_table()]
    for piece, computed in _pieces(state, log, targets):
        last_offset, state = _follow(state, piece, computed)
        rows.append(last_offset)
    assert state is not None
    return pa.concat_tables(rows), state


def rest(state: FollowState) -> pa.Table:
    """Return the rows that waited, at the end of a log."""
    rows = read_rebalances(state.log, state.before).rows
    return rows.filter(pc.greater(rows["offset"], state.last_offset))


def present_at_most(generations: pa.Table, members: pa.Table) -> pa.Table:
    """Bound the members of all epochs of groups of the new protocol, which no record repeats.

    Returns:
        group_id, present.
    """
    counts = [
        table.filter(pc.equal(table[column], value))
        .group_by("group_id", use_threads=False)
        .aggregate([([], "count_all")])
        for table, column, value in (
            (generations, "group_type", "consumer"),
            (members, "record", "member"),
        )
    ]
    both = counts[0].join(counts[1], "group_id", join_type="inner", right_suffix="_members")
    present = pc.multiply(both["count_all"], both["count_all_members"])
    return pa.table({"group_id": both["group_id"], "present": present}).sort_by("group_id")


def _pieces(
    state: FollowState | None, log: Log, targets: pa.Table
) -> Iterator[tuple[Log, pa.Table]]:
    members = log.log_members
    if state is not None:
        members = pa.concat_tables([state.log.log_members, members])
    present = pc.sum(present_at_most(log.generations, members)["present"]).as_py() or 0
    count = -(-present // MOST_PRESENT)
    if count < 2:
        yield log, targets
        return
    offsets = np.sort(longs(log.generations["offset"]))
    cuts = offsets[np.linspace(0, len(offsets), count, endpoint=False, dtype=np.int64)[1:]]
    for begin, end in pairwise([-1, *np.unique(cuts).tolist(), None]):
        *tables, computed = (_between(table, begin, end) for table in (*log, targets))
        yield Log(*tables), computed


def _between(table: pa.Table, begin: int, end: int | None) -> pa.Table:
    since = _since(table, begin)
    return since if end is None else since.filter(pc.less(since["offset"], end))


def _follow(state: FollowState | None, log: Log, targets: pa.Table) -> tuple[pa.Table, FollowState]:
    if state is not None:
        log = Log(*(pa.concat_tables(both) for both in zip(state.log, log, strict=True)))
        targets = pa.concat_tables([state.targets, targets])
    before, last_offset = (NOTHING, -1) if state is None else (state.before, state.last_offset)
    rebalances = read_rebalances(log, before)
    records = rebalances.view.records
    if not len(records.group):
        return rebalances.rows, FollowState(log, targets, before, last_offset)
    last = int(records.head[-1])
    is_over = _is_over(rebalances.view, last, targets)
    offsets = longs(rebalances.rows["offset"])
    telling = (offsets > last_offset) & ((offsets < records.offset[last]) | is_over)
    last_offset = max(last_offset, int(offsets[telling].max(initial=-1)))
    # The row of a generation that waits takes the one before it.
    waits = not (is_over or records.is_first[last])
    cut = int(records.head[records.previous[last]]) if waits else last
    return rebalances.rows.filter(pa.array(telling)), _keep(
        rebalances, log, targets, before, last_offset, cut
    )


def _is_over(view: View, last: int, targets: pa.Table) -> bool:
    records, commits = view.records, view.committed
    begun = records.at[last]
    latest = max(int(commits.at.max(initial=begun)), int(records.at[-1]))
    if records.is_consumer[last] and records.member_count[last]:
        computed = longs(targets["generation"])[longs(targets["offset"]) > records.offset[last]]
        if not (computed >= records.generation[last]).any():
            return False
    if records.is_first[last] or latest - begun > PAUSE_WITHIN:
        return True
    after = commits.record >= last
    before, again = (
        set(zip(commits.topic[rows].tolist(), commits.partition[rows].tolist(), strict=True))
        for rows in (~after, after)
    )
    return before <= again


def _keep(
    rebalances: RebalanceRows,
    log: Log,
    targets: pa.Table,
    before: EarlierLog,
    last_offset: int,
    cut: int,
) -> FollowState:
    offset = rebalances.view.records.offset[cut]
    members = _members(log.log_members, offset)
    is_kept = np.isin(longs(log.log_assignment["offset"]), longs(members["offset"]))
    return FollowState(
        Log(
            _since(log.generations, offset),
            members,
            log.log_assignment.filter(pa.array(is_kept)),
            _commits(rebalances.view, log.commits, cut),
        ),
        _since(targets, offset),
        EarlierLog(_owners(rebalances.view, cut), _leaves(rebalances, before, cut)),
        last_offset,
    )


def _since(table: pa.Table, offset: int) -> pa.Table:
    return table.filter(pc.greater_equal(table["offset"], offset))


def _members(table: pa.Table, offset: int) -> pa.Table:
    """Return rows since an offset, and of the new protocol what held then."""
    earlier = pc.and_(
        pc.less(table["offset"], offset), pc.is_in(table["record"], pa.array(["member", "target"]))
    )
    latest = table.filter(earlier).sort_by("offset")
    keys = zip(latest["record"].to_pylist(), latest["member_id"].to_pylist(), strict=True)
    last = {member: place for place, member in enumerate(keys)}
    latest = latest.take(pa.array(sorted(last.values()), pa.int64()))
    latest = latest.filter(pc.invert(latest["is_tombstone"]))
    return pa.concat_tables([latest, _since(table, offset)])


def _commits(view: View, table: pa.Table, cut: int) -> pa.Table:
    """Select each partition's last commit before the cut, and each generation's first and last two.

    They are what pauses and the rhythm of a member's commits are read from.
    """
    commits = view.committed
    record = np.where(commits.record < cut, -1, commits.record)
    order = np.lexsort((commits.offset, record, commits.partition, commits.topic))
    inside = record[order] >= 0
    runs = commits.topic[order], commits.partition[order], record[order]
    ends, begins = run_ends(*runs), ~repeats(*runs)
    one_before = np.append(ends[1:], False)[: len(order)]
    is_needed = ends | ((begins | one_before) & inside)
    return table.filter(pa.array(np.isin(longs(table["offset"]), commits.offset[order[is_needed]])))


def _owners(view: View, cut: int) -> pa.Table:
    """Return the last owner of each partition before the cut."""
    assigned, records = view.assigned, view.records
    rows = np.flatnonzero((assigned.record < cut) & (assigned.era == records.era[cut]))
    # Of several owners at once the last by name is the one that later ones are compared with.
    by = (assigned.owner, assigned.record, assigned.partition, assigned.topic)
    rows = rows[np.lexsort([column[rows] for column in by])]
    rows = rows[run_ends(assigned.topic[rows], assigned.partition[rows])]
    static = assigned.owner[rows] > view.static
    owner = assigned.owner[rows] - np.where(static, view.static, 0)
    return pa.table(
        {
            "group_id": view.group_names.take(np.full(len(rows), records.group[cut])),
            "topic": view.topics.take(assigned.topic[rows]),
            "partition": assigned.partition[rows],
            "owner": view.people.take(owner),
            "is_static": static,
        }
    ).cast(OWNERS)


def _leaves(rebalances: RebalanceRows, before: EarlierLog, cut: int) -> pa.Table:
    """Return clients that left up to the cut, and may yet come back."""
    view, turnover = rebalances.view, rebalances.turnover
    gone = turnover.left_at <= cut
    rows, at = turnover.left[gone], turnover.left_at[gone]
    records = view.records
    now = pa.table(
        {
            "group_id": view.group_names.take(records.group[at]),
            "client_id": view.texts.take(view.present.client[rows]),
            "client_host": view.texts.take(view.present.host[rows]),
            "at": pa.array(records.at[at], TIME),
        }
    ).cast(LEAVES)
    both = pa.concat_tables([before.leaves, now])
    recent = times(both["at"]) >= records.at[cut] - RESTART_WITHIN
    return both.filter(pa.array(recent))
