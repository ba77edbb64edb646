"""The coordinator's `uniform` where all members subscribe alike."""

import numpy as np
from numpy.typing import NDArray

from kassign_spark.client.hash_order import (
    bucket_keys,
    copied_set_capacities,
    copied_set_order,
    java_hash,
    map_capacities,
)
from kassign_spark.coordinator.orders import Ints, inverse, topic_id_hash
from kassign_spark.coordinator.target_state import NOBODY, ConsumerGroupState, Layout


def assign_equal(
    state: ConsumerGroupState, layout: Layout, topic_ids: list[str], order: list[int]
) -> tuple[Ints, Ints, list[str]]:
    """Return the owner of every partition by ``UniformHomogeneousAssignmentBuilder``.

    Every member gets floor(P / n) partitions or one more; who has them keeps them up to that, open
    ones are dealt in blocks. Of every topic there is an id, drawn where not known; ``order`` has
    the positions of the members as the assignor goes through them.

    Returns:
        for each partition a position in ``member_ids``, or ``NOBODY``; its place among those that
        were dealt, 0 for the others; and why the assignor may answer something else.
    """
    owner = np.full(int(layout.starts[-1]), NOBODY, dtype=np.int64)
    dealt = np.zeros_like(owner)
    if not order or not len(layout.subscribed[order[0]]):
        return owner, dealt, []
    topics, is_reproduced = _topic_order(state, layout, topic_ids, order[0])
    members, partitions, has_ties = _old_target(state, layout, topic_ids, order)
    owned_counts = np.bincount(members, minlength=len(order))
    kept, open_quota = _quotas(
        int((layout.starts[topics + 1] - layout.starts[topics]).sum()), owned_counts[order]
    )
    starts = np.concatenate(([0], np.cumsum(owned_counts[order])))[:-1]
    place = np.arange(len(members)) - np.repeat(starts, owned_counts[order])
    is_kept = place < np.repeat(kept, owned_counts[order])
    owner[partitions[is_kept]] = members[is_kept]
    is_assigned = np.zeros(len(owner), dtype=bool)
    is_assigned[partitions] = True
    every = np.concatenate(
        [np.arange(layout.starts[topic], layout.starts[topic + 1]) for topic in topics]
    )
    pool = np.concatenate((every[~is_assigned[every]], partitions[~is_kept]))
    owner[pool] = np.repeat(np.array(order, dtype=np.int64), open_quota)
    dealt[pool] = np.arange(len(pool))
    tree = "the hashes of many topics fall together in a Java set of topics"
    doubts = [] if is_reproduced else [tree]
    gave_up = np.unique(members[~is_kept])
    tied = gave_up[has_ties[gave_up]]
    if len(tied) and not len(state.target_positions):
        doubts.append(
            f"member {state.member_ids[tied[0]]} gives up some of its last target, and which ones "
            "depends on the order of its list (target.position)"
        )
    return owner, dealt, doubts


def _quotas(partitions: int, owned_counts: Ints) -> tuple[Ints, Ints]:
    """Return how many each member keeps and how many more it gets, members in their order."""
    count = len(owned_counts)
    least, extras = divmod(partitions, count)
    kept, open_quota = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.int64)
    for i, has in enumerate(owned_counts.tolist()):
        quota = least + (extras > 0)
        keeps = min(has, quota)
        if extras > 0:
            # An extra goes to who has it, or else to the last members.
            if keeps < quota and count - i > extras:
                quota -= 1
            else:
                extras -= 1
        kept[i], open_quota[i] = keeps, quota - keeps
    return kept, open_quota


def _topic_order(
    state: ConsumerGroupState, layout: Layout, topic_ids: list[str], first: int
) -> tuple[Ints, bool]:
    """Order the subscribed topics: a set of ids filled from the set of the first one's names."""
    names = list(dict.fromkeys(state.subscriptions[first]))
    regex = state.regexes[first] if state.regexes else None
    if regex:
        names = sorted(set(names).union(state.resolved.get(regex, ())))
    by_name = copied_set_order([java_hash(name) for name in names], len(names))
    index = {state.topics[topic]: int(topic) for topic in layout.subscribed[first]}
    topics = [index[names[i]] for i in by_name.order if names[i] in index]
    by_id = copied_set_order([topic_id_hash(topic_ids[topic]) for topic in topics], len(names))
    order = np.array([topics[i] for i in by_id.order], dtype=np.int64)
    return order, by_id.is_reproduced and by_name.is_reproduced


def _old_target(
    state: ConsumerGroupState, layout: Layout, topic_ids: list[str], order: list[int]
) -> tuple[Ints, Ints, NDArray[np.bool_]]:
    """Sort the last target by member, bucket of the topic's id, bucket of the number.

    Returns:
        positions of the members, ids of their partitions, and of each member whether the order
        inside its list decided between two partitions.
    """
    members, topics, numbers = state.target_members, state.target_topics, state.target_partitions
    has_ties = np.zeros(len(order), dtype=bool)
    if not len(members):
        return members, numbers, has_ties
    rank = inverse(order)
    positions = state.target_positions if len(state.target_positions) else numbers
    codes = np.zeros(len(state.topics), dtype=np.int64)
    used = np.unique(topics)
    codes[used] = [topic_id_hash(topic_ids[topic]) for topic in used]
    # One entry per member and topic: as the coordinator's record has them.
    pair = members * len(state.topics) + topics
    entries, entry_of, sizes = np.unique(pair, return_inverse=True, return_counts=True)
    first = np.full(len(entries), np.iinfo(np.int64).max)
    np.minimum.at(first, entry_of, positions)
    entry_member, entry_topic = entries // len(state.topics), entries % len(state.topics)
    counts = np.bincount(entry_member, minlength=len(order))
    topic_bucket = bucket_keys(codes[entry_topic], map_capacities(counts)[entry_member])
    by_entry = np.lexsort((first, topic_bucket, rank[entry_member]))
    entry_rank = inverse(by_entry)
    number_bucket = bucket_keys(numbers, copied_set_capacities(sizes)[entry_of])
    sorted_rows = np.lexsort((positions, number_bucket, entry_rank[entry_of]))
    same_topic = np.diff(topic_bucket[by_entry]) == 0
    same_topic &= np.diff(entry_member[by_entry]) == 0
    has_ties[entry_member[by_entry][1:][same_topic]] = True
    e, b = entry_rank[entry_of][sorted_rows], number_bucket[sorted_rows]
    has_ties[members[sorted_rows][1:][(np.diff(e) == 0) & (np.diff(b) == 0)]] = True
    is_subscribed = np.zeros(len(state.topics), dtype=bool)
    is_subscribed[layout.subscribed[order[0]]] = True
    sorted_rows = sorted_rows[is_subscribed[topics[sorted_rows]]]
    partitions = layout.starts[topics[sorted_rows]] + numbers[sorted_rows]
    return members[sorted_rows], partitions, has_ties
