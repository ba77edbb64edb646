"""Kafka's client for all groups of a task: vectorised where it can be, else by the model."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kassign_spark.assignors.blocks import range_owners, roundrobin_owners
from kassign_spark.assignors.in_tasks import (
    COOPERATIVE_STICKY,
    RANGE,
    ROUNDROBIN,
    STICKY,
    missing_topics,
    needs_model,
    numbers_of,
)
from kassign_spark.client.cooperative_rounds import follow_rounds
from kassign_spark.client.group_state import FAILING, OK, Outcome
from kassign_spark.client.missing import describe_left_out
from kassign_spark.client.model import predict_group
from kassign_spark.client.protocols import EAGER
from kassign_spark.client_libraries import ASSIGNORS, CLIENTS
from kassign_spark.groups.batch import Batch, Claims
from kassign_spark.groups.group_names import PIECE, group_columns, with_nulls
from kassign_spark.groups.group_states import States
from kassign_spark.groups.leading_clients import SEVERAL
from kassign_spark.groups.numbers import Flags, Longs, find, key, rows_by
from kassign_spark.groups.read import read_batch
from kassign_spark.plans.rebalance_rounds import (
    ACTIONS,
    ASSIGNED,
    REVOKED,
    RebalanceSteps,
    different,
    step_columns,
    steps_of_claims,
    steps_of_slots,
)

RUNS = (
    "cluster_id string, group_id string, verdict string, detail string, round int, action string, "
    "member_id string, topic string, partitions array<int>"
)
"""Rows of two kinds: a group's verdict; partitions that a member has of a topic."""


MISLED = "cluster_id string, group_id string, verdict string, detail string"
"""A row of each group of ``misled_groups``."""


class ClientOutcomes(NamedTuple):
    """The groups of a batch as the client leaves them.

    Attributes:
        verdicts: of each group, with the detail.
        steps: who gets what, and in which round.
    """

    verdicts: Sequence[tuple[str, str | None]]
    steps: RebalanceSteps


def predict_arrow(
    table: pa.Table, *, assignor: int | None = None, leader: str | None = None
) -> Iterator[pa.Table]:
    """Predict the groups of a task (rows of ``rows.fold``): the columns of ``RUNS``.

    ``assignor`` is a number of ``ASSIGNORS`` for all of them; None: each its own. ``leader`` is
    the library that leads where that is not known, and some member runs it.
    """
    batch, claims = read_batch(table)
    if leader is not None:
        batch = led_by(batch, CLIENTS.index(leader))
    assignors = numbers_of(batch, assignor)
    judged = predict_batch(batch, claims, batch.generation, assignors)
    left_out = topics_left_out(batch, claims)
    verdicts = [
        (verdict, "; ".join(filter(None, (detail, left_out.get(group)))) or None)
        for group, (verdict, detail) in enumerate(judged.verdicts)
    ]
    yield from _tables(batch, judged._replace(verdicts=verdicts))


def led_by(batch: Batch, client: int) -> Batch:
    """Name a leader that runs the library, in groups of several whose leader is not known."""
    is_open = batch.leading_client[batch.member_group] == SEVERAL
    running = np.flatnonzero(is_open & (batch.client_number == client))
    _, first = np.unique(batch.member_group[running], return_index=True)
    is_leader = batch.is_leader.copy()
    is_leader[running[first]] = True
    return replace(batch, is_leader=is_leader)


def follow_exactly_arrow(
    table: pa.Table, *, assignor: int | None = None, is_eager: bool = False
) -> Iterator[pa.Table]:
    """Follow the rebalances of the groups of a task, with the answers of ``predict_arrow``.

    ``is_eager``: the protocol is eager also where the assignor's own is not.
    """
    batch, claims = read_batch(table)
    assignors = numbers_of(batch, assignor)
    is_cooperative = (assignors == COOPERATIVE_STICKY) & (not is_eager)
    yield from _tables(batch, follow_exactly(batch, claims, assignors, is_cooperative))


