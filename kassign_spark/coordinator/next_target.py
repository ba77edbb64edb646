"""The next target of one group, and how sure it is."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from kassign_spark.client.group_state import INEXACT, NEVER_SETTLES, OK
from kassign_spark.client.hash_order import HashOrder, member_order
from kassign_spark.coordinator.assignor_votes import Choice, choose_assignor
from kassign_spark.coordinator.orders import Ints, drawn_id, order_by_ids
from kassign_spark.coordinator.server_range import assign_range
from kassign_spark.coordinator.target_state import (
    NOBODY,
    ConsumerGroupState,
    Layout,
    lay_out,
    reorder_members,
)
from kassign_spark.coordinator.uniform_heterogeneous import NO_PEAKS, Dealt, Peaks, assign_differing
from kassign_spark.coordinator.uniform_homogeneous import assign_equal

_MOST_JOINERS = 3
"""Number of members that join together of which each is tried in turn."""


@dataclass(frozen=True, slots=True)
class TargetOutcome:
    """The answer of the coordinator's assignor.

    Attributes:
        assignor: that gave the answer.
        verdict: ok, inexact, or never_settles where the group's choice of assignor has no end.
        detail: why, where the verdict is not ok.
        owner: for each partition a position in ``member_ids``, -1 for none.
        layout: which partition is which.
        dealt: for each partition its place among those that were dealt to members.
        peaks: of the assignor's tables.
    """

    assignor: str
    verdict: str
    detail: str | None
    owner: Ints
    layout: Layout
    dealt: Ints
    peaks: Peaks = NO_PEAKS


def next_target(state: ConsumerGroupState, assignor: str | None = None) -> TargetOutcome:
    """Compute the target that the coordinator computes next, as of Kafka 4.4.0.

    No partition is in two members' last targets. Without an assignor, `uniform` or `range`, the
    members' votes choose. The target is `inexact` where something that decides is not known: then a
    stand-in has decided, always the same for the same names.
    """
    choice = choose_assignor(state.votes) if assignor is None else Choice(assignor)
    state, reasons = _existing(state)
    layout, peaks = lay_out(state), NO_PEAKS
    if choice.assignor == "range":
        owner = assign_range(state, layout)
        dealt = np.arange(len(owner))
    else:
        (owner, dealt, peaks), uncertain = _assign_uniform(state, layout)
        reasons += uncertain
    verdict, detail = (INEXACT, "; ".join(reasons)) if reasons else (OK, None)
    if choice.undecided:
        first, second = (state.member_ids[i] for i in choice.undecided)
        verdict, detail = (
            NEVER_SETTLES,
            f"one vote each for uniform and range, of {first} and {second}: the group's epoch "
            "rises with every heartbeat of the one that names uniform, until another member votes",
        )
    return TargetOutcome(choice.assignor, verdict, detail, owner, layout, dealt, peaks)


def doubt_joiners(
    state: ConsumerGroupState, outcome: TargetOutcome, is_new: Sequence[bool]
) -> TargetOutcome:
    """Add a note where a target depends on whether a newcomer's own heartbeat computes it.

    In that heartbeat the newcomer is the last in the coordinator's order, in any later one it
    stands at the place that its id gives it.

    ``is_new`` says of each member whether it has yet to join; where all have, it is no question.
    """
    new = [place for place, is_it in enumerate(is_new) if is_it]
    if outcome.verdict != OK or outcome.assignor == "range" or len(new) in (0, len(is_new)):
        return outcome
    for place in new[:_MOST_JOINERS]:
        order = [*(i for i in range(len(is_new)) if i != place), place]
        other = next_target(reorder_members(state, order), outcome.assignor)
        if not np.array_equal(np.append(order, NOBODY)[other.owner], outcome.owner):
            detail = (
                f"member {state.member_ids[place]} has yet to join: if its own heartbeat computes "
                "the target, another one comes out"
            )
            return replace(outcome, verdict=INEXACT, detail=detail)
    return outcome


def _assign_uniform(state: ConsumerGroupState, layout: Layout) -> tuple[Dealt, list[str]]:
    ids = list(state.topic_ids) or [None] * len(state.topics)
    topic_ids = [
        drawn_id(topic) if known is None else known
        for topic, known in zip(state.topics, ids, strict=True)
    ]
    members_in_order: Sequence[int] = range(len(state.member_ids))
    if not state.is_order_known:
        members_in_order = order_by_ids(state.member_ids)
    members = member_order([state.member_ids[i] for i in members_in_order])
    order = [members_in_order[i] for i in members.order]
    reasons = _doubts_about_members(state, members)
    subscribed = np.unique(np.concatenate([np.zeros(0, dtype=np.int64), *layout.subscribed]))
    used = subscribed[np.diff(layout.starts)[subscribed] > 0]
    if len(used) > 1 and any(ids[topic] is None for topic in used):
        reasons.append(
            f"the id of topic {next(state.topics[t] for t in used if ids[t] is None)} is not "
            "known, and topics are gone through by their ids"
        )
    if not layout.is_homogeneous:
        return assign_differing(state, layout, topic_ids, order), reasons
    owner, dealt, doubts = assign_equal(state, layout, topic_ids, order)
    return Dealt(owner, dealt, NO_PEAKS), reasons + doubts


def _doubts_about_members(state: ConsumerGroupState, members: HashOrder) -> list[str]:
    if not members.is_reproduced:
        return ["the hashes of nine or more member ids fall together in Java's hash map"]
    if not state.is_order_known and len(set(members.buckets)) < len(members.buckets):
        return [
            "the coordinator's order of members is not known (members.member_seq); what their ids "
            "alone tell is right in 97 of 100 groups"
        ]
    return []


def _existing(state: ConsumerGroupState) -> tuple[ConsumerGroupState, list[str]]:
    """Remove missing partitions from the last target, and say so; the coordinator keeps them."""
    sizes = np.asarray(state.num_partitions, dtype=np.int64)
    exists = state.target_partitions < sizes[state.target_topics]
    if exists.all():
        return state, []
    row = int(np.flatnonzero(~exists)[0])
    name = f"{state.topics[state.target_topics[row]]}-{state.target_partitions[row]}"
    positions = state.target_positions
    existing = replace(
        state,
        target_members=state.target_members[exists],
        target_topics=state.target_topics[exists],
        target_partitions=state.target_partitions[exists],
        target_positions=positions[exists] if len(positions) else positions,
    )
    return existing, [f"the last target has {name}, which does not exist"]
