"""What a task is given of groups that are to change their protocol, group by group."""

import json
from collections import defaultdict
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kassign_spark.coordinator.state import NOBODY, ConsumerGroupState
from kassign_spark.groups.batch import Batch, Claims
from kassign_spark.groups.numbers import Longs

SAID, TOPIC_ID, ORDER, CLIENT = range(5, 9)
"""Kinds of rows beside those of ``rows.fold``.

SAID: member_id, texts: a list of its pattern, what RE2/J makes of that, its regex; TOPIC_ID: topic,
texts: its id; ORDER: member_id, number: its place among the restarts; CLIENT: texts: what is wrong
with a client of the group.
"""


@dataclass(frozen=True, slots=True)
class Beside:
    """What rows of further kinds say: by cluster and group, or topic."""

    said: dict[tuple[str, str], dict[str, list[str | None]]] = field(
        default_factory=lambda: defaultdict(dict)
    )
    topic_ids: dict[tuple[str, str], str | None] = field(default_factory=dict)
    places: dict[tuple[str, str], dict[str, int]] = field(default_factory=lambda: defaultdict(dict))
    clients: dict[tuple[str, str], list[str]] = field(default_factory=lambda: defaultdict(list))


def read_beside(table: pa.Table) -> Beside:
    """Read the rows of the kinds of this module."""
    found = Beside()
    columns = ("kind", "cluster_id", "group_id", "member_id", "topic", "number", "texts")
    kinds = pa.array([SAID, TOPIC_ID, ORDER, CLIENT], pa.int8())
    rows = table.select(columns).filter(pc.is_in(table["kind"], kinds))
    for kind, cluster, group, member, topic, number, texts in zip(
        *(rows[name].to_pylist() for name in columns), strict=True
    ):
        if kind == SAID:
            found.said[cluster, group][member] = json.loads(texts)
        elif kind == TOPIC_ID:
            found.topic_ids[cluster, topic] = texts
        elif kind == ORDER:
            found.places[cluster, group][member] = number
        else:
            found.clients[cluster, group].append(texts)
    return found


def owners_of(batch: Batch, claims: Claims) -> Longs:
    """Of each slot who claims it: of several the first by id."""
    here = claims.where((claims.slot >= 0) & (claims.member >= 0))
    owner = np.full(int(batch.first_slot[-1]), NOBODY)
    order = np.argsort(-here.member, kind="stable")
    owner[here.slot[order]] = here.member[order]
    return owner


def name_of(batch: Batch, group: int) -> tuple[str, str]:
    """cluster_id and group_id of a group."""
    return (
        batch.cluster_names[int(batch.cluster[group]) - 1].as_py(),
        batch.group_names[int(batch.group[group]) - 1].as_py(),
    )


def _member_ids(batch: Batch, group: int) -> list[str]:
    first, end = batch.first_member[group : group + 2]
    ids: list[str] = batch.member_names.take(pa.array(batch.member_name[first:end] - 1)).to_pylist()
    return ids


def state_of(batch: Batch, group: int, beside: Beside) -> ConsumerGroupState:
    """A group as the coordinator sees it once it is one of the new protocol.

    Patterns and regexes are resolved, so they count as names.
    """
    first, end = batch.first_member[group : group + 2]
    topics = slice(*batch.first_topic[group : group + 2])
    names = batch.topic_names.take(pa.array(batch.topic_name[topics] - 1)).to_pylist()
    lists: dict[int, tuple[str, ...]] = {}
    for number in np.unique(batch.subscription[first:end]).tolist():
        codes = batch.list_topics[batch.list_start[number] : batch.list_start[number + 1]]
        lists[number] = tuple(batch.topic_names.take(pa.array(codes - 1)).to_pylist())
    instances, votes = (
        batch.texts.take(pa.array(codes - 1, mask=codes == 0)).to_pylist()
        for codes in (batch.instance[first:end], batch.assignor[first:end])
    )
    cluster, _ = name_of(batch, group)
    return ConsumerGroupState(
        member_ids=_member_ids(batch, group),
        subscriptions=[lists[number] for number in batch.subscription[first:end].tolist()],
        topics=names,
        num_partitions=batch.size[topics].tolist(),
        topic_ids=[beside.topic_ids.get((cluster, name)) for name in names],
        instance_ids=instances,
        votes=votes,
        is_order_known=False,
    )


def order_of(batch: Batch, group: int, beside: Beside) -> Longs:
    """Order a group's members for their restarts: as asked, then static ones before others."""
    first, end = batch.first_member[group : group + 2]
    places = beside.places.get(name_of(batch, group), {})
    asked = [places.get(member, len(places)) for member in _member_ids(batch, group)]
    found: Longs = np.lexsort((batch.rank[first:end], np.array(asked, np.int64)))
    return found
