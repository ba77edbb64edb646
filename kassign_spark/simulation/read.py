"""Reads the rows of a task: groups, all names that can turn up, and what is to happen."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kassign_spark.groups.numbers import Longs, Names, dense, names
from kassign_spark.groups.read import CLAIM, MEMBER, SUBSCRIPTION, TOPIC
from kassign_spark.simulation.members import Event, Member, Texts, is_restart
from kassign_spark.simulation.state import Codes, Group, Naming, Owned, Topic

EVENT, PATTERN = 5, 6
"""Kinds of rows beside those of ``groups.batch``; see ``fold.fold_events``."""


def read_groups(table: pa.Table, *, copies: int = 0) -> tuple[list[Group], Naming]:
    """Read the rows of whole groups (see ``rows.fold`` and, with events, ``fold.fold_events``).

    Args:
        table: the rows.
        copies: how many copies of members may come, named by the member and a number.

    Returns:
        the groups, and what they are named by.
    """
    cluster, group_name = names(table["cluster_id"]), names(table["group_id"])
    first, number = dense(cluster.code, group_name.code)
    group_ids = group_name.take(group_name.code[first]).to_pylist()
    cluster_ids = cluster.take(cluster.code[first]).to_pylist()
    groups = [Group(*of) for of in zip(cluster_ids, group_ids, strict=True)]
    kind = table["kind"].to_numpy()

    def rows(of: int, *columns: str) -> Iterator[tuple[Any, ...]]:
        """Of each row its place, its group and the columns."""
        some = np.flatnonzero(kind == of)
        picked = table.select(columns).take(pa.array(some))
        of_rows = (groups[place] for place in number[some].tolist())
        yield from zip(some.tolist(), of_rows, *(c.to_pylist() for c in picked), strict=True)

    for _, group, pattern, texts in rows(PATTERN, "topic", "texts"):
        group.patterns[pattern] = None if texts is None else tuple(texts)
    for place, group, topic, size in rows(TOPIC, "topic", "number"):
        group.topics[topic] = Topic(size, place)
    subscriptions: dict[tuple[int, int], tuple[Texts | None, str | None]] = {
        (id(group), code): (None if listed is None else tuple(listed), pattern)
        for _, group, code, pattern, listed in rows(SUBSCRIPTION, "subscription", "topic", "texts")
    }
    for _, group, member_id, generation, seq, code, texts in rows(
        MEMBER, "member_id", "number", "place", "subscription", "texts"
    ):
        instance, rack, assignor = texts
        listed, pattern = subscriptions[id(group), code]
        member = Member(
            member_id,
            instance,
            rack,
            listed,
            pattern,
            None if generation < 0 else generation,
            None if seq < 0 else seq,
            assignor,
            (assignor,),
            None,
        )
        group.members.append(group.resolve(member))
    if "event" in table.column_names:
        for _, group, event in rows(EVENT, "event"):
            group.events += _stages(event | {"cluster_id": group.cluster_id})
    for group in groups:
        group.members.sort(key=lambda member: member.member_id)
        group.events.sort(key=lambda event: (event["event"], event["stage"]))
    of_members, of_topics, of_texts = _names(table, kind, _copied(groups, copies))
    claims = np.flatnonzero(kind == CLAIM)
    claims = claims[np.argsort(number[claims], kind="stable")]
    partition = table["number"].to_numpy()[claims]
    owned = Owned(of_members.code[claims], of_topics.code[claims], partition)
    ends = np.searchsorted(number[claims], np.arange(1, len(groups)))
    for group, *of_group in zip(groups, *(np.split(c, ends) for c in owned), strict=True):
        group.owned = Owned(*of_group)
    racks = table["racks"] if "racks" in table.column_names else None
    members, topics, texts = (Codes(of.strings) for of in (of_members, of_topics, of_texts))
    return groups, Naming(members, topics, texts, racks)


def _stages(event: dict[str, Any]) -> list[Event]:
    """A restart takes two stages: the member goes, and comes back."""
    for name in ("topics", "assignors"):
        event[name] = None if event[name] is None else tuple(event[name])
    last = 2 if is_restart(event) else 1
    return [event | {"stage": stage} for stage in range(1, last + 1)]


def _copied(groups: list[Group], copies: int) -> tuple[pa.Array, pa.Array]:
    """The names and instances of all copies."""
    of = [
        (group.members[number % len(group.members)], number + 1)
        for group in groups
        for number in range(copies)
    ]
    names = [f"{member.member_id}+{number}" for member, number in of]
    instances = [f"{m.instance}+{number}" for m, number in of if m.instance is not None]
    return pa.array(names, pa.string()), pa.array(instances, pa.string())


def _names(
    table: pa.Table, kind: Longs, copied: tuple[pa.Array, pa.Array]
) -> tuple[Names, Names, Names]:
    """All names of members, of topics, and other texts of members; of the rows first."""
    is_said = pa.array(kind == MEMBER)
    said = table["texts"].filter(is_said).combine_chunks()
    listed = table["texts"].filter(pc.invert(is_said)).combine_chunks()
    of_members, of_topics, of_texts = (
        [*table["member_id"].chunks, copied[0]],
        [*table["topic"].chunks, listed.flatten()],
        [said.flatten(), copied[1]],
    )
    if "event" in table.column_names:
        event = table["event"].filter(pa.array(kind == EVENT)).combine_chunks()
        of_members += [event.field(name) for name in ("member_id", "new_member_id")]
        of_topics += [event.field("topic"), event.field("topics").flatten()]
        of_texts += [event.field(name) for name in ("group_instance_id", "rack_id")]
        of_texts.append(event.field("assignors").flatten())
    all_names = (pa.chunked_array(of, pa.string()) for of in (of_members, of_topics, of_texts))
    members, topics, texts = (names(of, java_order=True) for of in all_names)
    return members, topics, texts
