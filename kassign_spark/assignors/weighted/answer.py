"""The result of the search for one group: its plan in numbers, the verdict and the proof.

The proof shows why no plan keeps a limit. ``sentences`` puts all of it into words.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from kassign_spark.assignors.weighted.bounds import HEAVIEST_A_MEMBER, short_of
from kassign_spark.assignors.weighted.counts import count_difference
from kassign_spark.assignors.weighted.fair_levels import find_levels
from kassign_spark.assignors.weighted.problem import Bools, Doubles, Group, Longs, sums_of

WITHIN_LIMIT = "within_limit"
NOTHING_TO_DO = "nothing_to_do"
BOUNDED_BY_PARTITION = "bounded_by_partition"
BOUNDED_BY_SUBSCRIPTIONS = "bounded_by_subscriptions"
BOUNDED_BY_MOVES = "bounded_by_moves"
BOUNDED_BY_COUNTS = "bounded_by_counts"
NOT_FOUND = "not_found"
_ABOVE = 1 + 1e-9


@dataclass(frozen=True)
class Proof:
    """Why no plan keeps a limit.

    Attributes:
        partition: the one that alone is too heavy; -1: it is not one.
        heaviest: the number of heaviest partitions that find no place; 0: another reason.
        members: those that alone may take ``classes``.
        classes: whose weight is too much for ``members``.
    """

    partition: int = -1
    heaviest: int = 0
    members: tuple[int, ...] = ()
    classes: tuple[int, ...] = ()


@dataclass(frozen=True)
class WeightedPlan:
    """One group's plan. Loads are relative, in the caller's unit of weight.

    Attributes:
        owner: of each partition.
        verdict: one of the constants above.
        is_proven: whether no plan under this limit costs less, or else that the limit cannot be
            kept is proven.
        fair_load: the highest fair level of a part of several members.
        load_bound: no assignment has a lower maximum.
        limit: of the members of the highest such part.
        best_load: the lowest maximum that was found, whatever it moves.
        moves_bound: no plan under the limits moves fewer.
        moves_needed: with how many moves the limits are met, where a bound on moves forbids it;
            -1: not known.
        weight_needed: how much weight these move.
        least_difference: the least difference of counts that subscriptions allow; -1: not asked.
        dominant: the dominant partitions.
        by_count: whether the group was planned by counts, as it has no weight.
        skew: max_load by the fair load of the whole group.
    """

    owner: Longs
    verdict: str
    is_proven: bool
    max_load: float
    fair_load: float
    load_bound: float
    limit: float
    best_load: float
    moves: int
    moves_bound: int
    moved_weight: float
    count_difference: int
    moves_needed: int = -1
    weight_needed: float = 0.0
    least_difference: int = -1
    dominant: tuple[int, ...] = ()
    by_count: bool = False
    skew: float = 1.0
    proof: Proof = field(default_factory=Proof)

    @property
    def gap(self) -> float:
        """Return the share by which the maximum exceeds its bound."""
        return self.max_load / self.load_bound - 1 if self.load_bound > 0 else 0.0


class GroupMeasures(NamedTuple):
    """Measures of a group apart from its plan: loads are relative, weights are the group's own.

    Attributes:
        limit: of each member, the weight it may have.
        fair_load: of the highest part of several members.
        load_bound: on the maximum.
        shown_limit: relative, of that part.
        best_load: the lowest maximum found.
        moves_bound: on the moves of any plan within the limits.
        dominant: partitions that have a member for themselves.
        max_count_difference: the caller's bound.
        least_difference: that subscriptions allow; -1: not asked.
    """

    limit: Doubles
    fair_load: float
    load_bound: float
    shown_limit: float
    best_load: float
    moves_bound: int
    dominant: tuple[int, ...] = ()
    max_count_difference: int | None = None
    least_difference: int = -1


def answer_of(
    group: Group, owner: Longs, measured: GroupMeasures, freely: Longs | None = None
) -> WeightedPlan:
    """Measure and judge one group's plan; ``freely``: owners by the one that bounds forbid."""
    load = group.loads(owner)
    most = float((load / group.capacity).max())
    away = group.away(owner)
    difference = count_difference(group, owner)
    is_above = most > measured.shown_limit * _ABOVE and bool(measured.dominant)
    moves = int(away.sum())
    verdict, is_proven, proof = _judge(group, owner, load, moves, measured, is_above)
    needed, weight_needed = -1, 0.0
    if freely is not None and verdict in (NOT_FOUND, BOUNDED_BY_PARTITION):
        free_load = group.loads(freely)
        if (load > measured.limit).any() and not (free_load > measured.limit).any():
            gone = group.away(freely)
            needed, weight_needed = int(gone.sum()), float(group.weight[gone].sum())
            verdict, is_proven, proof = BOUNDED_BY_MOVES, False, Proof()
    allowed = measured.max_count_difference
    if allowed is not None and verdict != BOUNDED_BY_MOVES:
        if difference > allowed:
            verdict, is_proven = BOUNDED_BY_COUNTS, measured.least_difference > allowed
        elif verdict == NOT_FOUND:
            verdict = BOUNDED_BY_COUNTS
    unit, fair = group.power, group.fair_load()
    return WeightedPlan(
        owner=owner,
        verdict=verdict,
        is_proven=is_proven,
        max_load=most / unit,
        fair_load=measured.fair_load / unit,
        load_bound=min(measured.load_bound, most) / unit,
        limit=measured.shown_limit / unit,
        best_load=min(measured.best_load, most) / unit,
        moves=moves,
        moves_bound=measured.moves_bound,
        moved_weight=float(group.weight[away].sum()) / unit,
        count_difference=difference,
        moves_needed=needed,
        weight_needed=weight_needed / unit,
        least_difference=measured.least_difference,
        dominant=measured.dominant,
        skew=most / fair if fair > 0 else 1.0,
        proof=proof,
    )


