"""Groups whose partitions all weigh the same, and those without weight: planned by counts.

The optimum of counts is exact (``engine``): balance best, then the fewest moves.
"""

import numpy as np

from kassign_spark.assignors.weighted.problem import Bools, Group, Longs
from kassign_spark.engine.task import settle
from kassign_spark.groups.numbers import place_in_run


def counts_decide(group: Group) -> bool:
    """Return whether all partitions weigh the same and all members are equal."""
    return len(np.unique(group.weight)) == 1 and len(np.unique(group.capacity)) == 1


def best_counts(group: Group) -> Longs:
    """Return the owners in the assignment with the best balance and then the fewest moves."""
    class_, member = np.nonzero(group.eligible)
    classes, members = group.eligible.shape
    owned = np.zeros((classes, members), np.int64)
    has_home = group.home >= 0
    np.add.at(owned, (group.class_[has_home], group.home[has_home]), 1)
    supply = np.bincount(group.class_, minlength=classes)
    member_of = np.unique(member, return_inverse=True)[1]
    assigned = np.zeros((classes, members), np.int64)
    assigned[class_, member] = settle(
        class_, member_of, owned[class_, member], supply, np.arange(classes)
    )
    return name_counts(group.class_, group.home, assigned)


def name_counts(class_: Longs, home: Longs, assigned: Longs) -> Longs:
    """Return the owners for these counts by class: own partitions first, the rest in order."""
    owner = np.full(len(class_), -1)
    left = assigned.copy()
    owned = np.flatnonzero(home >= 0)
    pair = class_[owned] * assigned.shape[1] + home[owned]
    order = np.argsort(pair, kind="stable")
    owned, pair = owned[order], pair[order]
    keeps = place_in_run(pair) < assigned.reshape(-1)[pair]
    owner[owned[keeps]] = home[owned[keeps]]
    np.subtract.at(left, (class_[owned[keeps]], home[owned[keeps]]), 1)
    open_ = np.flatnonzero(owner < 0)
    open_ = open_[np.argsort(class_[open_], kind="stable")]
    owner[open_] = np.repeat(np.tile(np.arange(left.shape[1]), len(left)), left.reshape(-1))
    return owner


def count_difference(group: Group, owner: Longs) -> int:
    """Return the greatest difference of counts between members that may have anything."""
    used = group.counts(owner)[group.eligible.any(axis=0)]
    return int(used.max() - used.min()) if len(used) else 0


def deal_by_count(
    class_: Longs, eligible: Bools, count: Longs, partitions: Longs, owner: Longs
) -> None:
    """Give ``partitions`` to members with the fewest, the scarcest class first.

    They weigh nothing, and nobody has them. Fills ``owner``; ``count``, of each member, grows.
    """
    takers = eligible.sum(axis=1)
    for k in sorted(set(class_[partitions].tolist()), key=lambda k: (takers[k], k)):
        mine = partitions[class_[partitions] == k]
        members = np.flatnonzero(eligible[k])
        low = count[members].astype(np.int64)
        # The highest level that the partitions fill: some number of the lowest members sets it.
        filled = len(mine) + np.cumsum(np.sort(low))
        floor = (filled // np.arange(1, len(low) + 1)).min()
        more = np.maximum(floor - low, 0)
        odd = np.flatnonzero(low + more == floor)[: len(mine) - int(more.sum())]
        more[odd] += 1
        owner[mine] = np.repeat(members, more)
        count[members] += more
