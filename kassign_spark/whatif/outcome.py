"""Measure the outcome of a rebalance for every group of a task: loads, moves, pauses, racks."""

from typing import NamedTuple

import numpy as np

from kassign_spark.assignors.blocks import range_owners
from kassign_spark.assignors.differing import topic_classes
from kassign_spark.coordinator.orders import inverse
from kassign_spark.engine.task import settle
from kassign_spark.groups.batch import Batch, Claims
from kassign_spark.groups.numbers import Flags, Longs, find, key, rows_by, utf_8_rank
from kassign_spark.measures.optimality import is_balanced, keeps_most
from kassign_spark.plans.rebalance_rounds import (
    ASSIGNED,
    RETAINED,
    REVOKED,
    WITHHELD,
    RebalanceSteps,
)


class Outcomes(NamedTuple):
    """The outcome of each group's rounds; names as in ``compare``.

    The last three say who has what in the end: members, slots, and whether another member had it.
    """

    rounds: Longs
    settles: Flags
    partition_count: Longs
    kept: Longs
    moved: Longs
    least: Longs
    most: Longs
    sum_of_squares: Longs
    topic_spread: Longs
    paused: Longs
    cross_rack: Longs
    member: Longs
    slot: Longs
    is_moved: Flags


def measure(batch: Batch, claims: Claims, steps: RebalanceSteps) -> Outcomes:
    """Measure what the steps lead to; claims are from before, also those of members that left."""
    count, group = batch.group_count, batch.member_group[steps.member]
    rounds = last_rounds(group, steps, count)
    settles = np.ones(count, bool)
    settles[group[(steps.round == rounds[group]) & (steps.action == WITHHELD)]] = False
    of_claims, of_steps = _partitions(group, claims, steps)
    revoked = np.flatnonzero(steps.action == REVOKED)
    paused = revoked[np.unique(of_steps[revoked], return_index=True)[1]]
    ends = has_in_the_end(steps, rounds[group])
    member, of_group = steps.member[ends], group[ends]
    mine = of_steps[ends]
    owners = np.unique(key(of_claims, claims.name))
    is_kept = find(owners, key(mine, batch.member_name[member])) >= 0
    was_owned = np.isin(mine, of_claims)
    load = np.bincount(member, minlength=len(batch.member_group))
    least, most = extremes(batch.member_group, load, count)
    squares = np.zeros(count, np.int64)
    np.add.at(squares, batch.member_group, load * load)

    def per_group(rows: Flags) -> Longs:
        return np.bincount(of_group[rows], minlength=count)

    place = find(key(batch.topic_group, batch.topic_name), key(of_group, steps.topic[ends]))
    number = steps.partition[ends]
    exists = (place >= 0) & (number < np.append(batch.size, 0)[place])
    slot = np.where(exists, batch.first_slot[place] + number, -1)
    return Outcomes(
        rounds,
        settles,
        np.bincount(of_group, minlength=count),
        per_group(is_kept),
        per_group(was_owned & ~is_kept),
        least,
        most,
        squares,
        _topic_spread(batch, member, slot),
        np.bincount(group[paused], minlength=count),
        per_group(crosses(batch, member, slot)),
        member,
        slot,
        was_owned & ~is_kept,
    )


def last_rounds(group: Longs, steps: RebalanceSteps, count: int) -> Longs:
    """Return each group's last round, at least the first; ``group`` is that of each step."""
    rounds = np.ones(count, np.int64)
    np.maximum.at(rounds, group, steps.round)
    return rounds


def has_in_the_end(steps: RebalanceSteps, last: Longs) -> Flags:
    """Return whether a step shows the owner of its partition after the last round."""
    has = (steps.action == RETAINED) | (steps.action == ASSIGNED)
    ends: Flags = has & (steps.round == last)
    return ends


def extremes(place: Longs, values: Longs, count: int) -> tuple[Longs, Longs]:
    """Return the least and the greatest value of each; of none, the greatest number and 0."""
    least, most = np.full(count, np.iinfo(np.int64).max), np.zeros(count, np.int64)
    np.minimum.at(least, place, values)
    np.maximum.at(most, place, values)
    return least, most


def _partitions(group: Longs, claims: Claims, steps: RebalanceSteps) -> tuple[Longs, Longs]:
    """Number partitions by name, whether they exist or not: those of claims, and of steps.

    ``group`` is that of each step.
    """
    by_group = key(
        np.concatenate((claims.group, group)), np.concatenate((claims.topic, steps.topic))
    )
    by_topic = np.unique(by_group, return_inverse=True)[1]
    number = np.concatenate((claims.partition, steps.partition))
    ids = np.unique(key(by_topic, number), return_inverse=True)[1]
    return ids[: len(claims.group)], ids[len(claims.group) :]


