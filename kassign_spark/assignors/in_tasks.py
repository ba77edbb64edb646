"""Every assignor over a batch: each group by its own, the groups of one rule side by side."""

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from kassign_spark.assignors.blocks import range_owners, roundrobin_owners
from kassign_spark.assignors.differing import assign_differing, assign_with_racks
from kassign_spark.assignors.equal import assign_equal
from kassign_spark.client.model import follow_constrained, predict_group
from kassign_spark.client_libraries import (
    ASSIGNORS,
    CLIENTS,
    JAVA,
    KAFKA_GO,
    KAFKA_PYTHON,
    KAFKAJS,
    LIBRDKAFKA,
    LOOKS_AT_RACKS,
    SARAMA,
)
from kassign_spark.groups.batch import Batch, BatchAssignment, Claims
from kassign_spark.groups.group_states import States
from kassign_spark.groups.leading_clients import SEVERAL
from kassign_spark.groups.numbers import Flags, Longs, key
from kassign_spark.groups.racks import all_equal, reduce_or

RANGE, ROUNDROBIN, STICKY, COOPERATIVE_STICKY = range(4)
KAFKAS = ("range", "roundrobin", "sticky", "cooperative-sticky")
"""The assignors of Kafka's Java client, by number."""


def assignors_of(batch: Batch, names: Sequence[str] = KAFKAS) -> Longs:
    """Return the number of the assignor that each group's members name; -1: none of ``names``."""
    number = {name: place for place, name in enumerate(names)}
    of_text = [-1, *(number.get(text, -1) for text in batch.texts.to_pylist())]
    assignor = np.full(batch.group_count, -1)
    assignor[batch.member_group] = np.array(of_text)[batch.assignor]
    return assignor


def numbers_of(batch: Batch, assignor: int | None) -> Longs:
    """Return the number of each group's assignor: the one for all groups, or the group's own."""
    if assignor is None:
        return assignors_of(batch, ASSIGNORS)
    return np.full(batch.group_count, assignor)


def assign_batch(
    batch: Batch,
    claims: Claims,
    generation: Longs,
    assignor: Longs,
    *,
    racks_before_moves: bool = False,
) -> BatchAssignment:
    """Assign all partitions as ``assign`` does.

    Args:
        batch: the groups.
        claims: what members say that they own, before the rebalance.
        generation: of each member, in which it owned that; -1: it says none.
        assignor: of each group a number of ``KAFKAS``.
        racks_before_moves: see ``Settings``.

    Returns:
        the owner of each partition; is_moving is there for the sticky assignors only.
    """
    owner = np.full(int(batch.first_slot[-1]), -1)
    is_moving = np.zeros(len(owner), bool)
    existing = claims.where((claims.slot >= 0) & (claims.member >= 0))
    # Sticky groups of other clients get the optimum, as Java's do.
    is_followed = needs_model(batch, assignor) & (assignor < STICKY)
    by_racks = racks_matter(batch, assignor)
    is_sticky = assignor >= STICKY

    def assign_part(groups: Flags, rule: Callable[[Batch, Claims, Longs], BatchAssignment]) -> None:
        if not groups.any():
            return
        if groups.all():
            part = rule(batch, existing, generation)
            owner[:], is_moving[:] = part.owner, part.is_moving
            return
        subset, members, slots = batch.part(groups)
        partial_answer = rule(
            subset, part_of(existing, groups, members, slots), generation[members]
        )
        owner[slots], is_moving[slots] = members[partial_answer.owner], partial_answer.is_moving

    assign_part(~is_followed & (assignor == RANGE), _without_claims(range_owners))
    assign_part(~is_followed & (assignor == ROUNDROBIN), _without_claims(roundrobin_owners))
    assign_part(~by_racks & is_sticky & batch.is_alike, assign_equal)
    assign_part(~by_racks & is_sticky & ~batch.is_alike, assign_differing)
    with_racks = partial(assign_with_racks, racks_before_moves=racks_before_moves)
    assign_part(by_racks & is_sticky & ~batch.is_alike, with_racks)
    one_by_one = is_followed | by_racks & is_sticky & batch.is_alike
    if one_by_one.any():
        _follow(batch, existing, generation, assignor, one_by_one, owner, is_moving)
    return BatchAssignment(owner, is_moving)


def part_of(claims: Claims, groups: Flags, members: Longs, slots: Longs) -> Claims:
    """Return some groups' claims, numbered as in ``Batch.part``; each must have a member."""
    kept = claims.where(groups[claims.group])
    slot = np.searchsorted(slots, kept.slot)
    return Claims(
        np.searchsorted(members, kept.member),
        kept.name,
        (np.cumsum(groups) - 1)[kept.group],
        kept.topic,
        kept.partition,
        np.where(kept.slot >= 0, slot, -1),
    )


def _without_claims(
    owners: Callable[[Batch], Longs],
) -> Callable[[Batch, Claims, Longs], BatchAssignment]:
    def rule(batch: Batch, claims: Claims, generation: Longs) -> BatchAssignment:
        owner = owners(batch)
        return BatchAssignment(owner, np.zeros(len(owner), bool))

    return rule