def predict_batch(
    batch: Batch, claims: Claims, generation: Longs, assignor: Longs, groups: Flags | None = None
) -> ClientOutcomes:
    """Return the client's answer for each group, or some.

    Args:
        batch: the groups.
        claims: what members say that they own, whether it exists or not.
        generation: of each member, in which it owned that.
        assignor: of each group a number of ``ASSIGNORS``.
        groups: which groups to answer; None: all.

    Returns:
        what is `assigned`, in round 1, also partitions that do not exist; nothing of groups that
        are not chosen or have no answer.
    """
    is_asked = np.ones(batch.group_count, bool) if groups is None else groups
    is_plain = (assignor < STICKY) & ~needs_model(batch, assignor)
    parts = []
    for number, owners in ((RANGE, range_owners), (ROUNDROBIN, roundrobin_owners)):
        chosen = is_asked & is_plain & (assignor == number)
        if chosen.any():
            subset, members, slots = batch.part(chosen)
            parts.append(steps_of_slots(batch, slots, members[owners(subset)], 1, ASSIGNED))
    verdicts: list[tuple[str, str | None]] = [(OK, None)] * batch.group_count
    modelled = np.flatnonzero(is_asked & ~is_plain).tolist()
    if modelled:
        states = States(batch, claims, generation)
        for group in modelled:
            outcome = predict_group(states.of(group, ASSIGNORS[assignor[group]]))
            verdicts[group] = outcome.verdict, outcome.detail
            if outcome.verdict not in FAILING:
                parts.append(_assigned_steps(batch, group, states.members(group), outcome))
    return ClientOutcomes(verdicts, RebalanceSteps.join(parts))


def topics_left_out(batch: Batch, claims: Claims) -> dict[int, str]:
    """Return the topics that members ask for in vain, and whether they get anything."""
    unknown = missing_topics(batch)
    claimed = claims.where(claims.member >= 0)
    owned = find(unknown, key(claimed.group, claimed.topic))
    counts = np.bincount(owned[owned >= 0], minlength=len(unknown)).tolist()
    names = batch.topic_names.to_pylist()
    by_group: dict[int, list[tuple[str, int]]] = {}
    for pair, count in zip(unknown.tolist(), counts, strict=True):
        by_group.setdefault(pair >> 32, []).append((names[(pair & 0xFFFF_FFFF) - 1], count))
    idle = (np.bincount(batch.topic_group, minlength=batch.group_count) == 0).tolist()
    sentences = {
        group: describe_left_out(by_group.get(group, ()), is_idle=is_idle)
        for group, is_idle in enumerate(idle)
    }
    return {group: sentence for group, sentence in sentences.items() if sentence is not None}


def misled_groups(
    batch: Batch, claims: Claims, generation: Longs, assignor: Longs
) -> dict[int, tuple[str, str | None]]:
    """Find the groups in which claims of partitions that do not exist mislead Kafka's client.

    Who plans drops such claims, so here the client does something else (``client.missing``). The
    arguments are those of ``predict_batch``.

    Returns:
        of each such group verdict and detail, as in ``predict``.
    """
    topics = key(batch.topic_group, batch.topic_name)
    is_missing = (claims.member >= 0) & (claims.slot < 0) & (assignor[claims.group] >= STICKY)
    is_missing &= find(topics, key(claims.group, claims.topic)) >= 0
    suspects = np.unique(claims.group[is_missing]).tolist()
    if not suspects:
        return {}
    states = States(batch, claims, generation)
    outcomes = {g: predict_group(states.of(g, ASSIGNORS[assignor[g]])) for g in suspects}
    return {
        g: (outcome.verdict, outcome.detail) for g, outcome in outcomes.items() if outcome.is_misled
    }


def misled_arrow(
    table: pa.Table, *, assignor: int | None = None, protocol: str | None = None
) -> Iterator[pa.Table]:
    """Return ``misled_groups`` of a task (rows of ``rows.fold``): the columns of ``MISLED``.

    ``assignor`` is a number of ``ASSIGNORS`` for all of them; None: each its own. Under the eager
    ``protocol`` `cooperative-sticky` does not know what members owned.
    """
    batch, claims = read_batch(table)
    assignors = numbers_of(batch, assignor)
    leading = assignors if protocol != EAGER else np.where(assignors == STICKY, STICKY, RANGE)
    misled = misled_groups(batch, claims, batch.generation, leading)
    verdicts = {
        **group_columns(batch, np.array(list(misled), np.int64)),
        "verdict": [verdict for verdict, _ in misled.values()],
        "detail": [detail for _, detail in misled.values()],
    }
    yield with_nulls(MISLED, verdicts)


