"""Groups of a task on their way to the other protocol: every restart, from the first to the last.

As long as nobody, or nobody else, speaks the new protocol, the classic client's assignor decides;
in between it is the coordinator (``coordinator.migration``).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from kassign_spark.assignors.in_tasks import COOPERATIVE_STICKY, RANGE, assignors_of, part_of
from kassign_spark.coordinator.migration import JOIN, LEAVE, Change, MixedGroup
from kassign_spark.coordinator.target_state import NOBODY, ConsumerGroupState
from kassign_spark.groups.batch import Batch, claims_of
from kassign_spark.groups.numbers import Flags, Longs, ranges
from kassign_spark.plans.exact import follow_exactly
from kassign_spark.plans.rebalance_rounds import REVOKED, claims_of_owners
from kassign_spark.whatif.outcome import has_in_the_end, last_rounds

Verdict = tuple[str, str | None]


@dataclass(frozen=True, slots=True)
class Walk:
    """The way of one group; members and partitions are places in it.

    Attributes:
        changes: in order.
        is_consumer: after each of them, whether the group is one of the new protocol.
        next_moved: how many partitions the first change after the last restart moves on its own.
        verdicts: of the classic assignor's rebalances on the way.
    """

    changes: list[Change]
    is_consumer: list[bool]
    next_moved: int
    verdicts: list[Verdict]


@dataclass(frozen=True, slots=True)
class _Rebalanced:
    """A classic rebalance: of each slot who has it then, and whether it is revoked before."""

    owner: Longs
    pauses: Flags
    verdicts: dict[int, Verdict]


def upgrade(
    batch: Batch,
    owner: Longs,
    states: Sequence[ConsumerGroupState],
    orders: Sequence[Longs],
    assignor: str,
) -> list[Walk]:
    """Move classic groups to the new protocol.

    The first heartbeat of a new member converts the group: what the classic members have becomes
    their target (kip-848.md, 8). Before that, a dynamic member that leaves sets off one more
    rebalance by the classic assignor.

    Args:
        batch: the groups.
        owner: of each slot who has it; ``NOBODY``: nobody.
        states: of each group.
        orders: of each group its members, as they are to restart.
        assignor: `uniform` or `range`, which the new members get.
    """
    firsts = np.array([order[0] for order in orders], np.int64) + batch.first_member[:-1]
    assignors = assignors_of(batch)
    by = np.where(assignors < 0, RANGE, assignors)
    is_dynamic, left = _leave(batch, owner, firsts, by)
    walks = []
    for group, order in enumerate(orders):
        count = len(order)
        mixed = MixedGroup(
            states[group],
            _to_group_places(batch, group, owner),
            is_new=np.zeros(count, bool),
            is_eager=np.full(count, by[group] != COOPERATIVE_STICKY),
            assignor=assignor,
        )
        changes: list[Change] = []
        rest = order.tolist()
        if is_dynamic[group]:
            leaver, *rest = rest
            after = _to_group_places(batch, group, left.owner)
            pauses = left.pauses[slots_of(batch, group)] & (mixed.owner != leaver)
            changes.append(Change(leaver, LEAVE, mixed.owner, after, pauses, count > 1))
            mixed.owner = after
            changes.append(mixed.join(leaver, as_new=True))
        changes += [change for member in rest for change in mixed.restart(member, as_new=True)]
        is_consumer = [not (place == 0 and is_dynamic[group]) for place in range(len(changes))]
        target = mixed.target(np.ones(count, bool))
        verdicts = [left.verdicts[group]] if group in left.verdicts else []
        walks.append(Walk(changes, is_consumer, int((target != mixed.owner).sum()), verdicts))
    return walks


def downgrade(
    batch: Batch,
    owner: Longs,
    states: Sequence[ConsumerGroupState],
    orders: Sequence[Longs],
    assignor: int,
) -> list[Walk]:
    """Move groups of the new protocol back to the classic one.

    A group changes over when its last new member goes: what was the target is what the classic
    members have then, and their own assignor goes on from there. Where that member is static and
    is replaced, it has the target as well, and nothing is rebalanced.

    The arguments are those of ``upgrade``; but ``assignor`` is that of the classic members, a
    number of ``KAFKAS``.
    """
    mixed_groups, walked = [], []
    last_owner = owner.copy()
    for group, order in enumerate(orders):
        count = len(order)
        mixed = MixedGroup(
            states[group],
            _to_group_places(batch, group, owner),
            is_new=np.ones(count, bool),
            is_eager=np.full(count, assignor != COOPERATIVE_STICKY),
        )
        early = order[:-1].tolist()
        walked.append([c for member in early for c in mixed.restart(member, as_new=False)])
        mixed_groups.append(mixed)
        last_owner[slots_of(batch, group)] = to_batch_members(batch, group, mixed.owner)
    lasts = np.array([order[-1] for order in orders], np.int64) + batch.first_member[:-1]
    by = np.full(batch.group_count, assignor)
    is_dynamic, left = _leave(batch, last_owner, lasts, by)
    between = np.where(is_dynamic[batch.slot_group], left.owner, last_owner)
    everybody, every_group = np.ones(len(batch.member_group), bool), np.ones(len(by), bool)
    back = _rebalance(batch, everybody, between, by, every_group)
    walks = []
    for group, (mixed, changes) in enumerate(zip(mixed_groups, walked, strict=True)):
        member = int(orders[group][-1])
        is_consumer = [True] * len(changes)
        middle, after = (
            _to_group_places(batch, group, between),
            _to_group_places(batch, group, back.owner),
        )
        if is_dynamic[group]:
            slots = slots_of(batch, group)
            pauses = left.pauses[slots] & (mixed.owner != member)
            changes += [
                Change(member, LEAVE, mixed.owner, middle, pauses, len(orders[group]) > 1),
                Change(member, JOIN, middle, after, back.pauses[slots], is_rebalance=True),
            ]
            later = 0
        else:
            changes.append(mixed.replace(member, as_new=False))
            later = int((after != middle).sum())
        is_consumer += [False] * (len(changes) - len(is_consumer))
        verdicts = [walk.verdicts[group] for walk in (left, back) if group in walk.verdicts]
        walks.append(Walk(changes, is_consumer, later, verdicts))
    return walks


def slots_of(batch: Batch, group: int) -> slice:
    """Return the partitions of a group."""
    first, end = batch.first_topic[group : group + 2]
    return slice(int(batch.first_slot[first]), int(batch.first_slot[end]))


def to_batch_members(batch: Batch, group: int, owner: Longs) -> Longs:
    """Number owners that are places in a group as members of the batch."""
    return np.where(owner == NOBODY, NOBODY, owner + batch.first_member[group])


def _to_group_places(batch: Batch, group: int, owner: Longs) -> Longs:
    """Return the owners of a group's partitions, as places in the group."""
    owner = owner[slots_of(batch, group)]
    return np.where(owner == NOBODY, NOBODY, owner - batch.first_member[group])