def needs_model(batch: Batch, assignor: Longs) -> Flags:
    """Return for each group whether the model of its client has to go through it one by one.

    These are groups in which racks matter, and those of other clients than Java's but where that
    client's `range` or `roundrobin` is Java's rule over members in an order of its own.
    """
    by_racks = racks_matter(batch, assignor)
    if not batch.client.any():
        return by_racks

    def is_led_by(*clients: str) -> Flags:
        return np.isin(batch.leading_client, [*map(CLIENTS.index, clients)])

    is_roundrobin, is_sticky = assignor == ROUNDROBIN, assignor >= STICKY
    has_static = _has_members(batch, batch.instance > 0)
    is_mixed = has_static & _has_members(batch, batch.instance == 0)
    has_own_rule = (
        (batch.leading_client == SEVERAL)
        | is_led_by(KAFKA_GO, KAFKAJS)
        | _has_members(batch, batch.client_number == CLIENTS.index(KAFKA_GO))
        | is_led_by(SARAMA) & (is_roundrobin | _misses_topics(batch))
        | is_led_by(KAFKA_PYTHON) & (is_mixed | is_roundrobin & ~batch.is_alike)
        | is_led_by(LIBRDKAFKA) & (has_static | _has_members(batch, batch.rack > 0))
        | is_sticky & ~is_led_by(JAVA)
    )
    model: Flags = by_racks & is_led_by(*LOOKS_AT_RACKS) | has_own_rule
    return model


def _has_members(batch: Batch, members: Flags) -> Flags:
    """Return for each group whether some of its members are among these."""
    has_some = np.zeros(batch.group_count, bool)
    has_some[batch.member_group[members]] = True
    return has_some


def missing_topics(batch: Batch) -> Longs:
    """Return the topics that members list and that do not exist: keys of group and name."""
    list_group = np.zeros(len(batch.list_start) - 1, np.int64)
    list_group[batch.subscription] = batch.member_group
    pairs = key(np.repeat(list_group, np.diff(batch.list_start)), batch.list_topics)
    return np.setdiff1d(pairs, key(batch.topic_group, batch.topic_name))


def _misses_topics(batch: Batch) -> Flags:
    """Return for each group whether members list a topic that does not exist."""
    misses = np.zeros(batch.group_count, bool)
    misses[missing_topics(batch) >> 32] = True
    return misses


def racks_matter(batch: Batch, assignor: Longs) -> Flags:
    """Return for each group whether its assignor looks at racks and racks can change its answer.

    `range` asks by topic, the sticky assignors for the group as a whole
    (``AbstractPartitionAssignor.useRackAwareAssignment``): they look at racks where some member's
    is among the replicas' and not every partition has a replica in each of those. The optimum
    looks at them where some partition has replicas, but not in every member's rack.
    """
    racks, count = batch.racks, batch.group_count
    if racks is None:
        return np.zeros(count, bool)
    members = reduce_or(racks.member, batch.member_group, count)
    if not racks.fits:
        may_matter: Flags = (members > 0) & (assignor != ROUNDROBIN)
        return may_matter
    of_topic = reduce_or(racks.slot, batch.slot_topic, len(batch.size))
    differs = ~all_equal(racks.slot, batch.slot_topic, of_topic)
    by_topic = np.zeros(count, bool)
    by_topic[batch.topic_group[differs & (of_topic & members[batch.topic_group] > 0)]] = True
    of_group = reduce_or(of_topic, batch.topic_group, count)
    by_group = ~all_equal(racks.slot, batch.slot_group, of_group) & (of_group & members > 0)
    mismatches = np.zeros(count, bool)
    elsewhere = (racks.slot > 0) & (members[batch.slot_group] & ~racks.slot > 0)
    mismatches[batch.slot_group[elsewhere]] = True
    by_sticky = np.where(batch.is_alike, by_group, mismatches)
    of_range, of_sticky = assignor == RANGE, assignor >= STICKY
    matter: Flags = (of_range & by_topic) | (of_sticky & by_sticky)
    return matter


def _follow(
    batch: Batch,
    claims: Claims,
    generation: Longs,
    assignor: Longs,
    groups: Flags,
    owner: Longs,
    is_moving: Flags,
) -> None:
    """Follow one by one the groups whose rules are sequential: by racks, and of other clients."""
    states = States(batch, claims, generation)
    for group in np.flatnonzero(groups).tolist():
        if assignor[group] < STICKY:
            outcome = predict_group(states.of(group, KAFKAS[assignor[group]]))
        else:
            outcome = follow_constrained(states.of(group, KAFKAS[STICKY]))
        members, slots = states.members(group), states.slots(group, outcome)
        for place, partitions in enumerate(outcome.assigned):
            owner[slots[partitions]] = members[place]
        for partition, place in outcome.withheld.items():
            owner[slots[partition]] = members[place]
            is_moving[slots[partition]] = True
