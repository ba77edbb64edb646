"""What a task is given of groups that are to change their protocol, group by group."""

import json
from collections import defaultdict
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kassign_spark.coordinator.state import NOBODY, ConsumerGroupState
from kassign_spark.groups.batch import Batch, Claims
from kassign_spark.groups.named import member_ids
from kassign_spark.groups.numbers import Longs
from kassign_spark.whatif.coordinator_states import GroupStates

SAID, ORDER, CLIENT = range(5, 8)
"""Kinds of rows beside those of ``rows.fold``.

SAID: member_id, texts: a list of its pattern, what RE2/J makes of that, its regex;
ORDER: member_id, number: its place among the restarts;
CLIENT: texts: what is wrong with a client of the group.
"""


class Beside:
    """What rows of further kinds say: by cluster and group."""

    def __init__(self) -> None:
        self.said: dict[tuple[str, str], dict[str, list[str | None]]] = defaultdict(dict)
        self.places: dict[tuple[str, str], dict[str, int]] = defaultdict(dict)
        self.clients: dict[tuple[str, str], list[str]] = defaultdict(list)


def read_beside(table: pa.Table) -> Beside:
    """Read the rows of the kinds of this module."""
    found = Beside()
    columns = ("kind", "cluster_id", "group_id", "member_id", "number", "texts")
    kinds = pa.array([SAID, ORDER, CLIENT], pa.int8())
    rows = table.select(columns).filter(pc.is_in(table["kind"], kinds))
    for kind, cluster, group, member, number, texts in zip(
        *(rows[name].to_pylist() for name in columns), strict=True
    ):
        if kind == SAID:
            found.said[cluster, group][member] = json.loads(texts)
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


def state_of(batch: Batch, group: int, states: GroupStates) -> ConsumerGroupState:
    """A group as the coordinator sees it once it is one of the new protocol, before any target."""
    members = np.arange(*batch.first_member[group : group + 2])
    state = states.of(group, members)
    return replace(state, votes=states.votes(members), is_order_known=False)


def order_of(batch: Batch, group: int, beside: Beside) -> Longs:
    """Order a group's members for their restarts: as asked, then static ones before others."""
    first, end = batch.first_member[group : group + 2]
    places = beside.places.get(name_of(batch, group), {})
    ids = member_ids(batch, np.arange(first, end)).to_pylist()
    asked = [places.get(member, len(places)) for member in ids]
    found: Longs = np.lexsort((batch.rank[first:end], np.array(asked, np.int64)))
    return found
