"""Find the members that joined and left between generations, how, and how long they were away."""

from typing import NamedTuple

import numpy as np
import pyarrow as pa

from kassign_spark.groups.numbers import Longs, find, key
from kassign_spark.history.log_arrays import View, longs, repeats, run_ends
from kassign_spark.history.rebalance_columns import CLOSED, CRASHED, LEFT_KINDS, TOO_SLOW
from kassign_spark.simulation.timeouts import Timeouts

RESTART_WITHIN = 600_000_000
"""Microseconds in which a client that left and comes back is the same one, restarted."""


class Turnover(NamedTuple):
    """Rows of ``View.present`` that came, went or changed, and at which record.

    Of one that went the row is of the record before.
    """

    joined: Longs
    joined_at: Longs
    left: Longs
    left_at: Longs
    changed: Longs
    changed_at: Longs
    returned_at: Longs
    """Records at which a static member was back under another member id."""


class Absences(NamedTuple):
    """The absences of members that left and joined.

    Attributes:
        kind: place in ``LEFT_KINDS`` of each that left.
        silence: microseconds from its last commit to the rebalance without it; -1: not known.
        limit: its session timeout, or the interval of polls that it passed; microseconds.
        away: microseconds since a client of the same name and host left, of each that joined; -1:
            none did within ``RESTART_WITHIN``.
    """

    kind: Longs
    silence: Longs
    limit: Longs
    away: Longs


def find_turnover(view: View) -> Turnover:
    """Find the members in a record that are not in the one before, and the other way round."""
    present, records = view.present, view.records
    order = np.lexsort((present.record, present.identity, present.group))
    record, identity, group = (
        column[order] for column in (present.record, present.identity, present.group)
    )
    next_one = (np.diff(record, prepend=0) == 1) & ~records.is_first[record]
    follows = repeats(group, identity) & next_one
    stays = np.append(follows[1:], False)[: len(order)]
    joins = ~follows & ~records.is_first[record]
    after = np.minimum(record + 1, len(records.group) - 1)
    goes = ~stays & (after > record) & (records.group[after] == group) & ~records.is_first[after]
    before = np.flatnonzero(follows) - 1
    later = before + 1
    changes = present.subscription[order[later]] != present.subscription[order[before]]
    renamed = present.member[order[later]] != present.member[order[before]]
    return Turnover(
        order[joins],
        record[joins],
        order[goes],
        record[goes] + 1,
        order[later[changes]],
        record[later[changes]],
        record[later[renamed]],
    )


def find_absences(view: View, table: pa.Table, turnover: Turnover) -> Absences:
    """Describe how members joined and left; ``table`` is the ``log_members`` of the log."""
    left, left_at = turnover.left, turnover.left_at
    rows = view.present.row[left]
    defaults = Timeouts()
    session = _milliseconds(table["session_timeout_ms"], defaults.session_timeout_ms)[rows] * 1000
    polls = _milliseconds(table["rebalance_timeout_ms"], defaults.max_poll_interval_ms)[rows] * 1000
    last, interval = _commits(view, left, left_at)
    has_commit = last >= 0
    silence = np.where(has_commit, np.maximum(view.records.at[left_at] - last, 0), -1)
    # Who commits seldom is silent often: it has to be longer than usual.
    unusual = has_commit & (interval >= 0) & (silence > 2 * interval)
    slow = unusual & (silence >= polls)
    # A static member does not leave on closing, unless it is told to.
    static = (view.present.instance[left] > 0) & ~(has_commit & (silence < session))
    crashed = ~slow & (static | (unusual & (silence >= session)))
    kind = np.select(
        [slow, crashed],
        [LEFT_KINDS.index(TOO_SLOW), LEFT_KINDS.index(CRASHED)],
        LEFT_KINDS.index(CLOSED),
    )
    return Absences(kind, silence, np.where(slow, polls, session), _away(view, turnover))


def _milliseconds(column: pa.ChunkedArray, default: int) -> Longs:
    values = longs(column)
    return np.where(values > 0, values, default)


def _commits(view: View, left: Longs, left_at: Longs) -> tuple[Longs, Longs]:
    """Return for each member that left its last commit, and the interval to the commit before.

    Both in microseconds, -1 where there is none. Of several partitions it is the shortest.
    """
    records, assigned, commits = view.records, view.assigned, view.committed
    head = records.head[left_at - 1]
    owned = np.flatnonzero(np.isin(assigned.record, head))
    keys, place = np.unique(key(head, view.present.identity[left]), return_inverse=True)
    member_place = find(keys, key(assigned.record[owned], assigned.owner[owned]))
    owned, member_place = owned[member_place >= 0], member_place[member_place >= 0]
    done = np.flatnonzero(np.isin(commits.record, head))
    by = (commits.offset, commits.partition, commits.topic, commits.record)
    done = done[np.lexsort([column[done] for column in by])]
    topic = np.concatenate((assigned.topic[owned], commits.topic[done]))
    partition = np.concatenate((assigned.partition[owned], commits.partition[done]))
    number = np.unique(key(topic, partition), return_inverse=True)[1]
    runs = key(commits.record[done], number[len(owned) :])
    ends = np.flatnonzero(run_ends(runs))
    at = commits.at[done]
    between = np.where(repeats(runs)[ends], at[ends] - at[ends - 1], -1)
    by_key = np.argsort(runs[ends])
    run_places = find(runs[ends][by_key], key(assigned.record[owned], number[: len(owned)]))
    member_place, run = member_place[run_places >= 0], by_key[run_places[run_places >= 0]]
    last = np.full(len(keys), -1)
    np.maximum.at(last, member_place, at[ends][run])
    most = np.iinfo(np.int64).max
    interval = np.full(len(keys), most)
    regular = between[run] >= 0
    np.minimum.at(interval, member_place[regular], between[run][regular])
    return last[place], np.where(interval == most, -1, interval)[place]


def _away(view: View, turnover: Turnover) -> Longs:
    present, records, before = view.present, view.records, view.leaves
    joined, joined_at, left, left_at = turnover[:4]
    count = len(before.at) + len(left)
    if not count:
        return np.full(len(joined), -1)
    rows = np.concatenate((left, joined))
    at = np.concatenate((left_at, joined_at))
    client = np.concatenate((before.client, present.client[rows]))
    host = np.concatenate((before.host, present.host[rows]))
    group = np.concatenate((before.group, records.group[at]))
    name = np.unique(key(client, host), return_inverse=True)[1]
    who = np.unique(key(group, name), return_inverse=True)[1]
    gone, came = who[:count], who[count:]
    place = np.concatenate((np.zeros(len(before.at), np.int64), left_at + 1))
    time = np.concatenate((before.at, records.at[left_at]))
    order = np.lexsort((time, place, gone))
    gone, time = gone[order], time[order]
    keys = key(came, joined_at + 1)
    last = np.searchsorted(key(gone, place[order]), keys, side="right") - 1
    is_back = (last >= 0) & (gone[last] == came) & (present.client[joined] > 0)
    since = records.at[joined_at] - time[last]
    return np.where(is_back & (since <= RESTART_WITHIN), np.maximum(since, 0), -1)
