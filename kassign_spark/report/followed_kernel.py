"""The rebalances of a plan's groups under both protocols, of all groups of a task at once."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kassign_spark.assignors.in_tasks import COOPERATIVE_STICKY, RANGE, assignors_of
from kassign_spark.client.protocols import COOPERATIVE, EAGER
from kassign_spark.groups.batch import Batch, Claims
from kassign_spark.groups.group_names import PIECE, group_columns, member_ids, with_nulls
from kassign_spark.groups.numbers import Flags, Longs, find, key
from kassign_spark.groups.read import CLAIM, OBSERVED, read_kinds
from kassign_spark.plans.rebalance_rounds import WITHHELD, RebalanceSteps, different, follow
from kassign_spark.whatif.outcome import Outcomes, extremes, has_in_the_end, measure

_OF_EACH = (("rounds", "int"), ("moved", "bigint"), ("paused", "bigint"), ("settles", "boolean"))
_LOADS = ("min_before", "max_before", "idle_before", "idle_after")
OF_GROUPS = {
    "protocol": "string",
    **{
        f"{protocol}_{name}": data_type
        for protocol in ("planned", EAGER, COOPERATIVE)
        for name, data_type in _OF_EACH
    },
    "withheld_count": "bigint",
    **dict.fromkeys(_LOADS, "bigint"),
}
"""Columns of a group, with their types; see ``followed.Followed``."""
FOLLOWED = "cluster_id string, group_id string, member_id string, topic string, partition int, " + (
    ", ".join(f"{name} {data_type}" for name, data_type in OF_GROUPS.items())
)
"""Rows of two kinds: a group, whose member_id is null, and a partition that somebody has in the
end, of groups that withhold some at first."""

Columns = dict[str, Any]
"""Arrays, or values to make some of, by name."""


def follow_both_arrow(
    table: pa.Table,
    *,
    is_owned: bool = True,
    racks_before_moves: bool = False,
    max_rounds: int = 1_000,
    at_once: bool = False,
) -> Iterator[pa.Table]:
    """Follow the groups of a task under both protocols: ``FOLLOWED``, in pieces.

    Args:
        table: rows of ``rows.fold``, and of kind OBSERVED: the plan.
        is_owned: whether there is a table owned.
        racks_before_moves: see ``Settings``.
        max_rounds: see ``Settings``.
        at_once: the plan is no assignor's: members get it without rounds, and groups need none.
    """
    batch, (claims, planned), _ = read_kinds(table, (CLAIM, OBSERVED))
    own = assignors_of(batch)
    has_none = own < 0
    own = np.where(has_none, RANGE, own)  # what is followed is forgotten
    cooperates = own == COOPERATIVE_STICKY
    of_protocol, sticky = {}, np.full(batch.group_count, COOPERATIVE_STICKY)
    for protocol, assignor in ((EAGER, own), (COOPERATIVE, sticky)):
        of_protocol[protocol] = follow(
            batch,
            claims,
            assignor,
            np.full(batch.group_count, protocol == COOPERATIVE),
            racks_before_moves=racks_before_moves,
            max_rounds=max_rounds,
        ).steps
    outcomes = {protocol: measure(batch, claims, steps) for protocol, steps in of_protocol.items()}
    steps = of_protocol[COOPERATIVE]
    group = batch.member_group[steps.member]
    is_withheld = (steps.round == 1) & (steps.action == WITHHELD) & cooperates[group]
    withheld = np.bincount(group[is_withheld & (not at_once)], minlength=batch.group_count)
    ends = has_in_the_end(steps, outcomes[COOPERATIVE].rounds[group]) & (withheld > 0)[group]
    of_plan = (planned.member >= 0) & (withheld == 0)[planned.group]
    after = np.concatenate((planned.member[of_plan], steps.member[ends]))
    columns = {
        "protocol": np.where(cooperates, COOPERATIVE, EAGER).tolist(),
        **_rounds(batch, of_protocol, outcomes, cooperates, is_owned=is_owned),
        "withheld_count": withheld,
        **_loads(batch, claims, after, is_owned=is_owned),
    }
    if at_once:
        columns |= _at_once(batch, claims, planned, is_owned=is_owned)
        for name in ("protocol", *(f"{EAGER}_{name}" for name, _ in _OF_EACH)):
            columns[name] = pc.if_else(pa.array(has_none), None, columns[name])
    yield with_nulls(FOLLOWED, group_columns(batch, np.arange(batch.group_count)) | columns)
    rows = np.flatnonzero(ends)
    for first in range(0, len(rows), PIECE):
        yield with_nulls(FOLLOWED, _partitions(batch, steps, rows[first : first + PIECE]))


def _rounds(
    batch: Batch,
    of_protocol: dict[str, RebalanceSteps],
    measured: dict[str, Outcomes],
    cooperates: Flags,
    *,
    is_owned: bool,
) -> Columns:
    """Return the totals of the rounds by protocol, and as planned; null if nothing happens."""
    columns: Columns = {}
    numbers: dict[str, list[Any]] = {}
    for protocol, steps in of_protocol.items():
        followed = measured[protocol]
        happens = np.bincount(batch.member_group[steps.member], minlength=batch.group_count) > 0
        numbers[protocol] = [
            followed.rounds,
            followed.moved,
            followed.paused,
            followed.settles,
            happens,
        ]
    numbers["planned"] = [
        np.where(cooperates, of_cooperative, of_eager)
        for of_eager, of_cooperative in zip(numbers[EAGER], numbers[COOPERATIVE], strict=True)
    ]
    for protocol, (*values, happens) in numbers.items():
        for (name, _), value in zip(_OF_EACH, values, strict=True):
            unknown = ~happens | (name == "moved" and not is_owned)
            columns[f"{protocol}_{name}"] = pa.array(value, mask=unknown)
    return columns


def _at_once(batch: Batch, claims: Claims, planned: Claims, *, is_owned: bool) -> Columns:
    """Return the totals of a plan that members receive at once: moved partitions pause once."""
    had = np.unique(key(claims.slot, claims.name)[claims.slot >= 0])
    is_known = planned.slot >= 0
    owned = np.isin(planned.slot, claims.slot) & is_known
    moves = owned & (find(had, key(planned.slot, planned.name)) < 0)
    still_there = np.isin(planned.slot, claims.slot[claims.member >= 0])

    def per_group(rows: Flags) -> Longs:
        return np.bincount(planned.group[rows], minlength=batch.group_count)

    unknown = np.full(batch.group_count, not is_owned)
    return {
        "planned_rounds": np.ones(batch.group_count, np.int64),
        "planned_moved": pa.array(per_group(moves), mask=unknown),
        "planned_paused": pa.array(per_group(moves & still_there), mask=unknown),
        "planned_settles": np.ones(batch.group_count, bool),
    }


def _loads(batch: Batch, claims: Claims, after: Longs, *, is_owned: bool) -> Columns:
    """Return the least and the most that a member had, and how many had and have nothing.

    Each claim counts, also one that another member disputes, or on what does not exist.
    """
    claims_of_members = claims.where(claims.member >= 0)
    had = np.bincount(
        claims_of_members.member[different(claims_of_members)], minlength=len(batch.member_group)
    )
    has = np.bincount(after, minlength=len(batch.member_group))
    least, most = extremes(batch.member_group, had, batch.group_count)

    def idle(load: Longs) -> Longs:
        return np.bincount(batch.member_group[load == 0], minlength=batch.group_count)

    loads = dict(zip(_LOADS, (least, most, idle(had), idle(has)), strict=True))
    return loads if is_owned else {"idle_after": loads["idle_after"]}


def _partitions(batch: Batch, steps: RebalanceSteps, rows: Longs) -> Columns:
    return {
        **group_columns(batch, batch.member_group[steps.member[rows]]),
        "member_id": member_ids(batch, steps.member[rows]),
        "topic": batch.topic_names.take(pa.array(steps.topic[rows] - 1)),
        "partition": steps.partition[rows],
    }