def crossing_now(batch: Batch, claims: Claims) -> Longs:
    """Return for each group how many partitions are owned across racks before anything happens."""
    claims_of_members = claims.where(claims.member >= 0)
    is_across = crosses(batch, claims_of_members.member, claims_of_members.slot)
    return np.bincount(claims_of_members.group[is_across], minlength=batch.group_count)


def _topic_spread(batch: Batch, member: Longs, slot: Longs) -> Longs:
    """Return for each group how unevenly its most uneven topic is spread over the subscribers."""
    exists = slot >= 0
    topic = batch.slot_topic[slot[exists]]
    subscribed = batch.subscribes(member[exists], batch.topic_name[topic])
    pairs, counts = np.unique(
        key(topic[subscribed], member[exists][subscribed]), return_counts=True
    )
    topic = pairs >> 32
    least, most = extremes(topic, counts, len(batch.size))
    holders = np.bincount(topic, minlength=len(batch.size))
    least[holders < batch.subscribers.size] = 0
    return extremes(batch.topic_group, most - np.minimum(least, most), batch.group_count)[1]


def crosses(batch: Batch, member: Longs, slot: Longs) -> Flags:
    """Return for each row whether some replica's rack is known and none is the member's.

    What does not exist (-1) crosses nothing.
    """
    is_crossing = np.zeros(len(slot), bool)
    racks = batch.racks
    if racks is None:
        return is_crossing
    exists = np.flatnonzero((slot >= 0) & (racks.member[member] > 0))
    slots = slot[exists]
    if racks.fits:
        is_crossing[exists] = (racks.slot[slots] > 0) & (
            racks.slot[slots] & racks.member[member[exists]] == 0
        )
        return is_crossing
    texts = [None, *batch.texts.to_pylist()]
    lists = racks.replica_racks.to_pylist()
    for row, slot_row in zip(exists.tolist(), slots.tolist(), strict=True):
        of_topic = lists[batch.slot_topic[slot_row]] or []
        number = int(batch.slot_partition[slot_row])
        replicas = of_topic[number : number + 1]
        racks_of_replicas = [
            rack for of_partition in replicas for rack in of_partition or [] if rack
        ]
        is_crossing[row] = (
            bool(racks_of_replicas) and texts[batch.rack[member[row]]] not in racks_of_replicas
        )
    return is_crossing


def optimum(batch: Batch, claims: Claims) -> tuple[Flags, Longs, Longs]:
    """Find the best balance and the fewest moves of each group, proven by the certificate.

    Of a partition that several claim, also members that left, the optimum knows one owner: whom
    `range` would give it, else the least by id.

    Returns:
        Of each group whether anything can be assigned, the sum of squared loads at the best
        balance, and the fewest partitions that can change owner then.
    """
    existing = claims.where(claims.slot >= 0)
    by_range = range_owners(batch)
    chosen = batch.member_name[by_range[existing.slot]] == existing.name
    rank = utf_8_rank(batch.member_names)[existing.name - 1]
    order = rows_by(existing.slot, ~chosen, rank)
    first = order[np.diff(existing.slot[order], prepend=-1) != 0]
    slot, owner = existing.slot[first], existing.member[first]

    classes = topic_classes(batch)
    place = inverse(batch.by_rank)
    class_of_slot = classes.of_topic[batch.slot_topic]
    is_assigned = owner >= 0
    edge = find(
        key(classes.of_edge, classes.place),
        key(class_of_slot[slot[is_assigned]], place[owner[is_assigned]]),
    )
    owned = np.bincount(edge[edge >= 0], minlength=len(classes.place)).astype(np.int64)
    supply = np.bincount(class_of_slot, minlength=len(classes.number))
    kept = settle(classes.of_edge, classes.place, owned, supply, classes.number)
    group_of_edge = batch.member_group[batch.by_rank[classes.place]]
    if len(classes.place):
        assert is_balanced(classes.of_edge, classes.place, kept).all()
        groups = np.unique(group_of_edge, return_inverse=True)[1]
        assert keeps_most(groups, classes.of_edge, classes.place, owned, kept).all()
    count = batch.group_count
    stay, squares = np.zeros((2, count), np.int64)
    np.add.at(stay, group_of_edge, np.minimum(kept, owned))
    load = np.bincount(classes.place, kept, len(place)).astype(np.int64)
    np.add.at(squares, batch.member_group[batch.by_rank], load * load)
    owned_count = np.bincount(batch.slot_group[slot], minlength=count)
    exists = np.bincount(batch.topic_group, minlength=count) > 0
    return exists, squares, owned_count - stay