def _judge(
    group: Group, owner: Longs, load: Doubles, moves: int, measured: GroupMeasures, is_above: bool
) -> tuple[str, bool, Proof]:
    if not (load > measured.limit).any():
        if is_above:
            member = int(np.argmax(load / group.capacity))
            partition = int(np.flatnonzero(owner == member)[0])
            return BOUNDED_BY_PARTITION, True, Proof(partition=partition)
        if not (owner != group.home).any():
            return NOTHING_TO_DO, True, Proof()
        return WITHIN_LIMIT, moves == measured.moves_bound, Proof()
    proof = _refute(group, measured.limit)
    if proof is None:
        return NOT_FOUND, False, Proof()
    by_partition = proof.partition >= 0 or proof.heaviest > 0
    return (BOUNDED_BY_PARTITION if by_partition else BOUNDED_BY_SUBSCRIPTIONS), True, proof


def _refute(group: Group, limit: Doubles) -> Proof | None:
    """Prove, if possible, that no plan keeps these limits: the bounds, with limits as sizes."""
    class_weight = sums_of(group.class_, group.weight, len(group.eligible))
    most = np.where(group.eligible, limit, -1.0).max(axis=1)[group.class_]
    alone = np.flatnonzero(group.weight > most)
    if len(alone):
        return Proof(partition=int(alone[0]))
    size = np.maximum(limit, 1e-9)
    levels = find_levels(class_weight[None], group.eligible[None], size[None])
    if levels.bound[0] > _ABOVE:
        closed = levels.closed[0]
        inside: Bools = ~(group.eligible & ~closed).any(axis=1)
        return Proof(members=_numbers(closed), classes=_numbers(inside))
    return _without_place(group, limit)


def _without_place(group: Group, limit: Doubles) -> Proof | None:
    """Apply the pigeonhole principle to all members, and to the subscribers of each class."""
    sets = [np.ones(len(group.eligible), bool)]
    sets += [~(group.eligible & ~row).any(axis=1) for row in group.eligible]
    for classes in sets[:50]:
        members: Bools = np.any(group.eligible[classes], axis=0)
        inside = group.weight[classes[group.class_]][: HEAVIEST_A_MEMBER * int(members.sum())]
        sums = np.concatenate([[0.0], np.cumsum(inside)])
        short = short_of(sums, *np.unique(limit[members], return_counts=True))
        if len(short):
            return Proof(
                heaviest=int(short[0]), members=_numbers(members), classes=_numbers(classes)
            )
    return None


def _numbers(chosen: Bools) -> tuple[int, ...]:
    return tuple(np.flatnonzero(chosen).tolist())
