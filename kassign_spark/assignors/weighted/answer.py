"""What the search says about one group, in numbers; ``sentences`` puts it into words."""

from dataclasses import dataclass, field

from kassign_spark.assignors.weighted.problem import Longs

WITHIN_LIMIT = "within_limit"
NOTHING_TO_DO = "nothing_to_do"
BOUNDED_BY_PARTITION = "bounded_by_partition"
BOUNDED_BY_SUBSCRIPTIONS = "bounded_by_subscriptions"
BOUNDED_BY_MOVES = "bounded_by_moves"
BOUNDED_BY_COUNTS = "bounded_by_counts"
NOT_FOUND = "not_found"


@dataclass(frozen=True)
class Proof:
    """Why a limit cannot be kept by anybody.

    Attributes:
        partition: the one that alone is too heavy; -1: it is not one.
        heaviest: that so many of the heaviest partitions find no place; 0: it is not that.
        members: those that alone may take ``classes``.
        classes: whose weight is too much for ``members``.
    """

    partition: int = -1
    heaviest: int = 0
    members: tuple[int, ...] = ()
    classes: tuple[int, ...] = ()


@dataclass(frozen=True)
class Answer:
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
    proof: Proof = field(default_factory=Proof)

    @property
    def gap(self) -> float:
        """By what share the maximum is above its bound."""
        return self.max_load / self.load_bound - 1 if self.load_bound > 0 else 0.0
