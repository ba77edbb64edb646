"""Changes and reasons in words, for the few rows that are advice."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from kassign_spark.assignors.in_tasks import KAFKAS
from kassign_spark.client_libraries import CLIENTS
from kassign_spark.display import plural
from kassign_spark.groups.group_names import member_ids
from kassign_spark.groups.numbers import Longs
from kassign_spark.whatif.candidates import ASSIGNOR, CLIENT, MEMBERS, SUBSCRIPTION, GroupFacts
from kassign_spark.whatif.changes import Changes

_NAMES_SHOWN = 3


class Described(NamedTuple):
    """One change in words, and what it names."""

    detail: str
    member_ids: list[str] | None = None
    topics: list[str] | None = None
    member_count: int | None = None
    num_partitions: int | None = None


def change_of(facts: GroupFacts, changes: Changes, copy: int, kind: int) -> Described:
    """Return what a change is."""
    group = int(changes.group[copy])
    if kind == ASSIGNOR:
        old, new = KAFKAS[facts.assignor[group]], KAFKAS[changes.assignor[copy]]
        return Described(f"use {new} instead of {old}")
    if kind == SUBSCRIPTION:
        of_copy = _of(changes.reads, copy)
        members = ids_of(facts, np.unique(changes.reading_member[of_copy]))
        topics = topics_of(facts, np.unique(changes.read_topic[of_copy]))
        return Described(
            f"let {_list_names(members, 'member')} read {_list_names(topics, 'topic')} as well",
            members,
            topics,
        )
    if kind == CLIENT:
        client, assignor = CLIENTS[facts.batch.leading_client[group]], KAFKAS[facts.assignor[group]]
        return Described(f"let Java's client or franz-go lead, whose {assignor} is not {client}'s")
    if kind == MEMBERS:
        return _other_number(facts, changes, copy)
    (row,) = range(*_of(changes.grown, copy).indices(len(changes.grown)))
    topic, size = int(changes.grown_topic[row]), int(changes.grown_size[row])
    names = topics_of(facts, np.array([topic]))
    old_size = int(facts.batch.size[topic])
    return Described(
        f"give {names[0]} {size:,} partitions instead of {old_size:,}",
        topics=names,
        num_partitions=size,
    )


def reason_of(facts: GroupFacts, group: int) -> str:
    """Explain why a group is as it is without a change."""
    batch, before = facts.batch, facts.before
    members = slice(*batch.first_member[group : group + 2].tolist())
    topics = slice(*batch.first_topic[group : group + 2].tolist())
    height = facts.levels.height_of_class[facts.graph.class_of_topic[topics]]
    best, count = int(height.max(initial=0)), members.stop - members.start
    partitions, most = int(batch.size[topics].sum()), int(before.most[group])
    even = -(-partitions // count)
    assignor = KAFKAS[facts.assignor[group]]
    if best > even:
        dense = np.flatnonzero(height == best) + topics.start
        readers = np.flatnonzero(facts.levels.height_of_member[members] == best) + members.start
        member_names = _list_names(ids_of(facts, readers), "member")
        topic_names = _list_names(topics_of(facts, dense), "topic")
        partition_count = plural(int(batch.size[dense].sum()), "partition")
        reason = f"only {member_names} can read {topic_names} ({partition_count})"
        more = f", and {assignor} gives {most:,}" if most > best else ""
        return f"{reason}, so {best:,} is the least maximum, where {even:,} would be even{more}"
    if most > best:
        return f"{assignor} gives a member {most:,} partitions, where {best:,} would do"
    if before.idle[group]:
        idle = f"{int(before.idle[group]):,} of {plural(count, 'member')}"
        return f"{idle} have nothing to read of {plural(partitions, 'partition')}"
    return f"{plural(partitions, 'partition')} among {plural(count, 'member')}"


def restart_of(member_id: str, moved: int) -> str:
    """Return what ``group.instance.id`` would save."""
    return (
        f"give the members a group.instance.id: a restart of {member_id} moves "
        f"{plural(moved, 'partition')} without it"
    )


def _other_number(facts: GroupFacts, changes: Changes, copy: int) -> Described:
    group = int(changes.group[copy])
    count = int(np.diff(facts.batch.first_member)[group])
    added = changes.added_like[_of(changes.added, copy)]
    if len(added):
        like = ids_of(facts, added[:1])
        number = count + len(added)
        same = "" if facts.batch.is_alike[group] else f", the new ones subscribed like {like[0]}"
        return Described(
            f"run {number:,} members instead of {count:,}{same}", like, member_count=number
        )
    dropped = ids_of(facts, np.sort(changes.dropped_member[_of(changes.dropped, copy)]))
    number = count - len(dropped)
    without = f", without {_list_names(dropped, 'member')}" if len(dropped) <= _NAMES_SHOWN else ""
    return Described(
        f"run {plural(number, 'member')} instead of {count:,}{without}",
        dropped,
        member_count=number,
    )


def _of(copies: Longs, copy: int) -> slice:
    """Return the rows of a copy; rows of each kind are ordered by copy."""
    return slice(*np.searchsorted(copies, [copy, copy + 1]).tolist())


def ids_of(facts: GroupFacts, members: Longs) -> list[str]:
    """Return the ids of members of the batch."""
    return list(member_ids(facts.batch, members).to_pylist())


def topics_of(facts: GroupFacts, topics: Longs) -> list[str]:
    """Return the names of topics of the batch."""
    codes = pa.array(facts.batch.topic_name[topics] - 1)
    return list(facts.batch.topic_names.take(codes).to_pylist())


def _list_names(names: Sequence[str], noun: str) -> str:
    """Return all names where they are few; else how many there are."""
    if len(names) > _NAMES_SHOWN:
        return plural(len(names), noun)
    text = ", ".join(names)
    if noun == "topic":
        return text
    return f"{noun if len(names) == 1 else f'{noun}s'} {text}"
