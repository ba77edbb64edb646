"""The general pass inside a task: differing subscriptions, and the optimal answer.

Topics with the same subscribers are one class: whoever may take one may take all. The best balance
and the fewest moves are found on counts of classes (``engine``); partitions get their names
once, at the end, by the rules of ``general_naming``.
"""

from typing import NamedTuple

import numpy as np

from kassign_spark.coordinator.orders import inverse
from kassign_spark.engine.costs import MOVE, rack_costs
from kassign_spark.engine.task import settle
from kassign_spark.groups.batch import Batch, BatchAssignment, Claims
from kassign_spark.groups.claims import resolve
from kassign_spark.groups.numbers import (
    Longs,
    find,
    key,
    place_in_run,
    ranges,
    rows_by,
    same_lists,
    starts,
)


class Classes(NamedTuple):
    """Topic classes of many groups, and who may take them.

    Attributes:
        of_topic: the class of each topic. Classes are sorted by group and their first topic, in
            Spark's order of names.
        number: of each class its place in its group.
        of_edge: class of each edge; edges are sorted by class and place.
        place: of each edge its member, as a place in ``Batch.by_rank``.
    """

    of_topic: Longs
    number: Longs
    of_edge: Longs
    place: Longs


def topic_classes(batch: Batch) -> Classes:
    """Fold the topics of each group by who subscribes to them."""
    sets = np.unique(batch.member_set)
    counts = np.diff(batch.set_start)[sets]
    topic = batch.set_topic[ranges(batch.set_start[sets], counts)]
    by_name = rows_by(batch.topic_group, batch.topic_order[batch.topic_name - 1])
    topic_place = inverse(by_name)
    subscribing = np.repeat(sets, counts)
    subscribing = subscribing[rows_by(topic_place[topic], subscribing)]
    set_count = np.bincount(topic_place[topic], minlength=len(by_name))
    sample, class_by_name = same_lists(batch.topic_group[by_name], set_count, subscribing)

    # A class has the sets of any of its topics, and their members.
    first, count = starts(set_count)[sample], set_count[sample]
    class_of_set = np.repeat(np.arange(len(sample)), count)
    sets_of_class = subscribing[ranges(first, count)]
    set_of_place = batch.member_set[batch.by_rank]
    places = np.argsort(set_of_place, kind="stable")
    first_place = starts(np.bincount(set_of_place, minlength=len(batch.set_start) - 1))
    counts = np.diff(first_place)[sets_of_class]
    edge_class = np.repeat(class_of_set, counts)
    edge_place = places[ranges(first_place[:-1][sets_of_class], counts)]
    order = rows_by(edge_class, edge_place)
    number = place_in_run(batch.topic_group[by_name[sample]])
    return Classes(class_by_name[topic_place], number, edge_class[order], edge_place[order])


def assign_differing(batch: Batch, claims: Claims, generation: Longs) -> BatchAssignment:
    """Assign all partitions: balance best, then moves fewest, then by names.

    Claims are on partitions that exist; ``generation`` is of each member, in which it owned those.
    """
    classes = topic_classes(batch)
    of_slot = SlotClasses(classes.of_topic[batch.slot_topic], *classes[1:], None)
    return _assign(batch, claims, generation, of_slot, MOVE)


def assign_with_racks(
    batch: Batch, claims: Claims, generation: Longs, *, racks_before_moves: bool
) -> BatchAssignment:
    """Assign all partitions: balance best, then moves fewest, then cross-rack partitions fewest.

    With ``racks_before_moves`` these count before moves; otherwise as ``assign_differing``.
    """
    crossing, move = rack_costs(racks_before_moves)
    classes = rack_classes(batch, topic_classes(batch), crossing)
    return _assign(batch, claims, generation, classes, move)


class SlotClasses(NamedTuple):
    """Classes of partitions: as in ``Classes``, but where racks count, finer than by topics.

    Attributes:
        of_slot: the class of each partition.
        number: of each class its place in its group.
        of_edge: class of each edge; edges are sorted by class and place.
        place: of each edge its member, as a place in ``Batch.by_rank``.
        surcharge: what a partition costs there, moved or not; None: nothing.
    """

    of_slot: Longs
    number: Longs
    of_edge: Longs
    place: Longs
    surcharge: Longs | None


