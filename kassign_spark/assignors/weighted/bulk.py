"""Bulk steps for large groups: deal, shed, mend, go home; each works on all members at once.

A step changes ``owner`` and ``load`` in place. Partitions are by weight, heaviest first, so that
the partitions of a member, gathered in order, are too.
"""

from typing import NamedTuple

import numpy as np

from kassign_spark.assignors.weighted.problem import Bools, Doubles, Group, Longs
from kassign_spark.groups.numbers import place_in_run, ranges, starts

_MANY_CLASSES = 32
_ONE_BY_ONE = 200_000


class MemberPartitions(NamedTuple):
    """Partitions by member: those of member m are ``partition[start[m] : start[m + 1]]``."""

    partition: Longs
    start: Longs


def group_by_member(owner: Longs, members: int, only: Bools | None = None) -> MemberPartitions:
    """Gather the partitions of each member, or of only some members."""
    if only is None:
        partition = np.flatnonzero(owner >= 0)
    else:
        partition = np.flatnonzero(np.append(only, False)[owner])
    small = np.uint16 if members < 2**16 else np.int64
    holder = owner[partition].astype(small)
    order = np.argsort(holder, kind="stable")  # of 16 bits: by radix
    count = np.bincount(owner[partition], minlength=members)
    return MemberPartitions(partition[order], starts(count))


def count_to_shed(group: Group, load: Doubles, limit: Doubles, owned: MemberPartitions) -> Longs:
    """Return [member]: the least number of partitions that must leave it, if above its limit."""
    over, first, count, sums = _over(group, load, limit, owned)
    least = np.zeros(len(load), np.int64)
    least[over] = _fewest(sums, first, count, (load - limit)[over])
    return least


def shed(
    group: Group, load: Doubles, limit: Doubles, owned: MemberPartitions, *, by_cost: bool
) -> Longs:
    """Choose which partitions members above their limit give away.

    The fewest that remove the excess and, of those, the lightest run of neighbours by weight.
    ``by_cost``: those of the least cost by weight, as few as suffice.
    """
    over, first, size, sums = _over(group, load, limit, owned)
    excess = (load - limit)[over]
    if by_cost:
        return _cheapest(group, excess, owned, first, size)
    count = _fewest(sums, first, size, excess)
    # Sums of runs of this length fall as they start later: the last that suffices is lightest.
    room = size - count
    low, high = np.zeros_like(room), room + 1
    while (low < high).any():
        middle = (low + high) // 2
        begin = first + np.minimum(middle, room)
        is_too_light = sums[begin + count] - sums[begin] < excess
        low = np.where(is_too_light | (low == high), low, middle + 1)
        high = np.where(is_too_light, middle, high)
    begin = first + np.clip(low - 1, 0, room)
    return np.sort(owned.partition[ranges(begin, count)])


def _over(
    group: Group, load: Doubles, limit: Doubles, owned: MemberPartitions
) -> tuple[Longs, Longs, Longs, Doubles]:
    over = np.flatnonzero(load > limit)
    first = owned.start[over]
    sums = np.concatenate([[0.0], np.cumsum(group.weight[owned.partition])])
    return over, first, owned.start[over + 1] - first, sums


def _fewest(sums: Doubles, first: Longs, size: Longs, excess: Doubles) -> Longs:
    """Return for each run of ``sums`` (whole numbers) how many from the first reach the excess."""
    reached: Longs = np.searchsorted(sums, sums[first] + excess) - first
    return np.minimum(reached, size)


def _cheapest(
    group: Group, excess: Doubles, owned: MemberPartitions, first: Longs, count: Longs
) -> Longs:
    run = np.repeat(np.arange(len(first)), count)
    partition = owned.partition[ranges(first, count)]
    weight = group.weight[partition]
    order = np.lexsort((weight, group.cost[partition] / np.maximum(weight, 1e-300), run))
    run, partition, weight = run[order], partition[order], weight[order]
    return np.sort(partition[earlier_in_run(run, weight) < excess[run]])


def earlier_in_run(run: Longs, weight: Doubles) -> Doubles:
    """Return for each row of runs of equal numbers the weight of the earlier rows of its run."""
    before = np.cumsum(weight) - weight
    earlier: Doubles = before - before[np.arange(len(run)) - place_in_run(run)]
    return earlier


def deal(group: Group, owner: Longs, load: Doubles, partitions: Longs, limit: Doubles) -> None:
    """Place partitions in rounds: the i-th heaviest goes to the member with the i-th most room.

    Class after class, the scarcest first, one partition per member and round. What fits nowhere
    goes where it makes the least relative load.
    """
    takers = [np.flatnonzero(row) for row in group.eligible]
    if len(takers) > _MANY_CLASSES and len(partitions) <= _ONE_BY_ONE:
        _deal_one_by_one(group, owner, load, partitions, limit, takers)
        return
    class_ = group.class_[partitions]
    queue = [partitions[class_ == k] for k in range(len(takers))]
    order = sorted(range(len(queue)), key=lambda k: (len(takers[k]), k))
    order = [k for k in order if len(queue[k])]
    left = len(partitions)
    members = len(load)
    while order:
        free = np.ones(members, bool)
        share = members / max(left, 1)
        for k in order:
            open_ = takers[k] if len(order) == 1 else takers[k][free[takers[k]]]
            rest = len(queue[k])
            if not len(open_):
                continue
            block = len(open_) if len(order) == 1 else max(1, int(np.ceil(rest * share)))
            weight = group.weight[queue[k][0]]
            room = limit[open_] - load[open_]
            fits = room >= weight
            count = int(fits.sum())
            if count:
                count = min(count, rest, block)
                chosen = open_[np.argsort(-room, kind="stable")[:count]]
            else:
                relative = (load[takers[k]] + weight) / group.capacity[takers[k]]
                count = min(rest, max(1, len(relative) // 16))
                chosen = takers[k][np.argsort(relative, kind="stable")[:count]]
            dealt, queue[k] = queue[k][:count], queue[k][count:]
            owner[dealt] = chosen
            load[chosen] += group.weight[dealt]
            free[chosen] = False
            left -= count
        order = [k for k in order if len(queue[k])]


def _deal_one_by_one(
    group: Group,
    owner: Longs,
    load: Doubles,
    partitions: Longs,
    limit: Doubles,
    takers: list[Longs],
) -> None:
    """Deal the heaviest first, each to the member that it fills least, one after the other.

    With many classes a round would place one partition per class, which is no faster.
    """
    room = 1 / np.maximum(limit, 1.0)
    relative = load * room
    each = zip(
        partitions.tolist(),
        group.class_[partitions].tolist(),
        group.weight[partitions].tolist(),
        strict=True,
    )
    for partition, k, weight in each:
        members = takers[k]
        member = members[(relative[members] + weight * room[members]).argmin()]
        owner[partition] = member
        load[member] += weight
        relative[member] = load[member] * room[member]


def go_home(group: Group, owner: Longs, load: Doubles, limit: Doubles) -> None:
    """Return partitions to owners that have room, lightest first."""
    for _ in range(3):
        away = np.flatnonzero(group.away(owner))[::-1]
        if not len(away):
            return
        home = group.home[away]
        order = np.argsort(home, kind="stable")
        away, home = away[order], home[order]
        weight = group.weight[away]
        back = earlier_in_run(home, weight) + weight <= (limit - load)[home]
        if not back.any():
            return
        away, home, weight = away[back], home[back], weight[back]
        np.subtract.at(load, owner[away], weight)
        np.add.at(load, home, weight)
        owner[away] = home
