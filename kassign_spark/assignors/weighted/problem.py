"""The problem as arrays: one group, and many groups of similar size side by side.

Weights are whole numbers held in doubles: a group's weights are scaled by one power of two so that
their sum stays below 2**50, and rounded. Sums are then exact in any order, so that an answer does
not depend on what shares the batch.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Longs = npt.NDArray[np.int64]
Doubles = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

_SUM_BITS = 50
FAR = 1e300
"""The cost of a forbidden choice; sums of a few of them are still finite."""


class Group(NamedTuple):
    """One group. Partitions are by weight, heaviest first, then by name; members by name.

    Attributes:
        weight: of each partition, whole numbers; see ``scale_weights``.
        class_: of each partition; all of a class may go to the same members.
        home: of each partition the member that owns it now; -1: nobody.
        cost: of each partition what moving it away from home costs.
        eligible: of each class and member whether the member may take it; every class has one.
        capacity: of each member, > 0.
        power: by what the caller's weights were multiplied.
    """

    weight: Doubles
    class_: Longs
    home: Longs
    cost: Doubles
    eligible: Bools
    capacity: Doubles
    power: float = 1.0

    def heaviest(self, count: int) -> "Group":
        """Return the first partitions, all members and classes."""
        return self._replace(
            weight=self.weight[:count],
            class_=self.class_[:count],
            home=self.home[:count],
            cost=self.cost[:count],
        )

    def away(self, owner: Longs) -> Bools:
        """Return [partition]: whether it has left its owner."""
        left: Bools = (self.home >= 0) & (owner != self.home)
        return left

    def loads(self, owner: Longs) -> Doubles:
        """Return the weight that each member has; partitions with owner -1 have none."""
        is_owned = owner >= 0
        return sums_of(owner[is_owned], self.weight[is_owned], len(self.capacity))

    def fair_load(self) -> float:
        """Return the load relative to capacity if weight could be divided at will."""
        total = float(self.loads(np.zeros(len(self.weight), np.int64)).sum())
        capacity = float(self.capacity[self.eligible.any(axis=0)].sum())
        return total / capacity if capacity else 0.0

    def counts(self, owner: Longs) -> Longs:
        """Return [member]: how many partitions each has."""
        return np.bincount(owner[owner >= 0], minlength=len(self.capacity))


class PaddedGroups(NamedTuple):
    """Groups side by side, padded with partitions that nobody may take and absent members.

    Attributes:
        weight: [group, partition]; 0 where padded.
        class_: [group, partition].
        home: [group, partition]; -1: nobody.
        cost: [group, partition].
        eligible: [group, class, member].
        capacity: [group, member]; 1 where padded.
        class_weight: [group, class].
        is_there: [group, partition].
    """

    weight: Doubles
    class_: Longs
    home: Longs
    cost: Doubles
    eligible: Bools
    capacity: Doubles
    class_weight: Doubles
    is_there: Bools

    def take(self, groups: Longs | Bools) -> "PaddedGroups":
        """Return some of the groups."""
        return PaddedGroups(*(column[groups] for column in self))  # type: ignore[arg-type]

    def away(self, owner: Longs) -> Bools:
        """Return [group, partition]: whether it has left its owner."""
        left: Bools = (self.home >= 0) & (owner != self.home)
        return left

    @property
    def total(self) -> Doubles:
        """Return the weight of each group."""
        return last_sum(self.class_weight)


def scale_weights(weight: Doubles) -> tuple[Doubles, float]:
    """Return weights as whole numbers, and the power of two that they were multiplied by.

    The power follows from the greatest weight and the number of weights, so from no order.
    """
    most = float(weight.max(initial=0.0))
    if most <= 0:
        return np.zeros(len(weight)), 1.0
    bits = int(np.frexp(most)[1]) + len(weight).bit_length()
    # ldexp in two steps: the weights of a group may all be denormal or near the greatest double.
    power = float(np.ldexp(1.0, max(min(_SUM_BITS - bits, 1000), -1000)))
    return np.rint(weight * power), power


def stack(groups: Sequence[Group]) -> PaddedGroups:
    """Stack groups in one batch, padded to equal sizes."""
    count = len(groups)
    partitions = max(len(group.weight) for group in groups)
    classes = max(len(group.eligible) for group in groups)
    members = max(len(group.capacity) for group in groups)
    batch = PaddedGroups(
        np.zeros((count, partitions)),
        np.zeros((count, partitions), np.int64),
        np.full((count, partitions), -1),
        np.zeros((count, partitions)),
        np.zeros((count, classes, members), bool),
        np.ones((count, members)),
        np.zeros((count, classes)),
        np.zeros((count, partitions), bool),
    )
    for row, group in enumerate(groups):
        p, (k, m) = len(group.weight), group.eligible.shape
        batch.weight[row, :p] = group.weight
        batch.class_[row, :p] = group.class_
        batch.home[row, :p] = group.home
        batch.cost[row, :p] = group.cost
        batch.eligible[row, :k, :m] = group.eligible
        batch.capacity[row, :m] = group.capacity
        batch.class_weight[row, :k] = sums_of(group.class_, group.weight, k)
        batch.is_there[row, :p] = True
    return batch


def can_take(batch: PaddedGroups) -> Bools:
    """Return [group, partition, member]: whether the member may take the partition."""
    eligible = np.take_along_axis(batch.eligible, batch.class_[:, :, None], axis=1)
    result: Bools = eligible & batch.is_there[:, :, None]
    return result


def loads(batch: PaddedGroups, owner: Longs) -> Doubles:
    """Return the weight [group, member] of members; partitions with owner -1 have none."""
    groups, members = batch.capacity.shape
    is_owned = owner >= 0
    slot = (np.arange(groups)[:, None] * members + owner)[is_owned]
    return sums_of(slot, batch.weight[is_owned], groups * members).reshape(groups, members)


def sums_of(key: Longs, weight: Doubles, size: int) -> Doubles:
    """Return the weights of each key, added up."""
    return np.bincount(key, weight, size).astype(np.float64)


def last_sum(terms: Doubles) -> Doubles:
    """Sum along the last axis, in order: trailing zeros of padding do not change the rounding."""
    if not terms.shape[-1]:
        return np.zeros(terms.shape[:-1])
    result: Doubles = np.cumsum(terms, axis=-1)[..., -1]
    return result


def noise(*seeds: int, size: int) -> Doubles:
    """Return numbers in [0, 1) that follow from the seeds and the place only (splitmix64)."""
    value = np.arange(1, size + 1, dtype=np.uint64)
    for seed in seeds:
        value = value + np.uint64(0x9E3779B97F4A7C15 * (2 * seed + 1) % 2**64)
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
            value = (value ^ (value >> np.uint64(shift))) * np.uint64(factor)
        value = value ^ (value >> np.uint64(31))
    return (value >> np.uint64(11)).astype(np.float64) * 2.0**-53