def rack_classes(batch: Batch, classes: Classes, crossing: int) -> SlotClasses:
    """Split the partitions of a class by the racks of their replicas that its subscribers have.

    A partition with unknown racks is never cross-rack, nor is any partition to a member without a
    rack. ``crossing`` is what a partition costs where no replica is in the member's rack.
    """
    racks = batch.racks
    assert racks is not None
    of_slot = classes.of_topic[batch.slot_topic]
    code = racks.member_code[batch.by_rank[classes.place]]
    # Racks of each class's subscribers.
    keys = np.unique(key(classes.of_edge, code)[code > 0])
    count = np.diff(racks.slot_start)
    pairs = np.unique(key(np.repeat(np.arange(len(count)), count), racks.slot_code))
    pairs = pairs[find(keys, key(of_slot[pairs >> 32], pairs & 0xFFFF_FFFF)) >= 0]
    unknown = np.flatnonzero(count == 0)
    first, end = (np.searchsorted(keys, of_slot[unknown] + more << 32) for more in (0, 1))
    everywhere = keys[ranges(first, end - first)] & 0xFFFF_FFFF
    pairs = np.sort(np.append(pairs, key(np.repeat(unknown, end - first), everywhere)))
    slot, matched = pairs >> 32, pairs & 0xFFFF_FFFF
    sample, kind = same_lists(of_slot, np.bincount(slot, minlength=len(of_slot)), matched)

    number = place_in_run(batch.slot_group[sample])
    class_count = np.bincount(classes.of_edge)[of_slot[sample]]
    rows = ranges(np.searchsorted(classes.of_edge, of_slot[sample]), class_count)
    of_edge, code = np.repeat(np.arange(len(sample)), class_count), code[rows]
    is_cross = (code > 0) & (find(np.unique(key(kind[slot], matched)), key(of_edge, code)) < 0)
    return SlotClasses(kind, number, of_edge, classes.place[rows], is_cross * crossing)


def _assign(
    batch: Batch, claims: Claims, generation: Longs, classes: SlotClasses, move: int
) -> BatchAssignment:
    slot_count = int(batch.first_slot[-1])
    prevails, _ = resolve(claims.slot, batch.hash_rank[claims.member], generation[claims.member])
    place = inverse(batch.by_rank)
    edge = find(
        key(classes.of_edge, classes.place), key(classes.of_slot[claims.slot], place[claims.member])
    )
    may_stay = prevails & (edge >= 0)
    edge, slot = edge[may_stay], claims.slot[may_stay]
    owned = np.bincount(edge, minlength=len(classes.place)).astype(np.int64)
    supply = np.bincount(classes.of_slot, minlength=len(classes.number))
    assigned = settle(
        classes.of_edge,
        classes.place,
        owned,
        supply,
        classes.number,
        surcharge=classes.surcharge,
        move=move,
    )

    owner = np.full(slot_count, -1)
    name = batch.topic_order[batch.topic_name[batch.slot_topic] - 1]
    kept = kept_claims(edge, batch.slot_partition[slot], name[slot], assigned)
    owner[slot[kept]] = batch.by_rank[classes.place[edge[kept]]]
    free = np.flatnonzero(owner < 0)
    free = free[rows_by(classes.of_slot[free], name[free])]
    owner[free] = batch.by_rank[classes.place[deal_in_turn(classes.of_edge, assigned - owned)]]
    # What a member sent as owned counts here, also where its claim did not prevail.
    moving = np.zeros(slot_count, bool)
    moving[claims.slot] = True
    moving[claims.slot[owner[claims.slot] == claims.member]] = False
    return BatchAssignment(owner, moving)


def kept_claims(edge: Longs, partition: Longs, topic: Longs, assigned: Longs) -> Longs:
    """Return the claims that stay: as many as the edge is assigned, by (partition, topic)."""
    order = rows_by(edge, partition, topic)
    return order[place_in_run(edge[order]) < assigned[edge[order]]]


def deal_in_turn(class_of_edge: Longs, missing: Longs) -> Longs:
    """Hand out the free partitions class by class: one to each edge in turn that lacks any.

    Who lacks most comes first, then the lower member.
    """
    lacks = np.maximum(missing, 0)
    edge = np.repeat(np.arange(len(lacks)), lacks)
    turn = place_in_run(edge)
    return edge[rows_by(class_of_edge[edge], turn, -lacks[edge])]
