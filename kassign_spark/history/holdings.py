"""Who has which partition in each generation of a log: as it was assigned or is aimed at."""

from typing import NamedTuple

import numpy as np
import pyarrow as pa

from kassign_spark.groups.numbers import Longs, find, key, ranges
from kassign_spark.history.log_arrays import Assigned, Records, equals, longs
from kassign_spark.history.membership import Members, Spans, record_at


class Owners(NamedTuple):
    """Who had each partition last, before the log begins, as codes."""

    group: Longs
    topic: Longs
    partition: Longs
    owner: Longs


def assigned_in(
    records: Records,
    table: pa.Table,
    codes: tuple[Longs, Longs, Longs],
    before: Owners,
    members: Members,
    spans: Spans,
) -> Assigned:
    """Give the partitions of each record with their owners, those from before with record -1.

    Args:
        records: all generations.
        table: ``log_assignment``.
        codes: of its groups, members and topics.
        before: owners from before.
        members: ``log_members``.
        spans: the targets in it, and the records that they hold for.
    """
    group, member, topic = codes
    offset, partition = longs(table["offset"]), longs(table["partition"])
    owner_of = _identities(group, member, members)
    given = np.flatnonzero(equals(table["role"], "assigned"))
    at = record_at(records, group[given], offset[given])
    known = at >= 0
    known[known] = ~records.is_consumer[at[known]] & records.is_head[at[known]]
    given, at = given[known], at[known]

    target = np.flatnonzero(equals(table["role"], "target"))
    said = members.group[spans.row], members.member[spans.row], spans.offset
    wanted = group[target], member[target], offset[target]
    places, count = _targets_of(said, wanted, spans)
    row = np.concatenate((given, np.repeat(target, count)))
    record = np.concatenate((at, ranges(places, count)))
    in_era = np.searchsorted(records.group, before.group)
    known = in_era < np.searchsorted(records.group, before.group, side="right")
    return Assigned(
        np.concatenate((record, np.full(int(known.sum()), -1))),
        np.concatenate((records.era[record], records.era[in_era[known]])),
        np.concatenate((topic[row], before.topic[known])),
        np.concatenate((partition[row], before.partition[known])),
        np.concatenate((owner_of[row], before.owner[known])),
    )


def _targets_of(
    said: tuple[Longs, Longs, Longs], wanted: tuple[Longs, Longs, Longs], spans: Spans
) -> tuple[Longs, Longs]:
    """The first record that each partition of a target holds for, and how many.

    Args:
        said: group, member and offset of the rows of ``spans``.
        wanted: the same of the partitions.
        spans: the records that the rows hold for.
    """
    if not len(spans.row):
        return np.zeros(len(wanted[0]), np.int64), np.zeros(len(wanted[0]), np.int64)
    offsets = np.unique(said[2])
    members = np.unique(key(said[0], said[1]))

    def keys(group: Longs, member: Longs, offset: Longs) -> Longs:
        who, at = find(members, key(group, member)), find(offsets, offset)
        return np.where((who < 0) | (at < 0), -1, key(who, at))

    known = keys(*said)
    order = np.argsort(known)
    place = find(known[order], keys(*wanted))
    span = order[place]
    return spans.first[span], np.where(place >= 0, spans.size[span], 0)


def _identities(group: Longs, member: Longs, members: Members) -> Longs:
    """The identity of each member that is named beside its group."""
    static = np.flatnonzero(members.instance)
    if not len(static):
        return member
    known, first = np.unique(key(members.group[static], members.member[static]), return_index=True)
    place = find(known, key(group, member))
    return np.where(place >= 0, members.identity[static[first]][place], member)
