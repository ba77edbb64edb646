"""The groups of a task as the weighted kernels take them, with their names for the sentences."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from kassign_spark.assignors.weighted.problem import Doubles, Group, Longs, scale_weights, sums_of
from kassign_spark.assignors.weighted.sentences import Names
from kassign_spark.groups.batch import Batch
from kassign_spark.groups.claims import resolve
from kassign_spark.groups.read import CLAIM, read_kinds
from kassign_spark.plans.weight_rows import CAPACITY, WEIGHT

_MOST_NAMED = 5
"""Number of partitions without weight that a message names."""


class WeightedGroup(NamedTuple):
    """One group: what the kernels take, and how its items are its partitions.

    Attributes:
        number: of the group in its batch.
        group: None where no member subscribes to anything that exists.
        item_slot: partitions of the batch, item by item; those bundled follow each other.
        item_of: of each of them the item.
        members: of the batch.
        class_topics: of each class its topics, by name.
        problem: why it cannot be planned; empty: it can.
    """

    number: int
    group: Group | None
    item_slot: Longs
    item_of: Longs
    members: Longs
    class_topics: list[list[str]]
    problem: str


class WeightOptions(NamedTuple):
    """The caller's options for weights.

    Attributes:
        by_weight: whether a move costs its weight or move_cost, or else 1.
        missing: the weight of partitions that have none; None: an error.
        base: added to every partition.
        together: from topic to bundle.
    """

    by_weight: bool
    missing: float | None
    base: float
    together: Mapping[str, str]


def read_groups(table: pa.Table, options: WeightOptions) -> tuple[Batch, list[WeightedGroup]]:
    """Read the rows of whole groups, as ``weight_rows.fold_weights`` makes them."""
    batch, (claims, sizes, weights), (_, size_rows, weight_rows) = read_kinds(
        table, (CLAIM, CAPACITY, WEIGHT)
    )
    value, cost = table["value"].to_numpy(), table["cost"].to_numpy()
    place = table["place"].to_numpy()

    capacity = np.ones(len(batch.member_group))
    in_group = sizes.member >= 0
    capacity[sizes.member[in_group]] = value[size_rows][in_group]
    slots = int(batch.first_slot[-1])
    weight, move_cost = np.full(slots, np.nan), np.full(slots, np.nan)
    for own in (0, 1):  # a row of the group alone comes last, and wins
        has_weight = (weights.slot >= 0) & (place[weight_rows] == own)
        weight[weights.slot[has_weight]] = value[weight_rows][has_weight]
        move_cost[weights.slot[has_weight]] = cost[weight_rows][has_weight]

    home = np.full(slots, -1)
    owned = claims.where((claims.slot >= 0) & (claims.member >= 0))
    owned = owned.where(batch.subscribes(owned.member, owned.topic))
    prevails, _ = resolve(owned.slot, batch.hash_rank[owned.member], batch.generation[owned.member])
    home[owned.slot[prevails]] = owned.member[prevails]
    return batch, [
        _read(batch, number, weight, move_cost, home, capacity, options)
        for number in range(batch.group_count)
    ]


def _read(
    batch: Batch,
    number: int,
    weight: Doubles,
    move_cost: Doubles,
    home: Longs,
    capacity: Doubles,
    options: WeightOptions,
) -> WeightedGroup:
    first, last = batch.first_topic[number : number + 2].tolist()
    slot = np.arange(batch.first_slot[first], batch.first_slot[last])
    members = np.arange(*batch.first_member[number : number + 2].tolist())
    if not len(slot):
        return WeightedGroup(number, None, slot, slot, members, [], "")
    topics = batch.topic_names.take(pa.array(batch.topic_name[first:last] - 1)).to_pylist()
    eligible = _eligible_members(batch, members, first, last)
    item_of, bundles = _items(batch, slot, topics, first, options.together)
    own, cost, problem = _weights(batch, slot, weight[slot], move_cost[slot], options, topics)
    of_topic = batch.slot_topic[slot] - first
    items = int(item_of.max()) + 1
    takes, of_item = eligible, of_topic
    if bundles:
        # Who may take an item: whoever may take all of it.
        takes, of_item = np.ones((items, len(members)), bool), np.arange(items)
        np.logical_and.at(takes, item_of, eligible[of_topic])
        nobody = np.flatnonzero(~takes.any(axis=1))
        if len(nobody) and not problem:
            entity = options.together.get(topics[of_topic[np.argmax(item_of == nobody[0])]])
            problem = f"together: no member subscribes to all topics of {entity!r}"
    different, class_ = np.unique(takes, axis=0, return_inverse=True)
    class_ = class_.reshape(-1)[of_item]
    item_weight = sums_of(item_of, own, items)
    item_home, item_cost = _owners(item_of, items, home[slot], own, cost, members)
    whole, power = scale_weights(item_weight)
    order = np.argsort(-whole, kind="stable")
    takes_home = different[class_, np.maximum(item_home, 0)] & (item_home >= 0)
    group = Group(
        whole[order],
        class_[order],
        np.where(takes_home, item_home, -1)[order],
        item_cost[order],
        different,
        capacity[members],
        power,
    )
    item_of = np.argsort(order)[item_of]
    by_item = np.argsort(item_of, kind="stable")
    class_topics = [
        sorted({topics[t] for t in np.unique(of_topic[class_[order[item_of]] == k])})
        for k in range(len(different))
    ]
    return WeightedGroup(
        number, group, slot[by_item], item_of[by_item], members, class_topics, problem
    )


def _eligible_members(batch: Batch, members: Longs, first: int, last: int) -> np.ndarray:
    """Return [topic, member]: who subscribes to what."""
    sets, of_member = np.unique(batch.member_set[members], return_inverse=True)
    by_set = np.zeros((last - first, len(sets)), bool)
    for column, subscription in enumerate(sets.tolist()):
        topics = batch.set_topic[batch.set_start[subscription] : batch.set_start[subscription + 1]]
        by_set[topics - first, column] = True
    return by_set.take(of_member, axis=1)


def _items(
    batch: Batch, slot: Longs, topics: list[str], first_topic: int, together: Mapping[str, str]
) -> tuple[Longs, bool]:
    """Return the item of each partition: partition p of all topics in a bundle is one item."""
    bundled = {t: together[name] for t, name in enumerate(topics) if name in together}
    if len(set(bundled.values())) == len(bundled):
        return np.arange(len(slot)), False
    number = {name: number for number, name in enumerate(sorted(set(bundled.values())))}
    code = np.array(
        [number[bundled[t]] if t in bundled else len(number) + t for t in range(len(topics))]
    )
    of_topic = code[batch.slot_topic[slot] - first_topic]
    pair = of_topic << 32 | batch.slot_partition[slot]
    _, first, item = np.unique(pair, return_index=True, return_inverse=True)
    # Numbered by their first partition, so that ties between items go by name.
    return np.argsort(np.argsort(first))[item.reshape(-1)], True


def _weights(
    batch: Batch,
    slot: Longs,
    weight: Doubles,
    move_cost: Doubles,
    options: WeightOptions,
    topics: list[str],
) -> tuple[Doubles, Doubles, str]:
    """Return weights, costs of moves, and the problem: only some partitions have weights."""
    missing = np.flatnonzero(np.isnan(weight))
    if len(missing) == len(weight):
        return np.zeros(len(weight)), np.ones(len(weight)), ""
    problem = ""
    if len(missing) and options.missing is None:
        first = batch.slot_topic[slot[0]]
        shown = [
            f"{topics[batch.slot_topic[slot[i]] - first]}-{batch.slot_partition[slot[i]]}"
            for i in missing[:_MOST_NAMED].tolist()
        ]
        more = f" and {len(missing) - _MOST_NAMED} more" if len(missing) > _MOST_NAMED else ""
        problem = (
            f"table weights has no row for {len(missing)} partitions that it reads: "
            f"{', '.join(shown)}{more}; give them weights, or missing_weight"
        )
    weight = np.where(np.isnan(weight), options.missing or 0.0, weight) + options.base
    cost = np.where(np.isnan(move_cost), weight, move_cost)
    return weight, cost if options.by_weight else np.ones(len(weight)), problem


def _owners(
    item_of: Longs, items: int, home: Longs, weight: Doubles, cost: Doubles, members: Longs
) -> tuple[Longs, Doubles]:
    """Return each item's cost and the owner of most of its weight, by name if equal."""
    if items == len(item_of):
        order = np.argsort(item_of, kind="stable")
        return np.where(home >= 0, home - members[0], -1)[order], cost[order]
    owner = np.full(items, -1)
    owned = np.flatnonzero(home >= 0)
    pair = item_of[owned] * len(members) + home[owned] - members[0]
    pairs, pair_of_item = np.unique(pair, return_inverse=True)
    owned_weight = np.bincount(pair_of_item, weight[owned], len(pairs))
    order = np.lexsort((pairs, -owned_weight, pairs // len(members)))
    item = pairs[order] // len(members)
    first = np.flatnonzero(np.diff(item, prepend=-1))
    owner[item[first]] = pairs[order][first] % len(members)
    return owner, sums_of(item_of, cost, items)


def names_of(batch: Batch, read: WeightedGroup) -> Names:
    """Return the names behind the numbers of an answer for the group."""
    group = read.group
    assert group is not None

    def partition(item: int) -> str:
        return " + ".join(
            f"{batch.topic_names[int(batch.topic_name[batch.slot_topic[s]]) - 1].as_py()}"
            f"-{batch.slot_partition[s]}"
            for s in read.item_slot[read.item_of == item].tolist()
        )

    def weight(classes: Sequence[int]) -> float:
        return float(group.weight[np.isin(group.class_, list(classes))].sum()) / group.power

    return Names(
        partition,
        lambda m: str(batch.member_names[int(batch.member_name[read.members[m]]) - 1].as_py()),
        lambda classes: sorted({name for k in classes for name in read.class_topics[k]}),
        lambda p: float(group.weight[p]) / group.power,
        lambda some: float(sum(group.capacity[list(some)].tolist())),
        weight,
    )