def _leave(batch: Batch, owner: Longs, leavers: Longs, by: Longs) -> tuple[Flags, _Rebalanced]:
    """Remove a member from each group, if it is dynamic, and rebalance the others.

    Returns:
        Of each group whether it is; and what comes of it.
    """
    is_dynamic = batch.instance[leavers] == 0
    is_present = np.ones(len(batch.member_group), bool)
    is_present[leavers[is_dynamic]] = False
    has_others = np.diff(batch.first_member) > 1
    return is_dynamic, _rebalance(batch, is_present, owner, by, is_dynamic & has_others)


def _rebalance(
    batch: Batch, is_present: Flags, owner: Longs, by: Longs, groups: Flags
) -> _Rebalanced:
    """Rebalance the present members of some groups in the classic way.

    Groups that are not chosen, or whose assignor has no answer, have nothing afterwards.
    """
    after = np.full(len(owner), NOBODY)
    pauses = np.zeros(len(owner), bool)
    if not groups.any():
        return _Rebalanced(after, pauses, {})
    subset, kept, slots = _set_aside(batch, ~is_present).part(np.append(groups, False))
    kept_slots = slots[owner[slots] != NOBODY]
    kept_slots = kept_slots[is_present[owner[kept_slots]]]
    claims = part_of(claims_of_owners(batch, kept_slots, owner[kept_slots]), groups, kept, slots)
    judged = follow_exactly(subset, claims, by[groups], by[groups] == COOPERATIVE_STICKY)
    steps = judged.steps
    group = subset.member_group[steps.member]
    name = subset.member_name[steps.member]
    slot = claims_of(subset, group, name, steps.topic, steps.partition).slot
    last = last_rounds(group, steps, subset.group_count)[group]
    ends = has_in_the_end(steps, last) & (slot >= 0)
    after[slots[slot[ends]]] = kept[steps.member[ends]]
    pauses[slots[slot[(steps.action == REVOKED) & (slot >= 0)]]] = True
    numbers = np.flatnonzero(groups).tolist()
    return _Rebalanced(after, pauses, dict(zip(numbers, judged.verdicts, strict=True)))


def _set_aside(batch: Batch, left: Flags) -> Batch:
    """Move members, and topics that only they read, to an additional group, the last."""
    sets = np.unique(batch.member_set[~left])
    counts = np.diff(batch.set_start)[sets]
    is_read = np.zeros(len(batch.size), bool)
    is_read[batch.set_topic[ranges(batch.set_start[sets], counts)]] = True
    return replace(
        batch,
        cluster=np.append(batch.cluster, 0),
        group=np.append(batch.group, 0),
        member_group=np.where(left, batch.group_count, batch.member_group),
        # Members of a settled group all own what they own in its current generation.
        generation=np.ones(len(left), np.int64),
        topic_group=np.where(is_read, batch.topic_group, batch.group_count),
    )