def follow_exactly(
    batch: Batch, claims: Claims, assignor: Longs, is_cooperative: Flags
) -> ClientOutcomes:
    """Follow each group's rebalance with the client's own answers.

    Args:
        batch: the groups; all members take part in every round.
        claims: what members own before.
        assignor: of each group a number of ``ASSIGNORS``.
        is_cooperative: of each group; under the eager protocol `cooperative-sticky` knows nothing
            of what members owned.
    """
    claims_of_members = claims.where(claims.member >= 0)
    kept = claims_of_members.where(different(claims_of_members))
    eager_claims = claims_of_members.where(
        ~((assignor == COOPERATIVE_STICKY) & ~is_cooperative)[claims_of_members.group]
    )
    eager = predict_batch(batch, eager_claims, batch.generation, assignor, ~is_cooperative)
    parts = [eager.steps, steps_of_claims(kept.where(~is_cooperative[kept.group]), 1, REVOKED)]
    verdicts = list(eager.verdicts)
    cooperative = np.flatnonzero(is_cooperative).tolist()
    if cooperative:
        states = States(batch, claims_of_members, batch.generation)
        code = {name: i for i, name in enumerate(batch.topic_names.to_pylist(), start=1)}
        rows: list[tuple[int, int, int, int, int]] = []
        for group in cooperative:
            followed = follow_rounds(states.of(group, ASSIGNORS[COOPERATIVE_STICKY]))
            verdicts[group] = followed.verdict, followed.detail
            members = states.members(group)
            for step in followed.steps:
                member, action = int(members[step.member]), ACTIONS.index(step.action)
                rows += [
                    (step.round, member, code[topic], number, action)
                    for topic, number in step.partitions
                ]
        parts.append(RebalanceSteps(*np.array(rows, np.int64).reshape(-1, 5).T))
    return ClientOutcomes(verdicts, RebalanceSteps.join(parts))


def _assigned_steps(batch: Batch, group: int, members: Longs, outcome: Outcome) -> RebalanceSteps:
    """Return the answer for the members of a group, by ids."""
    layout, counts = outcome.layout, [len(ids) for ids in outcome.assigned]
    ids = np.fromiter(chain.from_iterable(outcome.assigned), np.int64, sum(counts))
    code = batch.topic_name[slice(*batch.first_topic[group : group + 2])]
    if len(code) < len(layout.topics):  # behind them come topics that do not exist
        others = pa.array(layout.topics[len(code) :], pa.string())
        code = np.append(code, pc.index_in(others, batch.topic_names).to_numpy() + 1)
    same = np.ones(len(ids), np.int64)
    return RebalanceSteps(
        same,
        np.repeat(members, counts),
        code[np.array(layout.topic_of, np.int64)[ids]],
        np.array(layout.number_of, np.int64)[ids],
        same * ASSIGNED,
    )


def _tables(batch: Batch, judged: ClientOutcomes) -> Iterator[pa.Table]:
    """Name verdicts and steps: the columns of ``RUNS``, in pieces."""
    verdicts = {
        **group_columns(batch, np.arange(batch.group_count)),
        "verdict": [verdict for verdict, _ in judged.verdicts],
        "detail": [detail for _, detail in judged.verdicts],
    }
    yield with_nulls(RUNS, verdicts)
    judged_steps = judged.steps
    order = rows_by(
        judged_steps.round,
        judged_steps.action,
        judged_steps.member,
        judged_steps.topic,
        judged_steps.partition,
    )
    steps = judged_steps.where(order)
    runs = (steps.round, steps.action, steps.member, steps.topic)
    begins = np.flatnonzero(np.any([np.diff(column, prepend=-1) != 0 for column in runs], axis=0))
    ends = np.append(begins[1:], len(steps.round))
    first = 0
    while first < len(begins):
        # A run is whole in one piece.
        last = max(int(np.searchsorted(ends, ends[first] + PIECE)), first + 1)
        run_begins, start, end = begins[first:last], int(begins[first]), int(ends[last - 1])
        offsets = np.append(run_begins, end) - start
        partitions = pa.ListArray.from_arrays(
            pa.array(offsets.astype(np.int32)),
            pa.array(steps.partition[start:end].astype(np.int32)),
        )
        columns = step_columns(batch, steps.where(run_begins))
        yield with_nulls(RUNS, columns | {"partitions": partitions})
        first = last
