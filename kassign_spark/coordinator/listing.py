"""In which order the coordinator has the lists of a target that it has just computed.

The assignor's own sets are written to a record as they iterate, and read back into sets of other
sizes. The order decides which partitions a member gives up next (``uniform_homogeneous``).
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from kassign_spark.client.hash_order import (
    bucket_keys,
    copied_set_capacities,
    copied_set_order,
    java_hash,
    map_capacities,
    powers_of_two,
)
from kassign_spark.coordinator.next_target import TargetOutcome
from kassign_spark.coordinator.orders import Ints, inverse, topic_id_hash
from kassign_spark.coordinator.target_state import ConsumerGroupState


class MemberList(NamedTuple):
    """A member's new target.

    Attributes:
        topics: positions in the state's topics.
        partitions: numbers.
        is_ordered: whether the order is known to be the coordinator's.
        is_unchanged: it has what it had, and the record stays as it was.
    """

    topics: Ints
    partitions: Ints
    is_ordered: bool
    is_unchanged: bool


def list_targets(
    state: ConsumerGroupState, outcome: TargetOutcome, keys: Sequence[str]
) -> list[MemberList]:
    """Order each member's part of a target of ``state`` as the coordinator lists it.

    ``keys`` are the ids of the state's topics, or what stands in for them.
    """
    starts, count = outcome.layout.starts, len(state.topics)
    new = np.flatnonzero(outcome.owner >= 0)
    topic = np.repeat(np.arange(count), np.diff(starts))[new]
    number, member = new - starts[topic], outcome.owner[new]
    before = np.full(len(outcome.owner), -1)
    place = np.zeros(len(outcome.owner), np.int64)
    old = starts[state.target_topics] + state.target_partitions
    inside = state.target_partitions < np.diff(starts)[state.target_topics]
    before[old[inside]] = state.target_members[inside]
    positions = state.target_positions if len(state.target_positions) else np.arange(len(old))
    place[old[inside]] = positions[inside]
    is_range = outcome.assignor == "range"
    is_same = before[new] == member
    # One that was taken out and came back is as new.
    is_kept = is_same if is_range else is_same & (outcome.dealt[new] == 0)
    # Kept ones stand where they stood, in front of what was added to the same sets.
    inserted = np.where(is_kept, place[new], len(outcome.owner) + outcome.dealt[new])

    pair = member * count + topic
    entries, of_entry, sizes = np.unique(pair, return_inverse=True, return_counts=True)
    old_pairs, old_sizes = np.unique(
        state.target_members * count + state.target_topics, return_counts=True
    )
    had = np.zeros(len(entries), np.int64)
    _, both, in_old = np.intersect1d(entries, old_pairs, assume_unique=True, return_indices=True)
    had[both] = old_sizes[in_old]
    of_kept = np.zeros(len(entries), bool)
    of_kept[of_entry[is_kept]] = True
    # A set that is copied is made for what it held; then it grows as any other.
    made_for = np.where(
        of_kept, copied_set_capacities(had), _new_set_sizes(outcome)[entries % count]
    )
    most = sizes.copy()
    for (place_of_member, of_topic), numbers in outcome.peaks.sets.items():
        row = np.searchsorted(entries, place_of_member * count + of_topic)
        most[row] = max(most[row], numbers)
    capacity = np.maximum(made_for, powers_of_two((4 * most + 2) // 3, least=1))
    if is_range:  # its sets are ranges: ascending, whatever was there before
        inserted, capacity = new, np.full(len(entries), 1 << 31)
    by_entry_bucket = (number & (capacity[of_entry] - 1), of_entry)
    record = inverse(np.lexsort((inserted, *by_entry_bucket)))
    final = number & (copied_set_capacities(sizes)[of_entry] - 1)

    entry_member, entry_topic = entries // count, entries % count
    first = np.full(len(entries), np.iinfo(np.int64).max)
    np.minimum.at(first, of_entry, inserted)
    if is_range:
        first, name_counts = _places_in_sets(state, outcome, entry_member, entry_topic)
    else:
        # HashMap.computeIfAbsent puts a key before those that its bucket has, put behind them.
        first = np.where(of_kept, first, -first)
    codes = np.array([topic_id_hash(key) for key in keys], np.int64)[entry_topic]
    members = len(state.member_ids)
    topics_had = np.bincount(old_pairs // count, minlength=members)
    topics_has = np.bincount(entry_member, minlength=members)
    most_topics = topics_has.copy()
    for m, topics in outcome.peaks.maps.items():
        most_topics[m] = max(most_topics[m], topics)
    # HashMap.computeIfAbsent looks for room before it adds, so it grows one later than put.
    table = powers_of_two((4 * np.maximum(topics_had, most_topics - 1) + 2) // 3, least=1)
    if is_range:  # its maps are new, and made for all names of a member, also of missing topics
        table = powers_of_two(4 * (name_counts + 1) // 3, least=1)
    in_map = bucket_keys(codes, table[entry_member])
    entry_record = inverse(np.lexsort((first, in_map, entry_member)))
    in_read = bucket_keys(codes, map_capacities(topics_has)[entry_member])
    entry_final = inverse(np.lexsort((entry_record, in_read, entry_member)))

    order = np.lexsort((record, final, entry_final[of_entry]))
    # Entries are ranked by member first, so all of a member stand together.
    ends = np.searchsorted(member[order], np.arange(members + 1))
    had_all = np.bincount(state.target_members, minlength=members)
    has_all = np.diff(ends)
    kept = np.bincount(member[is_same], minlength=members)
    is_ordered = len(state.target_positions) == len(old)
    lists = []
    for m in range(members):
        rows = order[ends[m] : ends[m + 1]]
        unchanged = bool(kept[m] == had_all[m] == has_all[m])
        is_known = is_ordered or not had_all[m]
        lists.append(MemberList(topic[rows], number[rows], is_known, unchanged))
    return lists


def _places_in_sets(
    state: ConsumerGroupState, outcome: TargetOutcome, members: Ints, topics: Ints
) -> tuple[Ints, Ints]:
    """Return the topic's place in the member's own set of names, and the sizes of the sets."""
    place: dict[tuple[int, int], int] = {}
    sizes = np.zeros(len(state.member_ids), np.int64)
    orders: dict[tuple[tuple[str, ...], str | None], list[str]] = {}
    for member in np.unique(members).tolist():
        regex = state.regexes[member] if state.regexes else None
        kind = tuple(state.subscriptions[member]), regex
        if kind not in orders:
            regex_topics = state.resolved.get(regex, ()) if regex else ()
            orders[kind] = _union_order(state.subscriptions[member], sorted(regex_topics))
        sizes[member] = len(orders[kind])
        rank = {name: i for i, name in enumerate(orders[kind])}
        for topic in outcome.layout.subscribed[member]:
            place[member, int(topic)] = rank[state.topics[topic]]
    pairs = zip(members.tolist(), topics.tolist(), strict=True)
    return np.array([place[pair] for pair in pairs], np.int64), sizes


def _union_order(names: Sequence[str], topics: Sequence[str]) -> list[str]:
    """Order names and what a regex finds as ``UnionSet``: the larger set, then the other's rest."""
    sets = [_set_order(list(dict.fromkeys(names))), _set_order(list(dict.fromkeys(topics)))]
    large, small = sets if len(sets[0]) > len(sets[1]) else sets[::-1]
    return list(dict.fromkeys([*large, *small]))


def _set_order(names: Sequence[str]) -> list[str]:
    by_hash = copied_set_order([java_hash(name) for name in names], len(names))
    return [names[i] for i in by_hash.order]


def _new_set_sizes(outcome: TargetOutcome) -> Ints:
    """Return the table sizes of the sets that `uniform` makes anew for each topic."""
    layout = outcome.layout
    partitions = np.diff(layout.starts)
    if layout.is_homogeneous:
        return np.full(len(partitions), 16)
    # Made for as many as a subscriber of the topic can expect.
    every = np.concatenate([np.zeros(0, np.int64), *layout.subscribed])
    subscribers = np.maximum(np.bincount(every, minlength=len(partitions)), 1)
    return powers_of_two(4 * -(-partitions // subscribers) // 3 + 1, least=1)
