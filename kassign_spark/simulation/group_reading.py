"""Reads the rows of a task: groups, all names that can turn up, and what is to happen."""

import json
from collections.abc import Iterator
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa

from kassign_spark.groups.numbers import Longs, dense, names
from kassign_spark.groups.read import CLAIM, MEMBER, REGEX, SUBSCRIPTION, TARGET, TOPIC
from kassign_spark.inputs.rules import CONSUMER, STATIC_AWAY
from kassign_spark.simulation.members import Event, Member, Texts, is_restart
from kassign_spark.simulation.simulated_group import Codes, Group, Naming, OwnedCodes, Topic

EVENT, PATTERN = 20, 21
"""Kinds of rows beside those of ``groups.batch``; see ``fold.fold_events``."""


def read_groups(table: pa.Table, *, copies: int = 0) -> tuple[list[Group], Naming]:
    """Read the rows of whole groups (see ``rows.fold`` and, with events, ``fold.fold_events``).

    So many ``copies`` of members may come, named by the member and a number.
    """
    cluster, group_name = names(table["cluster_id"]), names(table["group_id"])
    first, number = dense(cluster.code, group_name.code)
    group_ids = group_name.take(group_name.code[first]).to_pylist()
    cluster_ids = cluster.take(cluster.code[first]).to_pylist()
    groups = [Group(*names) for names in zip(cluster_ids, group_ids, strict=True)]
    kind = table["kind"].to_numpy()

    def rows(row_kind: int, *columns: str) -> Iterator[tuple[Any, ...]]:
        """Return for each row of a kind its group and the columns."""
        some = np.flatnonzero(kind == row_kind)
        picked = table.select(columns).take(pa.array(some))
        of_rows = (groups[place] for place in number[some].tolist())
        yield from zip(of_rows, *(column.to_pylist() for column in picked), strict=True)

    for group, pattern, matching in rows(PATTERN, "topic", "texts"):
        group.patterns[pattern] = _texts(matching)
    for group, regex, matching in rows(REGEX, "topic", "texts"):
        group.regexes[regex] = _texts(matching) or ()
    for group, topic, size, racks, topic_id in rows(TOPIC, "topic", "number", "texts", "member_id"):
        group.topics[topic] = Topic(size, None if racks is None else json.loads(racks), topic_id)
    subscriptions = {
        (id(group), list_number): (_texts(topics), pattern)
        for group, list_number, pattern, topics in rows(
            SUBSCRIPTION, "list_number", "topic", "texts"
        )
    }
    for group, member_id, generation, seq, list_number, texts, group_type in rows(
        MEMBER, "member_id", "number", "place", "list_number", "texts", "topic"
    ):
        # A sweep has the texts of ``rows.fold``, which leaves out those that no member has.
        texts_of_member = (*json.loads(texts), None, None, None)[:6]
        instance, rack, assignor, regex, client, leads = texts_of_member
        group.consumer |= group_type == CONSUMER
        votes: Texts = () if group.consumer and assignor is None else (assignor,)
        topics, pattern = subscriptions[id(group), list_number]
        member = Member(
            member_id,
            instance,
            rack,
            () if topics is None and regex is not None else topics,
            pattern,
            None if generation < 0 and generation != STATIC_AWAY else generation,
            None if seq < 0 else seq,
            assignor,
            votes,
            None,
            regex=regex,
            client=client,
            is_leader=leads is not None,
        )
        group.members.append(group.resolve(member))
    for group, event in rows(EVENT, "texts"):
        group.events += _stages(json.loads(event) | {"cluster_id": group.cluster_id})
    for group in groups:
        group.members.sort(key=lambda member: member.member_id)
        group.events.sort(key=lambda event: (event["event"], event["stage"]))
    naming, member_code, topic_code = _name(table, groups, copies)
    partition, position = table["number"].to_numpy(), table["place"].to_numpy()

    def owned_of(row_kind: int) -> Iterator[OwnedCodes]:
        """Return the rows of a kind of each group, in the order of their places."""
        some = np.flatnonzero(kind == row_kind)
        some = some[np.lexsort((position[some], number[some]))]
        owned = OwnedCodes(member_code[some], topic_code[some], partition[some])
        ends = np.searchsorted(number[some], np.arange(1, len(groups)))
        return (OwnedCodes(*cut) for cut in zip(*(np.split(c, ends) for c in owned), strict=True))

    for group, owned, target in zip(groups, owned_of(CLAIM), owned_of(TARGET), strict=True):
        group.owned, group.target = owned, target
    for place in np.unique(number[(kind == TARGET) & (position < 0)]).tolist():
        groups[place].target_is_ordered = False
    return groups, naming


def _texts(text: str | None) -> Texts | None:
    return None if text is None else tuple(json.loads(text))


def _stages(event: dict[str, Any]) -> list[Event]:
    """Split a restart into two stages: the member goes, and comes back."""
    for name in ("topics", "assignors"):
        event[name] = None if event[name] is None else tuple(event[name])
    last = 2 if is_restart(event) else 1
    return [event | {"stage": stage} for stage in range(1, last + 1)]


def _name(table: pa.Table, groups: list[Group], copies: int) -> tuple[Naming, Longs, Longs]:
    """Number all names that can turn up; and of each row its member's and its topic's number."""
    lists = {id(names): names for group in groups for names in _lists(group)}
    members: list[str | None] = []
    topics: list[str | None] = [*chain.from_iterable(lists.values())]
    texts: list[str | None] = []
    for group in groups:
        for event in group.events:
            members += (event["member_id"], event["new_member_id"])
            topics.append(event["topic"])
            texts += (event["group_instance_id"], event["rack_id"], *(event["assignors"] or ()))
        for member in group.members:
            texts += (member.instance, member.rack, member.assignor, member.client)
        for number in range(copies):
            member = group.members[number % len(group.members)]
            members.append(f"{member.member_id}+{number + 1}")
            texts.append(f"{member.instance}+{number + 1}")
    of_members, of_topics, of_texts = (
        names(pa.chunked_array([*chunks, pa.array(more, pa.string())]), java_order=True)
        for chunks, more in (
            (table["member_id"].chunks, members),
            (table["topic"].chunks, topics),
            ([], texts),
        )
    )
    naming = Naming(*(Codes(strings.strings) for strings in (of_members, of_topics, of_texts)))
    return naming, of_members.code, of_topics.code


def _lists(group: Group) -> Iterator[Texts]:
    """Return all lists of topics that the group's members may ever have."""
    for member in group.members:
        yield member.topics or ()
    for event in group.events:
        yield event["topics"] or ()
    for names_of_pattern in (*group.patterns.values(), *group.regexes.values()):
        yield names_of_pattern or ()
